"""Candidates: every chunk of the documents worth a closer look, as both retrievers see it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql

from vademecum.search.lexical import Matches, calibrated
from vademecum.store import embeddings
from vademecum.store.db import Connection
from vademecum.types import ChunkId, CollectionId, DocumentId, Scored, SpaceId, Vector

CHUNKS_PER_DOCUMENT = 12
"""Of a longer document only so many, and those that were found: a book should not slow down every
search."""
# The first chunks of each document, in the order of their ids, and those that were found.
TAKEN = """
WITH firsts AS MATERIALIZED (
    SELECT t.*
      FROM unnest(%(documents)s::integer[]) AS wanted (id),
           LATERAL (SELECT chunk_id, document_id, number FROM chunk_terms
                     WHERE document_id = wanted.id AND collection_id = %(collection)s
                     ORDER BY chunk_id LIMIT %(chunks_per_document)s) t
), others AS MATERIALIZED (
    SELECT t.*
      FROM unnest(%(found)b::uuid[]) AS found (id),
           LATERAL (SELECT chunk_id, document_id, number FROM chunk_terms
                     WHERE chunk_id = found.id AND collection_id = %(collection)s LIMIT 1) t
     WHERE t.chunk_id NOT IN (SELECT chunk_id FROM firsts)
), taken AS (
    SELECT * FROM firsts UNION ALL SELECT * FROM others
)
"""

LEXICAL = "SELECT chunk_id, document_id, number, NULL FROM taken ORDER BY chunk_id"

# An index holds the vectors of a document in the order of its chunks' ids: those of its first
# chunks are read in a row.
HYBRID = """
, similarities AS (
    SELECT e.*
      FROM (SELECT document_id, (array_agg(chunk_id ORDER BY chunk_id DESC))[1] AS last
              FROM firsts GROUP BY document_id) d,
           LATERAL (SELECT chunk_id, 1 - min(embedding <=> %(vector)s) AS similarity
                      FROM {table}
                     WHERE document_id = d.document_id AND chunk_id <= d.last
                     GROUP BY chunk_id) e
    UNION ALL
    SELECT o.chunk_id, e.similarity
      FROM others o,
           LATERAL (SELECT 1 - min(embedding <=> %(vector)s) AS similarity
                      FROM {table} WHERE chunk_id = o.chunk_id) e
)
SELECT chunk_id, document_id, number, similarity
  FROM taken LEFT JOIN similarities USING (chunk_id) ORDER BY chunk_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Chunks that may be hits, in the order of their ids; arrays of shape (chunks,)."""

    chunks: list[ChunkId]
    documents: NDArray[np.int64]
    bm25: NDArray[np.float64]
    """As an independent BM25 would score them."""
    lexical: NDArray[np.float64]
    """BM25 and pairs of words, as a share of the most that a chunk could score for the query."""
    dense: NDArray[np.float64]
    """Cosine similarity of the best window; 0 for a chunk without vectors."""
    outdated: bool
    """Whether some were written after the words were looked up, so that `bm25` is 0."""

    def __len__(self) -> int:
        return len(self.chunks)


async def candidates(
    connection: Connection,
    *,
    collection: CollectionId,
    documents: Collection[DocumentId],
    found: Iterable[Scored],
    matches: Matches | None,
    sequences: Mapping[int, bytes],
    vector: Vector | None,
    space: SpaceId | None,
) -> Candidates:
    """The chunks of documents with both scores; of very long documents those found in any case."""
    statement = sql.SQL(TAKEN + LEXICAL).format()
    if vector is not None and space is not None:
        statement = sql.SQL(TAKEN + HYBRID).format(table=sql.Identifier(embeddings.table(space)))
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        statement,
        {
            "vector": HalfVector(vector) if vector is not None else None,
            "documents": list(documents),
            "collection": collection,
            "found": list({s.chunk_id for s in found if s.document_id in documents}),
            "chunks_per_document": CHUNKS_PER_DOCUMENT,
        },
    )
    rows = await cursor.fetchall()
    chunks = [row[0] for row in rows]
    numbers = [row[2] for row in rows]
    bm25 = matches.scores(numbers) if matches else np.zeros(len(rows))
    return Candidates(
        chunks=chunks,
        documents=np.array([row[1] for row in rows], dtype=np.int64),
        bm25=bm25,
        lexical=calibrated(matches, bm25, [sequences.get(number, b"") for number in numbers])
        if matches
        else bm25,
        dense=np.array([row[3] or 0.0 for row in rows], dtype=np.float64),
        outdated=matches is not None and max(numbers, default=0) >= matches.next_number,
    )
