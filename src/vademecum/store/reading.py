"""Reading what is stored, without a search: documents, their chunks in order, the state of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import ChunkId, CollectionId, DocumentId


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOverview:
    path: str
    title: str
    url: str | None
    facets: Mapping[str, object]
    parent_id: UUID | None
    """That its chunks share; None until it is searchable."""
    chunks: int
    source_hash: str
    """SHA-256 of the file or page as it was read."""
    needs_processing: bool
    """Whether its newest content is not searchable yet."""
    ingested_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkDetails:
    """A chunk with all that is known of it."""

    id: ChunkId
    collection: str
    path: str
    url: str | None
    title: str
    heading_path: list[str]
    section_id: str
    text: str
    facets: Mapping[str, object]
    parent_id: UUID
    chunk_index: int
    total_chunks: int
    previous_id: ChunkId | None
    next_id: ChunkId | None
    content_hash: str
    source_hash: str
    topic: str
    keywords: list[str]
    token_count: int
    word_count: int
    char_count: int
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def reference(self) -> str:
        """The citation: collection/file#section."""
        return f"{self.collection}/{self.path}#{self.section_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestionTotals:
    last_full_ingest: datetime | None
    last_incremental_update: datetime | None
    total_chunks: int
    total_documents: int


async def documents_page(
    connection: Connection,
    collection: CollectionId,
    *,
    after: str | None = None,
    within: Sequence[DocumentId] | None = None,
    limit: int,
) -> list[DocumentOverview]:
    """By path, those after `after`; only those `within`, where given."""
    values = {"collection": collection, "after": after, "limit": limit}
    async with connection.cursor(row_factory=class_row(DocumentOverview)) as cursor:
        await cursor.execute(
            SQL["documents_page"], values | {"within": None if within is None else list(within)}
        )
        return await cursor.fetchall()


async def _details(
    connection: Connection, collection: CollectionId, **wanted: object
) -> list[ChunkDetails]:
    values = {"chunks": None, "parent": None, "chunk": None, "context": 0} | wanted
    async with connection.cursor(row_factory=class_row(ChunkDetails)) as cursor:
        await cursor.execute(SQL["chunk_details"], values | {"collection": collection})
        return await cursor.fetchall()


async def chunks(
    connection: Connection, collection: CollectionId, ids: Sequence[ChunkId]
) -> dict[ChunkId, ChunkDetails]:
    """Those of the chunks that exist in this collection."""
    found = await _details(connection, collection, chunks=list(ids))
    return {chunk.id: chunk for chunk in found}


async def of_parent(
    connection: Connection, collection: CollectionId, parent: UUID
) -> list[ChunkDetails]:
    """All chunks of a document, in order."""
    return await _details(connection, collection, parent=parent)


async def around(
    connection: Connection, collection: CollectionId, chunk: UUID, context: int
) -> list[ChunkDetails]:
    """A chunk and so many before and after it, in order; empty where there is no such chunk."""
    return await _details(connection, collection, chunk=chunk, context=context)


async def documents_of_parent(
    connection: Connection, collection: CollectionId, parent: UUID
) -> list[DocumentId]:
    cursor = await connection.execute(
        SQL["documents_of_parent"], {"collection": collection, "parent": parent}
    )
    return [document for (document,) in await cursor.fetchall()]


async def totals(connection: Connection, collection: CollectionId) -> IngestionTotals:
    async with connection.cursor(row_factory=class_row(IngestionTotals)) as cursor:
        await cursor.execute(SQL["ingestion_state"], {"collection": collection})
        found = await cursor.fetchone()
    assert found is not None
    return found
