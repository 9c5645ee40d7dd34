"""Chunks: what is searchable of the documents."""

from collections.abc import Collection as Ids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from vademecum.store.arrays import packed_texts
from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import Chunk, ChunkId, CollectionId, DocumentId


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFields:
    """What a chunk's document and profile say of it."""

    document_id: DocumentId
    collection_id: CollectionId
    title: str
    source_hash: str
    total_chunks: int
    topic: str
    keywords: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk as readers see it."""

    id: ChunkId
    document_id: DocumentId
    collection: str
    path: str
    url: str | None
    title: str
    heading_path: list[str]
    section_id: str
    ordinal: int
    text: str
    topic: str
    keywords: list[str]
    token_count: int
    previous_id: ChunkId | None
    next_id: ChunkId | None
    facets: Mapping[str, object]

    @property
    def reference(self) -> str:
        """The citation: collection/file#section."""
        return f"{self.collection}/{self.path}#{self.section_id}"


async def ids_of(connection: Connection, documents: Ids[DocumentId]) -> dict[ChunkId, DocumentId]:
    """The chunks that documents have now, each with its document."""
    cursor = await connection.execute(SQL["chunk_ids_of_documents"], {"documents": list(documents)})
    return dict(await cursor.fetchall())


async def delete(connection: Connection, chunks: Ids[ChunkId]) -> None:
    """Chunks with their vectors and postings."""
    await connection.execute(SQL["delete_chunks"], {"chunks": list(chunks)})


async def insert(connection: Connection, rows: Sequence[tuple[Chunk, ChunkFields]]) -> None:
    """Chunks that are new."""
    async with connection.cursor() as cursor, cursor.copy(SQL["copy_chunks"]) as copy:
        copy.set_types(_COPIED)
        for chunk, fields in rows:
            await copy.write_row(
                (
                    chunk.id,
                    fields.document_id,
                    fields.collection_id,
                    chunk.ordinal,
                    fields.total_chunks,
                    chunk.text,
                    fields.title,
                    packed_texts(chunk.heading_path),
                    chunk.section_id,
                    chunk.parent_id,
                    chunk.previous_id,
                    chunk.next_id,
                    chunk.content_hash,
                    fields.source_hash,
                    fields.topic,
                    packed_texts(fields.keywords),
                    chunk.token_count,
                    chunk.word_count,
                    chunk.char_count,
                )
            )


_COPIED = [
    *("uuid", "int4", "int4", "int4", "int4", "text", "text", "bytea", "text"),
    *("uuid", "uuid", "uuid", "text", "text", "text", "bytea", "int4", "int4", "int4"),
]


async def update(connection: Connection, rows: Sequence[tuple[Chunk, ChunkFields]]) -> None:
    """Chunks whose text is as before keep their row, and with it their vectors."""
    async with connection.cursor() as cursor:
        await cursor.executemany(
            SQL["update_chunk"],
            [
                {
                    "id": chunk.id,
                    "ordinal": chunk.ordinal,
                    "total_chunks": fields.total_chunks,
                    "title": fields.title,
                    "heading_path": list(chunk.heading_path),
                    "section_id": chunk.section_id,
                    "previous_id": chunk.previous_id,
                    "next_id": chunk.next_id,
                    "source_hash": fields.source_hash,
                    "topic": fields.topic,
                    "keywords": fields.keywords,
                    "token_count": chunk.token_count,
                }
                for chunk, fields in rows
            ],
        )


async def by_id(
    connection: Connection, collection: CollectionId, chunks: Sequence[UUID]
) -> Mapping[ChunkId, StoredChunk]:
    """Those of the chunks that exist in this collection."""
    async with connection.cursor(binary=True, row_factory=class_row(StoredChunk)) as cursor:
        await cursor.execute(
            SQL["chunks_by_id"], {"collection": collection, "chunks": list(chunks)}
        )
        return {chunk.id: chunk for chunk in await cursor.fetchall()}


async def draw(
    connection: Connection, collection: CollectionId, *, seed: int, limit: int
) -> list[StoredChunk]:
    """Chunks drawn by chance; the same seed and content give the same ones in the same order."""
    async with connection.cursor(row_factory=class_row(StoredChunk)) as cursor:
        await cursor.execute(
            SQL["draw_chunks"], {"collection": collection, "seed": seed, "limit": limit}
        )
        return await cursor.fetchall()


async def documents_of(
    connection: Connection, collection: CollectionId, chunks: Sequence[ChunkId]
) -> dict[ChunkId, DocumentId]:
    """The documents of those chunks that exist in this collection."""
    cursor = await connection.execute(
        SQL["documents_of_chunks"], {"collection": collection, "chunks": list(chunks)}
    )
    return dict(await cursor.fetchall())
