"""list, status, delete."""

from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import counted, note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App, Status
    from vademecum.store.ledger import LedgerRow


@click.command(
    "list",
    epilog="""
\b
Example:
  vade list --repo handbook --json
""",
)
@click.option("-c", "--collection", "--repo", metavar="NAME", help="Only this one.")
@options
def list_command(settings: Settings, as_json: bool, collection: str | None) -> None:
    """List the collections with what they hold."""
    found = run(settings, lambda app: app.list_collections(collection))
    if as_json:
        print_json({"collections": found})
        return
    for one in found:
        unfinished = one.pending + one.processing
        extra = f", {unfinished} waiting" if unfinished else ""
        extra += f", {one.failed} failed" if one.failed else ""
        click.echo(
            f"{one.name}  {counted(one.documents, 'document')}, {counted(one.chunks, 'chunk')}"
            f"{extra}  ({one.profile}, {one.embedder})"
        )
    if not found:
        note("There is no collection yet: `vade bulk-index DIR` makes one.")


@click.command(
    "status",
    epilog="""
\b
Examples:
  vade status
  vade status --repo handbook --json

Of a knowledge base, the rows of its ledger are shown too.
""",
)
@click.option("-c", "--collection", "--repo", metavar="NAME", help="Only this collection.")
@options
def status_command(settings: Settings, as_json: bool, collection: str | None) -> None:
    """Show what is stored, what is still to do and what failed."""

    async def work(app: "App") -> "tuple[Status, list[LedgerRow]]":
        rows = await app.knowledge_bases.rows(collection) if collection else []
        return await app.status(collection), [row for row in rows if row.chunked_at or row.notes]

    status, rows = run(settings, work)
    if as_json:
        from dataclasses import asdict

        from vademecum.ingest.ledger_files import ledger_fields

        print_json(asdict(status) | {"ledger": [ledger_fields(row) for row in rows]})
        return
    click.echo(f"database  {status.database}")
    for found in status.collections:
        click.echo(
            f"{found.name}  {counted(found.documents, 'document')},"
            f" {counted(found.chunks, 'chunk')}; "
            f"{found.pending} waiting, {found.processing} in work, {found.failed} failed"
        )
    for row in rows:
        steps = {
            "chunked": row.chunked_at,
            "embedded": row.embedded_at,
            "upserted": row.upserted_at,
        }
        done = ", ".join(step for step, at in steps.items() if at)
        click.echo(f"  {row.path}  {row.topic}  {row.vector_count} vectors  {done}")
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
@click.option(
    "-c", "--collection", "--repo", required=True, metavar="NAME", help="The one to delete."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@options
def delete_command(settings: Settings, as_json: bool, collection: str, yes: bool) -> None:
    """Delete a collection: its documents, chunks and vectors. The files stay where they are."""
    if not yes:
        (found,) = run(settings, lambda app: app.list_collections(collection))
        click.confirm(
            f"Delete the collection {collection} with {counted(found.documents, 'document')}"
            " from the database?",
            abort=True,
        )
    run(settings, lambda app: app.delete_collection(collection))
    if as_json:
        print_json({"deleted": collection})
    else:
        click.echo(f"deleted {collection}")
