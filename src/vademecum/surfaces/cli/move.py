"""move show, compare, accept, abandon."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.evaluate_tables import cell
from vademecum.surfaces.cli.ingest import print_report
from vademecum.surfaces.cli.run import COLLECTION, note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.evaluate.move import Move
    from vademecum.ingest.report import IngestReport


@click.group(
    "move",
    epilog="""
\b
Examples:
  vade reindex -c handbook --embedder ollama:nomic-embed-text --gold questions.jsonl
  vade move show -c handbook
  vade move compare -c handbook --gold more-questions.jsonl
  vade move abandon -c handbook
""",
)
def move_command() -> None:
    """A collection on its way to another embedder.

    `vade reindex --embedder` begins a move. The new vectors are filled in beside the present ones,
    which answer until the new ones are found to answer as well.
    """


@move_command.command("show")
@COLLECTION
@options
def show(settings: Settings, as_json: bool, collection: str | None) -> None:
    """Show the last move of a collection, and what was found when both models were compared."""

    async def work(app: "App") -> "Move | None":
        return await app.moves.shown(await app.collection_name(collection))

    found = run(settings, work)
    if as_json:
        print_json({"move": found})
    elif found is None:
        note("It never moved: `vade reindex --embedder P:MODEL` begins a move.")
    else:
        _print(found)


@move_command.command("compare")
@COLLECTION
@click.option(
    "--gold",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Other questions than those it was begun with; see `vade eval --help`.",
)
@options
def compare(settings: Settings, as_json: bool, collection: str | None, gold: Path | None) -> None:
    """Compare both models again, and swap if the new one finds no less. Exit code 1: refused."""
    from vademecum.evaluate.gold import read_gold

    questions = read_gold(gold) if gold is not None else None

    async def work(app: "App") -> "Move":
        return await app.moves.compare(await app.collection_name(collection), questions)

    found = run(settings, work)
    _say(found, as_json)
    sys.exit(1 if found.state == "refused" else 0)


@move_command.command("accept")
@COLLECTION
@options
def accept(settings: Settings, as_json: bool, collection: str | None) -> None:
    """Search the collection with the new model whatever was found, once all is embedded."""

    async def work(app: "App") -> "Move":
        return await app.moves.accept(await app.collection_name(collection))

    _say(run(settings, work), as_json)


@move_command.command("abandon")
@COLLECTION
@options
def abandon(settings: Settings, as_json: bool, collection: str | None) -> None:
    """Stay with the present model; its vectors are kept, and those of the new one deleted."""
    from vademecum.surfaces.cli.progress import ProgressLine

    line = ProgressLine(quiet=as_json)

    async def work(app: "App") -> "IngestReport":
        name = await app.collection_name(collection)
        return await app.moves.abandon(name, listener=line.listener())

    report = run(settings, work)
    line.end()
    print_report(report, as_json)


def _say(found: "Move", as_json: bool) -> None:
    if as_json:
        print_json({"move": found})
    else:
        _print(found)


def _print(move: "Move") -> None:
    filled = "all embedded" if move.filled else "still being embedded"
    state = "searched with it" if move.done else f"{move.state}, {filled}"
    click.echo(f"{move.collection}  to {move.embedder}: {state}")
    if not move.done:
        click.echo(f"  searched with {move.present}")
    if move.verdict is None:
        how = {
            "nobody": "not compared",
            "gold": f"to be compared on {move.questions} questions of a gold file",
            "logged": f"to be compared on {move.questions} logged searches",
        }
        click.echo(f"  {how[move.judged_by]}")
        return
    found = move.verdict
    click.echo(
        f"  nDCG@10 {cell(found.now)} -> {cell(found.then)}, difference"
        f" {cell(found.difference, sign='+')}, {found.questions} questions"
    )
