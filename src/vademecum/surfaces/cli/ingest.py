"""bulk-index, store, process-queue."""

import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import COLLECTION, counted, options, print_json, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vademecum.app import App
    from vademecum.ingest.pipeline import Failure
    from vademecum.ingest.report import IngestReport, StoreReport
    from vademecum.store.runs import RunMode


@click.command(
    "bulk-index",
    epilog="""
\b
Examples:
  vade bulk-index ./docs
  vade bulk-index ./docs -c handbook --profile kb
  vade bulk-index ./docs --no-wait && vade process-queue
  vade bulk-index ./knowledge-bases --each-folder
  vade bulk-index ./docs --engine ray --ray-address 10.0.0.1:6379

Only new and changed files are read; files that are gone are removed from the collection. A file
that cannot be read is named, and the rest goes on. A knowledge base (profile kb) also keeps its
ledger, task list and summaries in the folder: .kb/ and TASKS.md.
""",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "-c", "--collection", "--repo", metavar="NAME", help="Default: the name of the folder."
)
@click.option(
    "--each-folder", is_flag=True, help="Each folder in DIR is a knowledge base of its own."
)
@click.option("--profile", metavar="P", help="A profile or a file in TOML; default docs.")
@click.option(
    "--embedder", metavar="E", help="provider:model of a new collection; default VADE_EMBEDDER."
)
@click.option("--force", is_flag=True, help="Read, split and embed everything again.")
@click.option(
    "--mode",
    type=click.Choice(["incremental", "full", "recreate"]),
    help="full is --force; recreate also removes what the collection holds from elsewhere.",
)
@click.option(
    "--no-wait", is_flag=True, help="Store and queue only; `process-queue` does the rest."
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where documents are embedded: here, or on a Ray cluster.",
)
@click.option("--ray-address", metavar="HOST:PORT", help="Default: RAY_ADDRESS, or one begun here.")
@options
def bulk_index_command(
    settings: Settings,
    as_json: bool,
    folder: Path,
    collection: str | None,
    each_folder: bool,
    profile: str | None,
    embedder: str | None,
    force: bool,
    mode: "RunMode | None",
    no_wait: bool,
    engine: str,
    ray_address: str | None,
) -> None:
    """Index the documents of a folder, or bring their index up to date."""
    from vademecum.surfaces.cli.progress import ProgressLine

    if each_folder and collection:
        raise click.UsageError("--each-folder names the collections after the folders.")
    if each_folder and mode == "recreate":
        raise click.UsageError("--each-folder and --mode recreate do not go together.")
    if force and mode not in (None, "full"):
        raise click.UsageError("--force is --mode full: give one of them.")
    if engine == "ray" and no_wait:
        raise click.UsageError("--no-wait leaves the embedding to others: --engine has no use.")
    if ray_address and engine != "ray":
        raise click.UsageError("--ray-address is for --engine ray.")
    force = force or mode == "full"
    if profile is not None and profile.endswith(".toml"):
        profile = str(Path(profile).absolute())
    line = ProgressLine(quiet=as_json)
    if each_folder:

        async def each(app: "App") -> "list[IngestReport | Failure]":
            async with app.embedders.on_ray(ray_address) if engine == "ray" else nullcontext():
                return await app.ingest.bulk_index_each(
                    folder,
                    profile=profile,
                    embedder=embedder,
                    force=force,
                    wait=not no_wait,
                    listener=line.listener(),
                )

        done = run(settings, each)
        line.end()
        print_reports(done, as_json)
        return

    async def work(app: "App") -> "IngestReport":
        await app.ingest.expect_documents(folder, collection or settings.collection)
        async with app.embedders.on_ray(ray_address) if engine == "ray" else nullcontext():
            return await app.ingest.bulk_index(
                folder,
                collection=collection or settings.collection,
                profile=profile,
                embedder=embedder,
                force=force,
                mode=mode,
                wait=not no_wait,
                listener=line.listener(),
            )

    report = run(settings, work)
    line.end()
    print_report(report, as_json)


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
        return await app.ingest.store(collection=name, url=url, file=file, wait=not no_wait)

    report = run(settings, work)
    if as_json:
        fields = asdict(report)
        print_json({name: value for name, value in fields.items() if name != "error" or value})
    else:
        click.echo(f"{report.action}: {report.collection}/{report.path}")
        if report.error:
            click.echo(f"  {report.path}: {report.error}", err=True)
        if report.pending:
            click.echo(
                f"{counted(report.pending, 'document')} not yet searchable: `vade process-queue`"
            )
    sys.exit(1 if report.error else 0)


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
            f"{counted(progress.done, 'document')} processed,"
            f" {left.pending + left.processing} left, {left.failed} failed"
        )
    sys.exit(1 if left.failed else 0)


def print_reports(done: "Sequence[IngestReport | Failure]", as_json: bool) -> None:
    """A report for each collection; the exit code says whether one of them could not be made."""
    from vademecum.ingest.pipeline import Failure

    bad = [one for one in done if isinstance(one, Failure) or _nothing_stored(one)]
    if as_json:
        print_json({"collections": done})
    else:
        for one in done:
            if isinstance(one, Failure):
                click.echo(f"{one.path}: {one.error}", err=True)
            else:
                print_lines(one)
    sys.exit(1 if bad else 0)


def print_report(report: "IngestReport", as_json: bool) -> None:
    """The report; the exit code says whether anything of it is in order."""
    if as_json:
        print_json(report)
    else:
        print_lines(report)
    sys.exit(1 if _nothing_stored(report) else 0)


def _nothing_stored(report: "IngestReport") -> bool:
    return bool(report.failed) and not report.inserted + report.updated + report.unchanged


def print_lines(report: "IngestReport") -> None:
    click.echo(
        f"{report.collection}: {report.inserted} inserted, {report.updated} updated, "
        f"{report.unchanged} unchanged, {report.deleted} deleted, {len(report.failed)} failed; "
        f"{counted(report.chunks, 'chunk')} ({report.embedded} embedded, {report.reused} reused) "
        f"in {report.seconds:.1f} s"
    )
    for failure in report.failed:
        click.echo(f"  {failure.path}: {failure.error}", err=True)
    if report.pending:
        click.echo(
            f"{counted(report.pending, 'document')} not yet searchable: `vade process-queue`"
        )
