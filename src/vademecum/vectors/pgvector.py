"""Nearest neighbours in PostgreSQL itself: pgvector's HNSW over the embedding space's table."""

from collections.abc import Collection as Ids
from collections.abc import Sequence
from functools import cache

import numpy as np
from pgvector import HalfVector
from psycopg import sql

from vademecum.ranking import PACKED, Ranking, scored, unpacked
from vademecum.store import embeddings, facets
from vademecum.store.arrays import Numbers
from vademecum.store.db import Connection, Database
from vademecum.store.embeddings import WHOLE, Embedding
from vademecum.types import ChunkId, CollectionId, DocumentId, Scored, SpaceId, Vector
from vademecum.vectors.index import ANY, Filter, IndexEntry, windows_for

# One statement, since each one more costs a round trip: the settings hold until its end, and the
# scan depends on them, so that they are in force before it begins.
NEAREST = """
WITH settings AS MATERIALIZED (
    SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true) AS iterative_scan,
           set_config('hnsw.ef_search', %(ef_search)s, true) AS ef_search
), nearest AS MATERIALIZED (
    SELECT found.*
      FROM settings,
           LATERAL (SELECT e.chunk_id, e.document_id, e.embedding <=> %(vector)s AS distance
                      FROM {table} e
                     WHERE e.collection_id = %(collection)s {within}
                       AND settings.ef_search IS NOT NULL
                     ORDER BY (e.embedding <=> %(vector)s){exactly}
                     LIMIT %(windows)s) found
)
SELECT string_agg({packed}, ''::bytea ORDER BY score DESC, chunk_id),
       (SELECT count(*) FROM nearest)
  FROM (SELECT chunk_id, document_id, 1 - min(distance) AS score,
               (SELECT t.number FROM chunk_terms t WHERE t.chunk_id = nearest.chunk_id) AS number
          FROM nearest
         GROUP BY chunk_id, document_id
         ORDER BY score DESC, chunk_id
         LIMIT %(limit)s) AS best
"""

WITHIN = "AND e.document_id = ANY (%(documents)s)"
EXACTLY = " + 0"
"""An expression that no index is made for: every row that passes the filter is looked at."""


VISIT = 14
"""What a step through the vector index costs, in comparisons of vectors that lie side by side.
Measured on 88 266 windows: 10.5 µs to 1.0; on 162 842, of which a tenth passes, about 16 to 1."""

COUNTED = 100
"""Documents whose windows are counted to know about how many all of a filter have."""

# A scan of the index makes some steps for every window wanted, and where only a share of the rows
# passes, so many times more; an exact one compares all that pass. Counted as far as it matters.
FEW = """
SELECT few.most > (SELECT count(*)
                     FROM (SELECT FROM {table} e
                            WHERE e.collection_id = %(collection)s {within}
                            LIMIT few.most) AS counted)
  FROM (SELECT (greatest(%(whole)s::float8, {share}) / %(every)s)::bigint AS most
          FROM pg_class WHERE oid = %(table)s::regclass) AS few
"""
SHARE = "sqrt(%(steps)s::float8 * greatest(reltuples, 0))"


async def nearest(
    connection: Connection,
    *,
    space: SpaceId,
    collection: CollectionId,
    vector: Vector,
    limit: int,
    documents: Sequence[DocumentId] | None = None,
    chunks: int = 0,
) -> Ranking:
    """The chunks whose best window is nearest, best first; the score is the cosine similarity.

    `chunks` is how many the collection is known to hold, at least.

    Of all documents of the collection, or of some; where these have few windows, all of them are
    compared, which is exact. Without the iterative scan an index scan that meets few rows of the
    collection would end with too few hits, or none. It too gives up after many rows; where it did,
    what passes the filter is compared one by one after all.
    """
    many = documents is None and chunks >= _whole(limit)
    few = not many and await _are_few(connection, space, collection, documents, limit)
    found, windows = await _found(connection, space, collection, vector, limit, documents, few)
    if documents is not None and windows < windows_for(limit) and not few:
        found, _ = await _found(connection, space, collection, vector, limit, documents, True)
    return found


def _steps(limit: int) -> int:
    """What a scan of the index for so many chunks costs, in comparisons."""
    return VISIT * windows_for(limit)


def _whole(limit: int) -> int:
    """So many windows are compared in about the time of a scan, where so many chunks are wanted."""
    return max(WHOLE, _steps(limit))


async def _are_few(
    connection: Connection,
    space: SpaceId,
    collection: CollectionId,
    documents: Sequence[DocumentId] | None,
    limit: int,
) -> bool:
    """Whether comparing all windows that pass is cheaper than a scan of the index."""
    table = embeddings.table(space)
    query = sql.SQL(FEW).format(
        table=sql.Identifier(table),
        within=sql.SQL(WITHIN if documents is not None else ""),
        share=sql.SQL(SHARE if documents is not None else "0"),
    )
    # Of many documents some are counted for all.
    every = 1 if documents is None else max(1, len(documents) // COUNTED)
    cursor = await connection.execute(
        query,
        {
            "collection": collection,
            "documents": _ids(documents if documents is None else documents[::every]),
            "table": table,
            "whole": _whole(limit),
            "steps": _steps(limit),
            "every": every,
        },
    )
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


def _ids(documents: Sequence[DocumentId] | None) -> Numbers | None:
    return None if documents is None else Numbers(np.array(documents, np.int32))


async def _found(
    connection: Connection,
    space: SpaceId,
    collection: CollectionId,
    vector: Vector,
    limit: int,
    documents: Sequence[DocumentId] | None,
    exactly: bool,
) -> tuple[Ranking, int]:
    """The nearest chunks, and how many windows were found."""
    windows = windows_for(limit)
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        _nearest(embeddings.table(space), filtered=documents is not None, exactly=exactly),
        {
            "vector": HalfVector(vector),
            "collection": collection,
            "documents": _ids(documents),
            "windows": windows,
            "ef_search": str(max(40, min(1000, windows))),
            "limit": limit,
        },
        # Few documents are best looked up by themselves, many by the vector index: planned with
        # these at hand.
        prepare=False if documents is not None else None,
    )
    row = await cursor.fetchone()
    assert row is not None
    return unpacked(row[0]), row[1]


@cache
def _nearest(table: str, *, filtered: bool, exactly: bool) -> bytes:
    return (
        sql.SQL(NEAREST)
        .format(
            table=sql.Identifier(table),
            within=sql.SQL(WITHIN if filtered else ""),
            exactly=sql.SQL(EXACTLY if exactly else ""),
            packed=sql.SQL(
                PACKED.format(
                    number="number", document="document_id", score="score", chunk="chunk_id"
                )
            ),
        )
        .as_bytes()
    )


async def similarities(
    connection: Connection, *, space: SpaceId, document: DocumentId, vector: Vector
) -> dict[ChunkId, float]:
    """The cosine similarity of the best window of every chunk of one document."""
    query = sql.SQL(
        "SELECT chunk_id, 1 - min(embedding <=> %(vector)s) FROM {table}"
        " WHERE document_id = %(document)s GROUP BY chunk_id"
    ).format(table=sql.Identifier(embeddings.table(space)))
    cursor = await connection.execute(query, {"vector": HalfVector(vector), "document": document})
    return {chunk: float(score) for chunk, score in await cursor.fetchall()}


class PgvectorIndex:
    """The VectorIndex of a collection in PostgreSQL itself: its vectors are the truth."""

    def __init__(self, database: Database, *, space: SpaceId, collection: CollectionId) -> None:
        self._database, self._space, self._collection = database, space, collection

    async def upsert(self, entries: Sequence[IndexEntry]) -> None:
        rows = [
            Embedding(
                chunk_id=entry.chunk_id,
                window_index=entry.window_index,
                document_id=entry.document_id,
                collection_id=self._collection,
                input_hash=entry.input_hash,
                vector=entry.vector,
            )
            for entry in entries
        ]
        async with self._database.transaction() as connection:
            await embeddings.delete(connection, self._space, {row.chunk_id for row in rows})
            await embeddings.insert(connection, self._space, rows)

    async def delete(self, chunks: Ids[ChunkId]) -> None:
        async with self._database.connection() as connection:
            await embeddings.delete(connection, self._space, chunks)

    async def nearest(self, vector: Vector, *, limit: int, where: Filter = ANY) -> list[Scored]:
        async with self._database.connection() as connection:
            documents = where.documents
            if documents is None and where.conditions:
                documents = await facets.matching(connection, self._collection, where.conditions)
            found = await nearest(
                connection,
                space=self._space,
                collection=self._collection,
                vector=vector,
                limit=limit,
                documents=documents,
            )
        return scored(found)

    async def exact(self, vector: Vector, *, limit: int) -> list[Scored]:
        """As `nearest`, with every vector of the collection looked at: the truth to compare to."""
        async with self._database.connection() as connection:
            found, _ = await _found(
                connection, self._space, self._collection, vector, limit, None, True
            )
        return scored(found)
