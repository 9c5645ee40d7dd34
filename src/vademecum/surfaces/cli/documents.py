"""documents list, lesson, chunk."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import COLLECTION, counted, note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.search.shelf import ChunkInContext, DocumentList, Lesson
    from vademecum.store.reading import ChunkDetails


@click.group(
    "documents",
    epilog="""
\b
Examples:
  vade documents list -c handbook
  vade documents lesson 6f9619ff-8b86-5d01-b42d-00cf4fc964ff -c handbook
  vade documents chunk 0b4a3c1e-9f3b-5f6a-8a55-1f0c6c1d2e3f --context 2 -c handbook
""",
)
def documents_command() -> None:
    """What a collection holds: its documents, whole lessons, chunks in their place."""


@documents_command.command("list")
@COLLECTION
@click.option("--filter", "filters", multiple=True, metavar="F", help="A facet: 'tier<=2'.")
@click.option("--after", metavar="PATH", help="Those that follow this one.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@options
def list_documents(
    settings: Settings,
    as_json: bool,
    collection: str | None,
    filters: tuple[str, ...],
    after: str | None,
    limit: int,
) -> None:
    """List the documents of a collection, by path."""

    async def work(app: "App") -> "DocumentList":
        name = await app.collection_name(collection)
        return await app.shelf.listed(name, after=after, filters=filters, limit=limit)

    found = run(settings, work)
    if as_json:
        print_json(found)
        return
    for one in found.documents:
        click.echo(
            f"{one.path}  {one.title}  {counted(one.chunks, 'chunk')}  {one.parent_id or '-'}"
        )
    if found.next is not None:
        note(f"There are more: --after {found.next}")


@documents_command.command("lesson")
@COLLECTION
@click.argument("parent", type=click.UUID)
@options
def read_lesson(settings: Settings, as_json: bool, collection: str | None, parent: UUID) -> None:
    """Show all chunks of one parent, in order."""

    async def work(app: "App") -> "Lesson":
        return await app.shelf.lesson(await app.collection_name(collection), parent)

    found = run(settings, work)
    if as_json:
        print_json(found)
    else:
        _print(found.chunks)


@documents_command.command("chunk")
@COLLECTION
@click.argument("chunk", type=click.UUID)
@click.option(
    "--context", type=click.IntRange(0, 50), default=0, metavar="N", help="And N before and after."
)
@options
def read_chunk(
    settings: Settings, as_json: bool, collection: str | None, chunk: UUID, context: int
) -> None:
    """Show a chunk, with those around it."""

    async def work(app: "App") -> "ChunkInContext":
        name = await app.collection_name(collection)
        return await app.shelf.chunk(name, chunk, context=context)

    found = run(settings, work)
    if as_json:
        print_json(found)
    else:
        _print([*found.before, found.chunk, *found.after])


def _print(chunks: "Sequence[ChunkDetails]") -> None:
    for one in chunks:
        click.echo(f"[{one.chunk_index + 1} of {one.total_chunks}] {one.reference}  {one.id}")
        click.echo(one.text + "\n")
