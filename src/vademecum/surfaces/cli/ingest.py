"""bulk-index, store, process-queue, rebuild."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App, IngestReport, StoreReport

COLLECTION = click.option("-c", "--collection", metavar="NAME", help="The collection to use.")


@click.command(
    "bulk-index",
    epilog="""
\b
Examples:
  vade bulk-index ./docs
  vade bulk-index ./docs -c handbook --profile kb
  vade bulk-index ./docs --no-wait && vade process-queue

Only new and changed files are read; files that are gone are removed from the collection. A file
that cannot be read is named, and the rest goes on.
""",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("-c", "--collection", metavar="NAME", help="Default: the name of the folder.")
@click.option("--profile", metavar="P", help="How to split: docs (default), kb or web.")
@click.option("--force", is_flag=True, help="Read, split and embed everything again.")
@click.option(
    "--no-wait", is_flag=True, help="Store and queue only; `process-queue` does the rest."
)
@options
def bulk_index_command(
    settings: Settings,
    as_json: bool,
    folder: Path,
    collection: str | None,
    profile: str | None,
    force: bool,
    no_wait: bool,
) -> None:
    """Index the documents of a folder, or bring their index up to date."""
    from vademecum.surfaces.cli.progress import ProgressLine

    line = ProgressLine(quiet=as_json)

    async def work(app: "App") -> "IngestReport":
        return await app.bulk_index(
            folder,
            collection=collection or settings.collection,
            profile=profile,
            force=force,
            wait=not no_wait,
            listener=line.listener(),
        )

    report = run(settings, work)
    line.end()
    _print_report(report, as_json)


@click.command(
    "store",
    epilog="""
\b
Examples:
  vade store --file notes.md -c handbook
  vade store --url https://docs.python.org/3/library/json.html -c web
""",
)
@click.option("--url", metavar="U", help="A page to fetch.")
@click.option("--file", "file", metavar="F", type=click.Path(path_type=Path), help="A file.")
@COLLECTION
@click.option("--no-wait", is_flag=True, help="Store and queue only.")
@options
def store_command(
    settings: Settings,
    as_json: bool,
    url: str | None,
    file: Path | None,
    collection: str | None,
    no_wait: bool,
) -> None:
    """Store one file or one page of the web."""
    if (url is None) == (file is None):
        raise click.UsageError("Give either --url or --file.")

    async def work(app: "App") -> "StoreReport":
        name = await app.collection_name(collection)
        return await app.store(collection=name, url=url, file=file, wait=not no_wait)

    report = run(settings, work)
    if as_json:
        print_json(report)
    else:
        click.echo(f"{report.action}: {report.collection}/{report.path}")
        if report.pending:
            click.echo(f"{report.pending} documents are not yet searchable: `vade process-queue`")


@click.command(
    "process-queue",
    epilog="""
\b
Example:
  vade process-queue --limit 100
""",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N jobs.")
@options
def process_queue_command(settings: Settings, as_json: bool, limit: int | None) -> None:
    """Work off the jobs that wait, of all collections."""
    from vademecum.surfaces.cli.progress import ProgressLine

    line = ProgressLine(quiet=as_json)
    progress, left = run(
        settings, lambda app: app.process_queue(limit=limit, listener=line.listener())
    )
    line.end()
    if as_json:
        print_json(
            {
                "processed": progress.done,
                "failed": left.failed,
                "pending": left.pending + left.processing,
                "chunks": progress.chunks,
                "embedded": progress.embedded,
                "reused": progress.reused,
            }
        )
    else:
        click.echo(
            f"{progress.done} documents processed, {left.pending + left.processing} left, "
            f"{left.failed} failed"
        )
    sys.exit(1 if left.failed else 0)


@click.command(
    "rebuild",
    epilog="""
\b
Examples:
  vade rebuild -c handbook
  vade rebuild -c handbook --force
""",
)
@COLLECTION
@click.option("--force", is_flag=True, help="Also what is up to date.")
@options
def rebuild_command(settings: Settings, as_json: bool, collection: str | None, force: bool) -> None:
    """Make the chunks of stored documents again, without reading the sources.

    Needed after a change of profile or model; searches go on meanwhile.
    """
    from vademecum.surfaces.cli.progress import ProgressLine

    line = ProgressLine(quiet=as_json)

    async def work(app: "App") -> "IngestReport":
        name = await app.collection_name(collection)
        return await app.rebuild(name, force=force, listener=line.listener())

    report = run(settings, work)
    line.end()
    _print_report(report, as_json)


def _print_report(report: "IngestReport", as_json: bool) -> None:
    """The report; the exit code says whether anything of it is in order."""
    if as_json:
        print_json(report)
    else:
        click.echo(
            f"{report.collection}: {report.inserted} inserted, {report.updated} updated, "
            f"{report.unchanged} unchanged, {report.deleted} deleted, {len(report.failed)} failed; "
            f"{report.chunks} chunks ({report.embedded} embedded, {report.reused} reused) "
            f"in {report.seconds:.1f} s"
        )
        for failure in report.failed:
            click.echo(f"  {failure.path}: {failure.error}", err=True)
        if report.pending:
            click.echo(f"{report.pending} documents are not yet searchable: `vade process-queue`")
    stored = report.inserted + report.updated + report.unchanged
    sys.exit(1 if report.failed and not stored else 0)
