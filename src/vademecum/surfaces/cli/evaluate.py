"""eval."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vademecum.app import App
    from vademecum.evaluate.metrics import Estimate
    from vademecum.evaluate.pipeline import Evaluation

# Names of the metrics for people and for JSON.
NAMES = {"hit": "hit@k", "reciprocal_rank": "mrr", "ndcg": "ndcg@10", "recall": "recall@10"}


@click.command(
    "eval",
    epilog="""
\b
Examples:
  vade eval gold.jsonl -c handbook
  vade eval gold.jsonl -c handbook --mode lexical -k 3
  vade eval gold.jsonl -c handbook --mode hybrid --run hybrid.trec

\b
GOLD holds a question a line, with what a good search finds for it:
  {"query": "rotate keys", "expect": [{"path_contains": "ops/keys.md"}]}
  {"id": "q2", "query": "which ports", "expect": [
    {"path_contains": "net", "section_contains": "Ports", "rel": 2}, …]}

A result meets an expectation if all that is given is in its path, and in its section id or
headings, there in any case. `rel`, 1 if not given, is what the expectation is worth in nDCG. Each
counts once, at the first result that meets it. If any expectation of a question names a section,
its results are sections; if not, they are documents, each at the rank of its best section.
MRR looks at 100 hits. Intervals are 95 % bootstrap intervals over the questions.

--run writes `question Q0 path rank score tag` lines, each document once. The question is its id
or line number. White space and `%` in ids and paths are percent-encoded.
""",
)
@click.argument("gold", metavar="GOLD", type=click.Path(path_type=Path))
@click.option("-c", "--collection", metavar="NAME", help="The collection to search.")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "dense", "lexical"]),
    help="Measure one mode; default: all, and how hybrid differs from the others.",
)
@click.option(
    "--run",
    "run_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also write the rankings of --mode as a TREC run.",
)
@click.option("-k", "k", default=8, show_default=True, metavar="N", help="The k of hit@k.")
@options
def eval_command(
    settings: Settings,
    as_json: bool,
    gold: Path,
    collection: str | None,
    mode: str | None,
    run_file: Path | None,
    k: int,
) -> None:
    """Measure search with questions whose answers are known."""
    if run_file is not None and mode is None:
        raise click.UsageError("--run needs --mode: a run holds the rankings of one mode.")
    from vademecum.evaluate.gold import read_gold
    from vademecum.evaluate.pipeline import MODES
    from vademecum.evaluate.trec import check_target, run_lines, write_run

    questions = read_gold(gold)
    target = check_target(run_file, inputs=[gold]) if run_file else None
    searches = len(questions) * (1 if mode else len(MODES))

    async def work(app: "App") -> "Evaluation":
        name = await app.collection_name(collection)
        with click.progressbar(
            length=searches,
            label="asking",
            show_pos=True,
            file=sys.stderr,
            hidden=not sys.stderr.isatty(),
        ) as bar:
            return await app.evaluate(
                questions,
                collection=name,
                mode=mode,  # type: ignore[arg-type]
                k=k,
                asked=lambda: bar.update(1),
            )

    evaluation = run(settings, work)
    if target:
        (result,) = evaluation.modes
        write_run(
            target,
            (
                line
                for question, hits in zip(questions, result.rankings, strict=True)
                for line in run_lines(question.id, hits, tag=f"vademecum-{result.mode}")
            ),
        )
    for text in evaluation.notices:
        note(text)
    if as_json:
        print_json(_fields(evaluation, gold, run_file))
        return
    _print_tables(evaluation)
    if run_file:
        click.echo(f"The run is in {run_file}")


def _fields(evaluation: "Evaluation", gold: Path, run_file: Path | None) -> dict[str, object]:
    return {
        "gold": str(gold),
        "collection": evaluation.collection,
        "questions": len(evaluation.questions),
        "k": evaluation.k,
        "modes": [
            {"mode": result.mode, **_numbers(result.estimates), "p50_ms": round(result.p50_ms, 2)}
            for result in evaluation.modes
        ],
        "differences": [
            {"mode": one.mode, "other": one.other, **_numbers(one.estimates)}
            for one in evaluation.differences
        ],
        "run": str(run_file) if run_file else None,
        "notices": list(evaluation.notices),
    }


def _numbers(estimates: "Mapping[str, Estimate]") -> dict[str, object]:
    """The means by metric, and beside them their intervals."""
    return {
        **{NAMES[metric]: round(one.mean, 6) for metric, one in estimates.items()},
        "intervals": {
            NAMES[metric]: [round(one.low, 6), round(one.high, 6)]
            for metric, one in estimates.items()
        },
    }


def _print_tables(evaluation: "Evaluation") -> None:
    count = len(evaluation.questions)
    click.echo(
        f"{count} question{'' if count == 1 else 's'} on {evaluation.collection}, "
        "with 95 % intervals"
    )
    titles = [f"hit@{evaluation.k}", "MRR", "nDCG@10", "recall@10"]
    rows = [["mode", *titles, "p50 ms"]]
    for result in evaluation.modes:
        cells = [_cell(result.estimates[metric]) for metric in NAMES]
        rows.append([result.mode, *cells, f"{result.p50_ms:.1f}"])
    _print_rows(rows)
    if not evaluation.differences:
        return
    click.echo("\nDifference, question by question (* its interval does not hold 0)")
    rows = [["", *titles]]
    for one in evaluation.differences:
        cells = [_cell(one.estimates[metric], sign="+") for metric in NAMES]
        rows.append([f"{one.mode} - {one.other}", *cells])
    _print_rows(rows)


def _cell(one: "Estimate", *, sign: str = "") -> str:
    text = f"{one.mean:{sign}.3f} [{one.low:{sign}.3f}, {one.high:{sign}.3f}]"
    if not sign:
        return text
    return text + ("*" if one.low > 0 or one.high < 0 else " ")


def _print_rows(rows: "Sequence[Sequence[str]]") -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
