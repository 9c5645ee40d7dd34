"""The lexical index: for each term the chunks that hold it, with what BM25 wants to know of them.

Chunks of a collection are numbered in the order they are written. What is written together is a
segment, a range of numbers; a term has one row of packed postings for each segment. Newer segments
are merged as they grow in number, so that a query reads few rows; chunks that are gone are listed
with their segment until it is merged (after Lucene's segments; the tables are explained in
migrations/0023_postings.sql).
"""

from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import adapters, sql

from vademecum.store import embeddings
from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import ChunkId, CollectionId, DocumentId, SpaceId, Vector

POSTING = np.dtype(
    [("number", ">i4"), ("document", ">i4"), ("frequency", ">i2"), ("length", ">i2")]
)
"""An entry of a term's row: a chunk that holds it."""
NUMBER = np.dtype(">i4")
"""Of a chunk that is gone."""
NUMBERED_CHUNKS = """
SELECT t.number, t.chunk_id, t.document_id, CASE WHEN %(sequences)s THEN t.sequence END,
       {similarity}
  FROM chunk_terms t WHERE t.collection_id = %(collection)s AND t.number = ANY (%(numbers)s)
"""
SIMILARITY = (
    "(SELECT 1 - min(e.embedding <=> %(vector)s) FROM {table} e WHERE e.chunk_id = t.chunk_id)"
)
MOST = 32767
"""The largest frequency and length that an entry holds; more count as so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """The terms of one chunk with their frequencies; `length` is their sum."""

    chunk_id: ChunkId
    document_id: DocumentId
    frequencies: Mapping[str, int]
    sequence: Sequence[str]
    """Terms of title and text in order, stop words left out: what stands beside what."""

    @property
    def length(self) -> int:
        return sum(self.frequencies.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term of a collection, and how many of its chunks hold it."""

    id: int
    term: str
    chunk_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Of a collection."""

    chunk_count: int
    average_length: float
    next_number: int
    """What is written later has this number, or a larger one."""


class Lexicon:
    """Term ids of collections. They never change, so they are kept in memory."""

    def __init__(self) -> None:
        self._ids: dict[CollectionId, dict[str, int]] = {}

    async def ids(
        self, connection: Connection, collection: CollectionId, terms: Iterable[str]
    ) -> dict[str, int]:
        """The id of each term; new terms get one. Call outside a transaction: what is kept
        here must be durable."""
        known = self._ids.setdefault(collection, {})
        missing = sorted({term for term in terms if term not in known})
        if missing:
            values = {"collection": collection, "terms": missing}
            await connection.execute(SQL["add_terms"], values)
            cursor = await connection.execute(SQL["term_ids"], values)
            known.update(await cursor.fetchall())
        return known


async def insert(
    connection: Connection,
    collection: CollectionId,
    rows: Sequence[Postings],
    ids: Mapping[str, int],
) -> None:
    """Postings of new chunks, a segment; call inside the transaction that writes the chunks."""
    if not rows:
        return
    cursor = await connection.execute(
        SQL["number_chunks"], {"collection": collection, "chunks": len(rows)}
    )
    numbered = await cursor.fetchone()
    assert numbered is not None
    first = int(numbered[0])
    async with connection.cursor() as cursor, cursor.copy(SQL["copy_chunk_terms"]) as copy:
        # Arrays are made here as the server reads them: element by element that takes long.
        copy.set_types(["uuid", "int4", "int4", "int4", "int4", "bytea", "bytea", "bytea"])
        for number, row in enumerate(rows, first):
            found = np.array([ids[term] for term in row.frequencies], np.int32)
            counts = np.array(list(row.frequencies.values()), np.int64)
            order = np.argsort(found)
            await copy.write_row(
                (
                    row.chunk_id,
                    row.document_id,
                    collection,
                    number,
                    row.length,
                    _array(found[order], "int4"),
                    _array(np.minimum(counts[order], MOST), "int2"),
                    np.array([ids[term] for term in row.sequence], dtype="<i4").tobytes(),
                )
            )
    await _pack(connection, collection, first, first + len(rows))


def _array(numbers: NDArray[np.integer[Any]], kind: Literal["int4", "int2"]) -> bytes:
    """An array of PostgreSQL in its binary form: dimensions, whether any is null, type, length,
    first index, and before each number its size."""
    size = {"int4": 4, "int2": 2}[kind]
    oid = adapters.types[kind].oid
    head = [1, 0, oid, len(numbers), 1] if len(numbers) else [0, 0, oid]
    entries = np.empty(len(numbers), [("size", ">i4"), ("number", f">i{size}")])
    entries["size"], entries["number"] = size, numbers
    return np.array(head, ">i4").tobytes() + entries.tobytes()


async def delete(connection: Connection, chunks: Ids[ChunkId]) -> None:
    await connection.execute(SQL["delete_chunk_terms"], {"chunks": list(chunks)})


async def lock(connection: Connection, collection: CollectionId) -> None:
    """Let other writers of the collection's chunks wait until the transaction ends."""
    await connection.execute(SQL["lock_lexical_statistics"], {"collection": collection})


async def merge(connection: Connection, collection: CollectionId) -> bool:
    """Make one segment of the newest ones, where these are too many; whether it had to.

    Searches go on meanwhile, other writers of the collection wait.
    """
    async with connection.transaction():
        await lock(connection, collection)
        cursor = await connection.execute(SQL["segments"], {"collection": collection})
        segments = [Segment(*row) for row in await cursor.fetchall()]
        due = to_merge(segments)
        if not due:
            return False
        first, after = due[0].first, due[-1].after
        values = {"collection": collection, "first": first, "after": after}
        await connection.execute(SQL["drop_segments"], values)
        await _pack(connection, collection, first, after)
    return True


@dataclass(frozen=True, slots=True)
class Segment:
    """Chunks that were written, or merged, together."""

    first: int
    after: int
    chunks: int
    left: int
    """Of the chunks, those that still are."""


def to_merge(segments: Sequence[Segment]) -> Sequence[Segment]:
    """The newest segments, from the first on that is no larger than all newer ones together, or of
    whose chunks half are gone.

    What remains are at most log2(n) segments, and a chunk is merged about as often (the logarithmic
    method, Bentley & Saxe 1980).
    """
    start, newer = len(segments), 0
    for place in reversed(range(len(segments))):
        segment = segments[place]
        if segment.left <= newer or 2 * segment.left <= segment.chunks:
            start = place
        newer += segment.left
    return segments[start:]


async def _pack(connection: Connection, collection: CollectionId, first: int, after: int) -> None:
    values = {"collection": collection, "first": first, "after": after}
    await connection.execute(SQL["pack_postings"], values)
    await connection.execute(SQL["add_segment"], values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Terms of a collection, rarest first, and all chunks that hold them."""

    statistics: Statistics
    terms: Sequence[Term]
    entries: NDArray[np.void]
    """Of type POSTING, shape (entries,): those of each term, one term after the other."""
    lengths: Sequence[int]
    """How many entries each term has."""


async def postings(
    connection: Connection, collection: CollectionId, terms: Iterable[str]
) -> Held | None:
    """Those of the terms that the collection holds; None where there is none."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(SQL["postings"], {"collection": collection, "terms": list(terms)})
    rows = await cursor.fetchall()
    if not rows:
        return None
    packed: list[bytes] = []
    known: list[Term] = []
    lengths: list[int] = []
    for term, term_id, chunks, entries, dropped, *_ in rows:
        if not known or known[-1].id != term_id:
            known.append(Term(id=term_id, term=term, chunk_count=chunks))
            lengths.append(0)
        packed.append(_without(entries, dropped) if dropped else entries)
        lengths[-1] += len(packed[-1]) // POSTING.itemsize
    chunk_count, average_length, next_number = rows[0][5:]
    return Held(
        statistics=Statistics(
            chunk_count=chunk_count, average_length=average_length, next_number=next_number
        ),
        terms=known,
        entries=np.frombuffer(b"".join(packed), POSTING),
        lengths=lengths,
    )


def _without(entries: bytes, dropped: bytes) -> bytes:
    found = np.frombuffer(entries, POSTING)
    return found[~np.isin(found["number"], np.frombuffer(dropped, NUMBER))].tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedChunk:
    number: int
    chunk_id: ChunkId
    document_id: DocumentId
    sequence: bytes
    """Ids of its terms in order; empty where it was not asked for."""
    similarity: float
    """The cosine similarity of its best window; 0 without vectors."""


async def chunks_of(
    connection: Connection,
    collection: CollectionId,
    numbers: Sequence[int],
    *,
    sequences: bool,
    near: tuple[SpaceId, Vector] | None,
) -> list[NumberedChunk]:
    """Those of the chunks that exist, with the sequence of terms and the similarity to a vector of
    a space where they are wanted."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        _numbered_chunks(embeddings.table(near[0]) if near else None),
        {"collection": collection, "numbers": list(numbers), "sequences": sequences}
        | ({"vector": HalfVector(near[1])} if near else {}),
    )
    return [
        NumberedChunk(
            number=number,
            chunk_id=chunk,
            document_id=document,
            sequence=sequence or b"",
            similarity=similarity or 0.0,
        )
        for number, chunk, document, sequence, similarity in await cursor.fetchall()
    ]


@cache
def _numbered_chunks(table: str | None) -> bytes:
    similarity = sql.SQL(SIMILARITY if table else "NULL").format(table=sql.Identifier(table or ""))
    return sql.SQL(NUMBERED_CHUNKS).format(similarity=similarity).as_bytes()


async def numbers_of(connection: Connection, chunks: Ids[ChunkId]) -> dict[ChunkId, int]:
    """The numbers of those of the chunks that exist."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(SQL["numbers_of_chunks"], {"chunks": list(chunks)})
    return dict(await cursor.fetchall())
