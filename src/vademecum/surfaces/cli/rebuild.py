"""rebuild and reindex: chunks and vectors of stored documents made again."""

import sys
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.ingest import COLLECTION, print_lines, print_report, print_reports
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App, IngestReport


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
        return [await app.rebuild(name, force=force, listener=line.listener()) for name in names]

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
  vade reindex -c handbook --embedder ollama:nomic-embed-text

Nothing is searched half done: each document is replaced in one step. Vectors of another model are
filled in beside the present ones, which serve until every document has its new ones. Interrupted,
`vade process-queue` or a running `vade serve` goes on. `vade rebuild` makes only what is out of
date.
""",
)
@click.option(
    "-c", "--collection", "--repo", metavar="NAME", help="Default: all, one after another."
)
@click.option("--embedder", metavar="P:MODEL", help="Another model, or `none` for words only.")
@options
def reindex_command(
    settings: Settings, as_json: bool, collection: str | None, embedder: str | None
) -> None:
    """Purge all chunks and vectors and make them anew while searches go on, without reading the
    sources."""
    from vademecum.surfaces.cli.progress import ProgressLine

    line = ProgressLine(quiet=as_json)

    async def work(app: "App") -> "list[IngestReport]":
        name = collection or settings.collection
        names = [name] if name else [found.name for found in await app.list_collections()]
        return [
            await app.reindex(name, embedder=embedder, listener=line.listener()) for name in names
        ]

    reports = run(settings, work)
    line.end()
    if as_json:
        print_json({"collections": reports})
    for report in () if as_json else reports:
        print_lines(report)
    if not reports:
        note("There is no collection yet: `vade bulk-index DIR` makes one.")
    sys.exit(1 if any(report.failed for report in reports) else 0)
