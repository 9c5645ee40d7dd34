"""Candidates: every chunk of the documents worth a closer look, as both retrievers see it."""

from collections.abc import Collection as Ids
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector
from psycopg import sql

from vademecum.search.lexical import WeightedTerms, calibrated
from vademecum.store import embeddings
from vademecum.store.db import Connection
from vademecum.store.lexical import DIMENSIONS
from vademecum.types import ChunkId, CollectionId, DocumentId, SpaceId, Vector

CHUNKS_PER_DOCUMENT = 20
"""Of a longer document only so many, and those that were found: a book should not slow down every
search."""
SEQUENCES = 64
"""Chunks that are looked through for pairs of words: the best by BM25."""

SCORES = """
WITH scored AS MATERIALIZED (
    SELECT t.chunk_id, t.document_id, -(t.weights <#> %(query)s) AS bm25
      FROM unnest(%(documents)s::integer[]) AS wanted (id),
           LATERAL (SELECT * FROM chunk_terms
                     WHERE document_id = wanted.id AND collection_id = %(collection)s
                     LIMIT %(chunks_per_document)s) t
    UNION
    SELECT t.chunk_id, t.document_id, -(t.weights <#> %(query)s)
      FROM chunk_terms t
     WHERE t.chunk_id = ANY (%(found)s) AND t.document_id = ANY (%(documents)s)
       AND t.collection_id = %(collection)s
), best AS (
    SELECT b.chunk_id, t.sequence
      FROM (SELECT chunk_id FROM scored ORDER BY bm25 DESC, chunk_id LIMIT %(sequences)s) b
      JOIN chunk_terms t ON t.chunk_id = b.chunk_id
)
SELECT s.chunk_id, s.document_id, s.bm25, b.sequence, {similarity}
  FROM scored s LEFT JOIN best b ON b.chunk_id = s.chunk_id {vectors}
 ORDER BY s.chunk_id
"""

VECTORS = """
  LEFT JOIN LATERAL (SELECT 1 - min(embedding <=> %(vector)s) AS similarity
                       FROM {table} WHERE chunk_id = s.chunk_id) e ON true
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

    def __len__(self) -> int:
        return len(self.chunks)


async def candidates(
    connection: Connection,
    *,
    collection: CollectionId,
    documents: Ids[DocumentId],
    found: Ids[ChunkId],
    terms: WeightedTerms | None,
    vector: Vector | None,
    space: SpaceId | None,
) -> Candidates:
    """The chunks of documents with both scores; of very long documents those found in any case."""
    dense = vector is not None and space is not None
    statement = sql.SQL(SCORES).format(
        similarity=sql.SQL("e.similarity" if dense else "NULL"),
        vectors=sql.SQL(VECTORS).format(table=sql.Identifier(embeddings.table(space)))
        if space is not None and dense
        else sql.SQL(""),
    )
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        statement,
        {
            "query": terms.vector if terms else SparseVector({}, DIMENSIONS),
            "vector": HalfVector(vector) if vector is not None else None,
            "documents": list(documents),
            "collection": collection,
            "found": list(found),
            "chunks_per_document": CHUNKS_PER_DOCUMENT,
            "sequences": SEQUENCES if terms and terms.pairs else 0,
        },
    )
    rows = await cursor.fetchall()
    bm25 = np.array([row[2] for row in rows], dtype=np.float64)
    return Candidates(
        chunks=[row[0] for row in rows],
        documents=np.array([row[1] for row in rows], dtype=np.int64),
        bm25=bm25,
        lexical=calibrated(terms, bm25, [row[3] or b"" for row in rows]) if terms else bm25,
        dense=np.array([row[4] or 0.0 for row in rows], dtype=np.float64),
    )
