"""rebuild and reindex: chunks and vectors of stored documents made again."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.ingest import print_lines, print_report, print_reports
from vademecum.surfaces.cli.run import COLLECTION, note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.evaluate.move import Move
    from vademecum.ingest.report import IngestReport


@click.command(
    "rebuild",
    epilog="""
\b
Examples:
  vade rebuild -c handbook
  vade rebuild -c handbook --force
  vade rebuild --all
""",
)
@COLLECTION
@click.option("--all", "every", is_flag=True, help="All collections, one after another.")
@click.option("--force", is_flag=True, help="Also what is up to date.")
@options
def rebuild_command(
    settings: Settings, as_json: bool, collection: str | None, every: bool, force: bool
) -> None:
    """Make the chunks of stored documents again, without reading the sources.

    Needed after a change of profile or model; searches go on meanwhile.
    """
    from vademecum.surfaces.cli.progress import ProgressLine

    if every and collection:
        raise click.UsageError("Give either a collection or --all.")
    line = ProgressLine(quiet=as_json)

    async def work(app: "App") -> "list[IngestReport]":
        names = (
            [found.name for found in await app.list_collections()]
            if every
            else [await app.collection_name(collection)]
        )
        return [
            await app.ingest.rebuild(name, force=force, listener=line.listener()) for name in names
        ]

    reports = run(settings, work)
    line.end()
    if every:
        print_reports(reports, as_json)
    else:
        print_report(reports[0], as_json)


@click.command(
    "reindex",
    epilog="""
\b
Examples:
  vade reindex
  vade reindex -c handbook
  vade reindex -c handbook --embedder ollama:nomic-embed-text --gold questions.jsonl

Nothing is searched half done: each document is replaced in one step. Vectors of another model are
filled in beside the present ones, which serve until every document has its new ones. Then both
answer the same questions, those of --gold or else logged searches, and the new ones serve only if
they find no less (nDCG@10 of hybrid search, -0.01 at most); `vade move` shows it. Interrupted,
`vade process-queue` or a running `vade serve` goes on. `vade rebuild` makes only what is out of
date. Exit code 1: something failed, or the new model was refused.
""",
)
@click.option(
    "-c", "--collection", "--repo", metavar="NAME", help="Default: all, one after another."
)
@click.option("--embedder", metavar="P:MODEL", help="Another model, or `none` for words only.")
@click.option(
    "--gold",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Questions to compare the models by; see `vade eval --help`.",
)
@click.option("--unchecked", is_flag=True, help="Do not compare another model with the present.")
@options
def reindex_command(
    settings: Settings,
    as_json: bool,
    collection: str | None,
    embedder: str | None,
    gold: Path | None,
    unchecked: bool,
) -> None:
    """Purge all chunks and vectors and make them anew while searches go on, without reading the
    sources."""
    from vademecum.evaluate.gold import read_gold
    from vademecum.surfaces.cli.progress import ProgressLine

    if gold is not None and unchecked:
        raise click.UsageError("--gold compares and --unchecked does not: give one of them.")
    questions = read_gold(gold) if gold is not None else None
    line = ProgressLine(quiet=as_json)

    async def work(app: "App") -> "list[tuple[IngestReport, Move | None]]":
        name = collection or settings.collection
        names = [name] if name else [found.name for found in await app.list_collections()]
        done = []
        for name in names:
            report = await app.moves.reindex(
                name,
                embedder=embedder,
                questions=questions,
                unchecked=unchecked,
                listener=line.listener(),
            )
            done.append((report, await app.moves.shown(name)))
        return done

    done = run(settings, work)
    line.end()
    if as_json:
        print_json({"collections": [asdict(report) | {"move": move} for report, move in done]})
    for report, _ in () if as_json else done:
        print_lines(report)
    if not done:
        note("There is no collection yet: `vade bulk-index DIR` makes one.")
    refused = any(move is not None and move.state == "refused" for _, move in done)
    sys.exit(1 if refused or any(report.failed for report, _ in done) else 0)
