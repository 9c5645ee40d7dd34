"""eval: the group of its commands, and the one that measures."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.evaluate_compare import compare_command
from vademecum.surfaces.cli.evaluate_gold import capture_command, init_command
from vademecum.surfaces.cli.evaluate_tables import MODES, NAMES, cell, numbers, print_rows, titles
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.evaluate.pipeline import Evaluation


class Commands(click.Group):
    """Without the name of a command, the first argument is a gold file to measure with."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in {*self.commands, *self.get_help_option_names(ctx)}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(
    "eval",
    cls=Commands,
    epilog="""
\b
Examples:
  vade eval init -c handbook
  vade eval gold.jsonl -c handbook --save before.json
  vade eval compare before.json handbook

`vade eval GOLD` is short for `vade eval run GOLD`; `vade eval run --help` tells what GOLD holds.
""",
)
def eval_command() -> None:
    """Measure search with questions whose answers are known."""


@click.command(
    "run",
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
    type=click.Choice(MODES),
    help="Measure one mode; default: all, and how hybrid differs from the others.",
)
@click.option(
    "--run",
    "run_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also write the rankings of --mode as a TREC run.",
)
@click.option(
    "--save",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also keep the result, for `vade eval compare`.",
)
@click.option("-k", "k", default=8, show_default=True, metavar="N", help="The k of hit@k.")
@options
def run_command(
    settings: Settings,
    as_json: bool,
    gold: Path,
    collection: str | None,
    mode: str | None,
    run_file: Path | None,
    save: Path | None,
    k: int,
) -> None:
    """Measure search with the questions of a gold file."""
    if run_file is not None and mode is None:
        raise click.UsageError("--run needs --mode: a run holds the rankings of one mode.")
    if run_file and save and run_file.resolve() == save.resolve():
        raise click.UsageError("--run and --save must be different files.")
    from vademecum.evaluate.gold import read_gold
    from vademecum.evaluate.saved import saved_lines
    from vademecum.evaluate.trec import check_target, run_lines, write_run

    questions = read_gold(gold)
    target = check_target(run_file, inputs=[gold]) if run_file else None
    save_target = check_target(save, inputs=[gold]) if save else None

    async def work(app: "App") -> "Evaluation":
        name = await app.collection_name(collection)
        with click.progressbar(
            length=len(questions) * (1 if mode else len(app.evaluation.modes())),
            label="asking",
            show_pos=True,
            file=sys.stderr,
            hidden=not sys.stderr.isatty(),
        ) as bar:
            return await app.evaluation.evaluate(
                questions,
                collection=name,
                mode=mode,
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
    if save_target:
        write_run(save_target, saved_lines(evaluation))
    for text in evaluation.notices:
        note(text)
    if as_json:
        print_json(_fields(evaluation, gold, run_file))
        return
    _print_tables(evaluation)
    if run_file:
        click.echo(f"The run is in {run_file}")
    if save:
        click.echo(f"The evaluation is in {save}")


def _fields(evaluation: "Evaluation", gold: Path, run_file: Path | None) -> dict[str, object]:
    return {
        "gold": str(gold),
        "collection": evaluation.collection,
        "questions": len(evaluation.questions),
        "k": evaluation.k,
        "modes": [
            {"mode": result.mode, **numbers(result.estimates), "p50_ms": round(result.p50_ms, 2)}
            for result in evaluation.modes
        ],
        "differences": [
            {"mode": one.mode, "other": one.other, **numbers(one.estimates)}
            for one in evaluation.differences
        ],
        "run": str(run_file) if run_file else None,
        "notices": list(evaluation.notices),
    }


def _print_tables(evaluation: "Evaluation") -> None:
    count = len(evaluation.questions)
    click.echo(
        f"{count} question{'' if count == 1 else 's'} on {evaluation.collection}, "
        "with 95 % intervals"
    )
    rows = [["mode", *titles(evaluation.k), "p50 ms"]]
    for result in evaluation.modes:
        cells = [cell(result.estimates[metric]) for metric in NAMES]
        rows.append([result.mode, *cells, f"{result.p50_ms:.1f}"])
    print_rows(rows)
    if not evaluation.differences:
        return
    click.echo("\nDifference, question by question (* its interval does not hold 0)")
    rows = [["", *titles(evaluation.k)]]
    for one in evaluation.differences:
        cells = [cell(one.estimates[metric], sign="+") for metric in NAMES]
        rows.append([f"{one.mode} - {one.other}", *cells])
    print_rows(rows)


eval_command.add_command(run_command)
eval_command.add_command(compare_command)
eval_command.add_command(init_command)
eval_command.add_command(capture_command)
