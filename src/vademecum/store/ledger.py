"""The ledger of a knowledge base: what was done for each document, and what is known of it."""

from collections.abc import Collection as Ids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import ChunkId, CollectionId, DocumentId


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentCard:
    """What is known of a document as a whole."""

    topic: str
    language: str
    """ISO 639-1 code, empty where it cannot be told."""
    summary6: tuple[str, ...]
    """Six bullets of at most 200 characters."""
    summary6_by: str = ""
    """The language model and prompt that wrote them; empty where they are extractive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """A document and when each step was done for its present content; None is still to do."""

    document_id: DocumentId
    path: str
    title: str
    sha256: str
    discovered_at: datetime
    chunked_at: datetime | None
    embedded_at: datetime | None
    upserted_at: datetime | None
    summary6_at: datetime | None
    topic: str
    language: str
    summary6: list[str]
    vector_count: int
    notes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A document that changed."""

    path: str
    title: str
    url: str | None
    modified_at: datetime | None
    updated_at: datetime


async def chunked(
    connection: Connection, cards: Sequence[tuple[DocumentId, datetime, DocumentCard]]
) -> None:
    """Note documents as split, each with the `updated_at` it was taken up with."""
    async with connection.cursor() as cursor:
        await cursor.executemany(
            SQL["ledger_chunked"],
            [
                {
                    "document": document,
                    "updated_at": updated_at,
                    "topic": card.topic,
                    "language": card.language,
                    "summary6": list(card.summary6),
                    "summary6_by": card.summary6_by,
                }
                for document, updated_at, card in cards
            ],
        )


async def summary_written(
    connection: Connection, document: DocumentId, by: str
) -> tuple[str, ...] | None:
    """The summary that a writer made of the document's present content, if it did."""
    cursor = await connection.execute(SQL["summary_written"], {"document": document, "by": by})
    row = await cursor.fetchone()
    return tuple(row[0]) if row else None


async def embedded(connection: Connection, documents: Ids[DocumentId]) -> None:
    await connection.execute(SQL["ledger_embedded"], {"documents": list(documents)})


async def upserted(connection: Connection, vectors: Mapping[DocumentId, int]) -> None:
    """Note documents as searchable, with their numbers of vectors; in the swap's transaction."""
    async with connection.cursor() as cursor:
        await cursor.executemany(
            SQL["ledger_upserted"],
            [{"document": document, "vectors": count} for document, count in vectors.items()],
        )


async def rows(connection: Connection, collection: CollectionId) -> list[LedgerRow]:
    """By path."""
    async with connection.cursor(row_factory=class_row(LedgerRow)) as cursor:
        await cursor.execute(SQL["ledger"], {"collection": collection})
        return await cursor.fetchall()


async def recent(connection: Connection, collection: CollectionId, limit: int) -> list[Update]:
    """The documents that changed last, newest first."""
    async with connection.cursor(row_factory=class_row(Update)) as cursor:
        await cursor.execute(SQL["recent_updates"], {"collection": collection, "limit": limit})
        return await cursor.fetchall()


async def set_root(connection: Connection, collection: CollectionId, root: str) -> None:
    """Note the folder that the collection mirrors."""
    await connection.execute(SQL["set_collection_root"], {"collection": collection, "root": root})


async def root(connection: Connection, collection: CollectionId) -> str | None:
    cursor = await connection.execute(SQL["collection_root"], {"collection": collection})
    row = await cursor.fetchone()
    return row[0] if row else None


async def chunk_metadata(
    connection: Connection, collection: CollectionId, chunks: Ids[ChunkId]
) -> dict[ChunkId, dict[str, object]]:
    """Every key of the metadata schema, by chunk."""
    cursor = await connection.execute(
        SQL["chunk_metadata"], {"collection": collection, "chunks": list(chunks)}
    )
    return dict(await cursor.fetchall())
