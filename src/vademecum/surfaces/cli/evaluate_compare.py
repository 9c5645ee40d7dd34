"""eval compare."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.cli.evaluate_tables import MODES, NAMES, cell, numbers, print_rows, titles
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vademecum.app import App
    from vademecum.evaluate.compare import Comparison, Moved, Ranks
    from vademecum.evaluate.gold import Question
    from vademecum.evaluate.saved import SavedEvaluation


@click.command(
    "compare",
    epilog="""
\b
Examples:
  vade eval gold.jsonl -c handbook --save before.json
  …change the chunk size, the model or the weights, and rebuild…
  vade eval compare before.json handbook

\b
  vade eval compare handbook handbook-500 --gold gold.jsonl
  vade eval compare :hybrid :hybrid+rerank --gold gold.jsonl
  vade eval compare handbook handbook:boost=title+heading --gold gold.jsonl
  vade eval compare theirs.trec ours.trec --gold gold.jsonl

\b
A and B are each
  FILE[:MODE]                 saved by `vade eval GOLD --save FILE`, or a TREC run
  COLLECTION[:MODE,boost=F+F] asked now; without a name the only collection, or VADE_COLLECTION

MODE is hybrid unless it is given. The questions are those of --gold, else those that were saved.
Every figure is B less A on the same question, with its 95 % bootstrap interval over the questions:
where the interval holds 0, the questions do not show a difference. A TREC run ranks documents, so
questions that expect a section are left out with one.
""",
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--gold", metavar="FILE", type=click.Path(path_type=Path), help="The questions.")
@click.option("-k", "k", default=8, show_default=True, metavar="N", help="The k of hit@k.")
@click.option(
    "--show", default=5, show_default=True, metavar="N", help="Questions shown of each direction."
)
@options
def compare_command(
    settings: Settings, as_json: bool, a: str, b: str, gold: Path | None, k: int, show: int
) -> None:
    """Say what B finds better than A, and how sure that is."""
    from vademecum.evaluate.compare import compare
    from vademecum.evaluate.gold import read_gold

    if not 1 <= k <= 100 or show < 0:
        raise BadInput("k must be from 1 to 100, and --show at least 0")
    sides = [_read(a), _read(b)]
    questions = read_gold(gold) if gold else _saved_questions(sides)
    if any(side.asked for side in sides):
        ranks = run(settings, lambda app: _ask(app, sides, questions))
    else:
        ranks = [side.ranks for side in sides if side.ranks]
    found = compare(questions, *ranks, k=k)
    if found.left_out:
        note(f"{found.left_out} of {len(questions)} questions were left out: not asked of both.")
    if as_json:
        print_json(_fields(a, b, found))
    else:
        _print(a, b, found, show)


@dataclass(kw_only=True)
class _Side:
    """A or B as it was named: a file with ranks, or a collection to ask."""

    text: str
    ranks: "Ranks | None" = None
    saved: "SavedEvaluation | None" = None

    @property
    def asked(self) -> bool:
        return self.ranks is None


def _read(text: str) -> _Side:
    name, _, mode = text.rpartition(":")
    if Path(text).is_file():
        return _read_file(text, Path(text), "")
    if name and Path(name).is_file():
        return _read_file(text, Path(name), mode)
    if text.endswith((".json", ".jsonl", ".trec", ".run", ".txt")):
        raise BadInput(f"there is no file {text}")
    return _Side(text=text)


def _read_file(text: str, path: Path, mode: str) -> _Side:
    from vademecum.evaluate.compare import ranks_run, ranks_saved
    from vademecum.evaluate.saved import read_saved
    from vademecum.evaluate.trec import read_run

    if (saved := read_saved(path)) is None:
        if mode:
            raise BadInput(f"{path} is a run, which has no modes")
        return _Side(text=text, ranks=ranks_run(read_run(path)))
    wanted = mode or next((one for one in MODES if one in saved.modes), "")
    if wanted not in saved.modes:
        raise BadInput(f"{path} holds {', '.join(saved.modes)}, not {wanted!r}")
    return _Side(text=text, ranks=ranks_saved(saved, wanted), saved=saved)


def _saved_questions(sides: "Sequence[_Side]") -> "Sequence[Question]":
    for side in sides:
        if side.saved:
            return side.saved.questions
    raise BadInput("neither A nor B holds questions", hint="Name a gold file with --gold FILE.")


async def _ask(
    app: "App", sides: "Sequence[_Side]", questions: "Sequence[Question]"
) -> "list[Ranks]":
    from vademecum.evaluate.compare import ranks_asked

    known = [one.name for one in await app.list_collections()]
    asked = [await _target(app, side.text, known) if side.asked else None for side in sides]
    ranks = []
    with click.progressbar(
        length=len(questions) * sum(one is not None for one in asked),
        label="asking",
        show_pos=True,
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        for side, target in zip(sides, asked, strict=True):
            if target is None:
                assert side.ranks is not None
                ranks.append(side.ranks)
                continue
            collection, mode, boost = target
            evaluation = await app.evaluation.evaluate(
                questions,
                collection=collection,
                mode=mode,
                boost=boost,
                asked=lambda: bar.update(1),
            )
            for text in evaluation.notices:
                note(text)
            ranks.append(ranks_asked(questions, evaluation.modes[0].met))
    return ranks


async def _target(
    app: "App", text: str, known: "Sequence[str]"
) -> "tuple[str, str, tuple[str, ...]]":
    """The collection, mode and boosts that a side names. Raises BadInput."""
    name, wanted = (text, "") if text in known or ":" not in text else text.rsplit(":", 1)
    mode = "hybrid"
    boost: tuple[str, ...] = ()
    for setting in filter(None, wanted.split(",")):
        key, _, value = setting.partition("=")
        if setting in MODES:
            mode = setting
        elif key == "boost" and value:
            boost = tuple(value.split("+"))
        else:
            raise BadInput(
                f"{setting!r} in {text!r} is no setting of a search",
                hint=f"Settings are {', '.join(MODES)} and boost=FIELD+FIELD.",
            )
    collection = await app.collection_name(name or None)
    await app.collection(collection)
    return collection, mode, boost


def _fields(a: str, b: str, found: "Comparison") -> dict[str, object]:
    return {
        "a": {"name": a, **numbers(found.a)},
        "b": {"name": b, **numbers(found.b)},
        "difference": numbers(found.differences),
        "questions": len(found.questions),
        "left_out": found.left_out,
        "k": found.k,
        "moved": [
            {
                "id": one.question.id,
                "query": one.question.query,
                "rank_a": one.rank_a,
                "rank_b": one.rank_b,
                "ndcg@10": round(one.difference, 6),
            }
            for one in found.moved
        ],
    }


def _print(a: str, b: str, found: "Comparison", show: int) -> None:
    count = len(found.questions)
    click.echo(f"{count} question{'' if count == 1 else 's'}, with 95 % intervals")

    def row(name: str, estimates: "Mapping[str, object]", sign: str = "") -> list[str]:
        return [name, *(cell(estimates[metric], sign=sign) for metric in NAMES)]  # type: ignore[arg-type]

    print_rows(
        [
            ["", *titles(found.k)],
            row(f"A  {a}", found.a),
            row(f"B  {b}", found.b),
            row("B - A", found.differences, "+"),
        ]
    )
    worse = [one for one in found.moved if one.difference < 0]
    better = [one for one in reversed(found.moved) if one.difference > 0]
    click.echo(
        f"\nBy nDCG@10, B is better on {len(better)}, worse on {len(worse)} "
        f"and equal on {count - len(found.moved)}."
    )
    _print_moved("Most improved", better[:show])
    _print_moved("Most worsened", worse[:show])
    click.echo(f"\n{_verdict(found)}")


def _print_moved(title: str, moved: "Sequence[Moved]") -> None:
    if moved:
        click.echo(f"\n{title} (rank with A -> with B)")
    for one in moved:
        click.echo(f"  {one.rank_a or '-'} -> {one.rank_b or '-'}  {one.question.query}")


def _verdict(found: "Comparison") -> str:
    one = found.differences["ndcg"]
    if not found.moved:
        return "A and B are the same on every question by nDCG@10."
    width = (one.high - one.low) / 2
    if one.low > 0 or one.high < 0:
        return f"B is {'better' if one.mean > 0 else 'worse'} by nDCG@10: {cell(one, sign='+')}"
    return (
        "No difference is shown by nDCG@10: its interval holds 0. "
        f"Differences below about {width:.3f} need more questions than these."
    )
