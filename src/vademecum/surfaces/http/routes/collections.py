"""Collections: list, look at, read, store into, delete."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import PlainTextResponse

from vademecum.ingest.report import StoreReport
from vademecum.search.shelf import (
    MAX_CONTEXT,
    MAX_LISTED,
    ChunkInContext,
    DocumentList,
    Lesson,
)
from vademecum.store.collections import CollectionOverview
from vademecum.store.reading import IngestionTotals
from vademecum.surfaces.http.routes.search import Filters
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp, Text

router = APIRouter(prefix="/collections", tags=["collections"], responses=FAILURES)


Path = Annotated[Text, Query(max_length=8000)]


class Page(BaseModel):
    """A page to fetch and store."""

    url: Text


@router.get("")
async def list_collections(app: OpenApp) -> list[CollectionOverview]:
    """All collections with what they hold."""
    return await app.list_collections()


@router.get("/{collection}")
async def show_collection(app: OpenApp, collection: Name) -> CollectionOverview:
    return (await app.list_collections(collection))[0]


@router.get("/{collection}/document", response_class=PlainTextResponse)
async def read_document(
    app: OpenApp, collection: Name, path: Text, section: Text | None = None
) -> PlainTextResponse:
    """A document as Markdown, or one section of it, by the path and section id of a hit."""
    text = await app.shelf.read(collection, path, section=section)
    return PlainTextResponse(text, media_type="text/markdown; charset=utf-8")


@router.get("/{collection}/state")
async def ingestion_state(app: OpenApp, collection: Name) -> IngestionTotals:
    """How much is recorded, and when all of it was last gone over."""
    return await app.shelf.state(collection)


@router.get("/{collection}/documents")
async def list_documents(
    app: OpenApp,
    collection: Name,
    filters: Annotated[Filters, Query(alias="filter")] = [],  # noqa: B006 - FastAPI copies it
    after: Path | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 100,
) -> DocumentList:
    """The documents in the order of their paths; `next` continues as `after`."""
    return await app.shelf.listed(collection, after=after, filters=tuple(filters), limit=limit)


@router.get("/{collection}/lessons/{parent}")
async def read_lesson(app: OpenApp, collection: Name, parent: UUID) -> Lesson:
    """A whole document or lesson as it is searched: all chunks of one parent, in order."""
    return await app.shelf.lesson(collection, parent)


@router.get("/{collection}/chunks/{chunk}")
async def read_chunk(
    app: OpenApp,
    collection: Name,
    chunk: UUID,
    context: Annotated[int, Query(ge=0, le=MAX_CONTEXT)] = 0,
) -> ChunkInContext:
    """A chunk, with so many before and after it in reading order."""
    return await app.shelf.chunk(collection, chunk, context=context)


@router.post("/{collection}/pages", status_code=202)
async def store_page(app: OpenApp, collection: Name, page: Page) -> StoreReport:
    """Fetch and store a page; it is searchable when a worker has done its job."""
    return await app.ingest.store(collection=collection, url=page.url, wait=False)


@router.delete("/{collection}", status_code=204)
async def delete_collection(app: OpenApp, collection: Name) -> None:
    """Delete a collection and all that is in it."""
    await app.delete_collection(collection)
