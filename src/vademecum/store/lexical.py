"""The lexical index: the saturated term frequencies of each chunk, as BM25 wants them.

BM25 of Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
in the form that Lucene uses: score = Σ idf(t) · tf / (tf + k1 · (1 - b + b · length / average)).
The part after idf is stored, the idf is the query's.
"""

from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import ChunkId, CollectionId, DocumentId

K1 = 1.2
B = 0.75
DIMENSIONS = 1_000_000_000
"""Of the sparse vectors: the largest that pgvector takes."""
PIVOT_TOLERANCE = 0.02
"""Weights are made again when the average length has moved by this share."""
REWEIGH_ROWS = 2000


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


def saturated(
    frequencies: NDArray[np.float64], length: float, average: float
) -> NDArray[np.float64]:
    """tf / (tf + k1 · (1 - b + b · length / average)), each in [0, 1)."""
    return frequencies / (frequencies + _norm(length, average))


def _norm(length: float, average: float) -> float:
    return K1 * (1 - B + B * length / average)


async def insert(
    connection: Connection,
    collection: CollectionId,
    rows: Sequence[Postings],
    ids: Mapping[str, int],
) -> None:
    """Postings of new chunks; call inside the transaction that writes the chunks.

    Locks the statistics of the collection, so that the weights are made with the pivot in force.
    """
    if not rows:
        return
    pivot = await _locked_pivot(connection, collection)
    if pivot is None:
        pivot = max(1.0, sum(row.length for row in rows) / len(rows))
        await connection.execute(
            SQL["set_lexical_pivot"], {"collection": collection, "pivot": pivot}
        )
    async with connection.cursor() as cursor, cursor.copy(SQL["copy_chunk_terms"]) as copy:
        copy.set_types(["uuid", "int4", "int4", "int4", "int4[]", "sparsevec", "bytea"])
        for row in rows:
            pairs = sorted((ids[term], count) for term, count in row.frequencies.items())
            term_ids = [pair[0] for pair in pairs]
            counts = np.array([pair[1] for pair in pairs], dtype=np.float64)
            weights = saturated(counts, row.length, pivot)
            await copy.write_row(
                (
                    row.chunk_id,
                    row.document_id,
                    collection,
                    row.length,
                    term_ids,
                    _sparse(term_ids, weights),
                    np.array([ids[term] for term in row.sequence], dtype="<i4").tobytes(),
                )
            )


async def delete(connection: Connection, chunks: Ids[ChunkId]) -> None:
    await connection.execute(SQL["delete_chunk_terms"], {"chunks": list(chunks)})


async def reweigh(
    connection: Connection, collection: CollectionId, *, tolerance: float = PIVOT_TOLERANCE
) -> bool:
    """Make the weights again where the average length has moved away from the pivot.

    Frequencies follow from the stored weights, so no text is read. Answers whether it had to.
    """
    async with connection.transaction():
        pivot = await _locked_pivot(connection, collection)
        cursor = await connection.execute(SQL["lexical_average"], {"collection": collection})
        row = await cursor.fetchone()
        average = row[0] if row else None
        if pivot is None or average is None or abs(average / pivot - 1) <= tolerance:
            return False
        async with connection.cursor(name="reweigh", binary=True) as rows:
            await rows.execute(SQL["lexical_weights"], {"collection": collection})
            while batch := await rows.fetchmany(REWEIGH_ROWS):
                await _rewrite(connection, batch, pivot, average)
        await connection.execute(
            SQL["set_lexical_pivot"], {"collection": collection, "pivot": average}
        )
    return True


async def _rewrite(
    connection: Connection,
    batch: Sequence[tuple[ChunkId, int, SparseVector]],
    pivot: float,
    average: float,
) -> None:
    updates = []
    for chunk, length, vector in batch:
        old = np.asarray(vector.values(), dtype=np.float64)
        frequencies = np.rint(old * _norm(length, pivot) / (1 - old))
        weights = saturated(frequencies, length, average)
        ids = [index + 1 for index in vector.indices()]
        updates.append({"chunk": chunk, "weights": _sparse(ids, weights)})
    async with connection.cursor() as cursor:
        await cursor.executemany(SQL["update_lexical_weights"], updates)


async def _locked_pivot(connection: Connection, collection: CollectionId) -> float | None:
    cursor = await connection.execute(SQL["lock_lexical_statistics"], {"collection": collection})
    row = await cursor.fetchone()
    return row[0] if row else None


def _sparse(ids: Sequence[int], weights: NDArray[np.float64]) -> SparseVector:
    """pgvector counts from 1, its Python class from 0."""
    return SparseVector(
        {term - 1: weight for term, weight in zip(ids, weights.tolist(), strict=True)}, DIMENSIONS
    )
