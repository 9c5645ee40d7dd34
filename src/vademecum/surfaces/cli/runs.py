"""runs list, show, start, cancel, resume."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.ingest import print_report
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from vademecum.app import App
    from vademecum.ingest.report import IngestReport, Listener
    from vademecum.ingest.runs import RunDetails
    from vademecum.store.runs import Run, RunMode

RUN = click.argument("number", metavar="RUN", type=click.IntRange(min=1))


@click.group(
    "runs",
    epilog="""
\b
Examples:
  vade runs list -c handbook
  vade runs start ./docs -c handbook --mode full --background
  vade runs show 12
  vade runs cancel 12
  vade runs resume 12

Each bulk-index and rebuild is a run too.
""",
)
def runs_command() -> None:
    """Ingestion runs: what was brought up to date when, how far it is and how it ended."""


@runs_command.command("list")
@click.option("-c", "--collection", "--repo", metavar="NAME", help="Only of this collection.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@options
def list_runs(settings: Settings, as_json: bool, collection: str | None, limit: int) -> None:
    """List the runs, newest first."""
    found = run(settings, lambda app: app.runs.listed(collection, limit=limit))
    if as_json:
        print_json({"runs": found})
        return
    for one in found:
        click.echo(_line(one))
    if not found:
        note("There was no run yet: `vade bulk-index DIR` makes one.")


@runs_command.command("show")
@RUN
@click.option("--follow", is_flag=True, help="Show how it goes on, until it has ended.")
@options
def show(settings: Settings, as_json: bool, number: int, follow: bool) -> None:
    """Show one run, and by name what it could not take."""

    async def work(app: "App") -> "RunDetails":
        if follow:
            async for seen in app.runs.follow(number):
                note(_line(seen))
        return await app.runs.details(number)

    found = run(settings, work)
    if as_json:
        print_json(found)
        return
    one = found.run
    click.echo(_line(one))
    click.echo(f"  {one.folder or 'the stored documents, made again'}")
    if one.started_at:
        click.echo(f"  started {one.started_at:%Y-%m-%d %H:%M:%S}, {one.duration_seconds:.1f} s")
    if one.files_pending:
        click.echo(f"  {one.files_pending} files are stored and not yet searchable")
    for failure in found.failures:
        click.echo(f"  {failure.path}: {failure.error}")
    if one.state in ("failed", "cancelled"):
        click.echo(f"  `vade runs resume {one.id}` goes on from there")


@runs_command.command("start")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("-c", "--collection", "--repo", metavar="NAME", help="The collection to use.")
@click.option("--profile", metavar="P", help="A profile or a file in TOML; default docs.")
@click.option(
    "--mode",
    type=click.Choice(["incremental", "full", "recreate"]),
    default="incremental",
    show_default=True,
    help="What is new or changed; everything again; also remove what is from elsewhere.",
)
@click.option("--background", is_flag=True, help="Leave it to a running `serve` or `worker`.")
@options
def start(
    settings: Settings,
    as_json: bool,
    folder: Path | None,
    collection: str | None,
    profile: str | None,
    mode: "RunMode",
    background: bool,
) -> None:
    """Bring a collection up to date with a folder; without one, make its chunks again."""
    if folder is None and mode == "recreate":
        raise click.UsageError("--mode recreate needs a folder to read.")
    if profile is not None and profile.endswith(".toml"):
        profile = str(Path(profile).absolute())

    async def named(app: "App") -> str:
        given = collection or settings.collection
        if given or folder is None:
            return await app.collection_name(given)
        return folder.resolve().name

    async def queued(app: "App") -> "Run":
        return await app.ingest.start_run(
            await named(app), folder=folder, profile=profile, mode=mode
        )

    if background:
        _queued(run(settings, queued), as_json)
        return

    async def work(app: "App", listener: "Listener") -> "IngestReport":
        name = await named(app)
        if folder is None:
            return await app.ingest.rebuild(name, force=mode == "full", listener=listener)
        return await app.ingest.bulk_index(
            folder, collection=name, profile=profile, mode=mode, listener=listener
        )

    _here(settings, as_json, work)


@runs_command.command("cancel")
@RUN
@options
def cancel(settings: Settings, as_json: bool, number: int) -> None:
    """Stop a run; what it made searchable stays, and it can be resumed."""

    async def work(app: "App") -> "Run":
        found = await app.runs.cancel(number)
        async for seen in app.runs.follow(number):
            found = seen
        return found

    found = run(settings, work)
    if as_json:
        print_json(found)
    else:
        click.echo(_line(found))


@runs_command.command("resume")
@RUN
@click.option("--background", is_flag=True, help="Leave it to a running `serve` or `worker`.")
@options
def resume(settings: Settings, as_json: bool, number: int, background: bool) -> None:
    """Go on with a run that failed or was cancelled, from where it was."""
    if background:
        _queued(run(settings, lambda app: app.runs.requeue(number)), as_json)
        return

    _here(settings, as_json, lambda app, listener: app.ingest.resume_run(number, listener=listener))


def _here(
    settings: Settings,
    as_json: bool,
    work: "Callable[[App, Listener], Awaitable[IngestReport]]",
) -> None:
    from vademecum.surfaces.cli.progress import ProgressLine

    line = ProgressLine(quiet=as_json)
    report = run(settings, lambda app: work(app, line.listener()))
    line.end()
    print_report(report, as_json)


def _queued(found: "Run", as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    click.echo(f"run {found.id} waits for `vade serve`, `vade worker` or `vade process-queue`")


def _line(one: "Run") -> str:
    error = f": {one.error}" if one.error else ""
    return (
        f"{one.id}  {one.created_at:%Y-%m-%d %H:%M}  {one.collection}  {one.mode}  "
        f"{one.state}{error}  "
        f"{one.files_processed} of {one.files_total} files processed, {one.files_skipped} skipped, "
        f"{one.files_failed} failed, {one.files_deleted} deleted; "
        f"{one.chunks_created} chunks created, {one.chunks_deleted} deleted"
    )
