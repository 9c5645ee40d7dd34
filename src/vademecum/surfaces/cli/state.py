"""list, status, delete."""

from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App, Status


@click.command(
    "list",
    epilog="""
\b
Example:
  vade list --json
""",
)
@options
def list_command(settings: Settings, as_json: bool) -> None:
    """List the collections with what they hold."""
    found = run(settings, lambda app: app.list_collections())
    if as_json:
        print_json({"collections": found})
        return
    for collection in found:
        unfinished = collection.pending + collection.processing
        extra = f", {unfinished} waiting" if unfinished else ""
        extra += f", {collection.failed} failed" if collection.failed else ""
        click.echo(
            f"{collection.name}  {collection.documents} documents, {collection.chunks} chunks"
            f"{extra}  ({collection.profile}, {collection.embedder})"
        )
    if not found:
        note("There is no collection yet: `vade bulk-index DIR` makes one.")


@click.command(
    "status",
    epilog="""
\b
Examples:
  vade status
  vade status -c handbook --json
""",
)
@click.option("-c", "--collection", metavar="NAME", help="Only this collection.")
@options
def status_command(settings: Settings, as_json: bool, collection: str | None) -> None:
    """Show what is stored, what is still to do and what failed."""

    async def work(app: "App") -> "Status":
        return await app.status(collection)

    status = run(settings, work)
    if as_json:
        print_json(status)
        return
    click.echo(f"database  {status.database}")
    for found in status.collections:
        click.echo(
            f"{found.name}  {found.documents} documents, {found.chunks} chunks; "
            f"{found.pending} waiting, {found.processing} in work, {found.failed} failed"
        )
    for failure in status.failed:
        click.echo(f"  {failure.path}: {failure.error}")


@click.command(
    "delete",
    epilog="""
\b
Example:
  vade delete -c handbook --yes
""",
)
@click.option("-c", "--collection", required=True, metavar="NAME", help="The one to delete.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options
def delete_command(settings: Settings, as_json: bool, collection: str, yes: bool) -> None:
    """Delete a collection: its documents, chunks and vectors. The files stay where they are."""
    if not yes:
        click.confirm(f"Delete the collection {collection} from the database?", abort=True)
    run(settings, lambda app: app.delete_collection(collection))
    if as_json:
        print_json({"deleted": collection})
    else:
        click.echo(f"deleted {collection}")
