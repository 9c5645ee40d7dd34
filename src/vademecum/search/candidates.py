"""Candidates: every chunk that a retriever found, as both retrievers see it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql

from vademecum.search.lexical import LexicalRanking, Matches, calibrated
from vademecum.store import embeddings
from vademecum.store.db import Connection
from vademecum.types import ChunkId, DocumentId, Scored, SpaceId, Vector

# What the words say of chunks found by meaning, and the meaning of chunks found by words.
OTHER_VIEW = """
SELECT chunk_id, number, NULL::float8 AS similarity
  FROM chunk_terms WHERE chunk_id = ANY (%(by_meaning)b)
UNION ALL
SELECT chunk_id, NULL, 1 - min(embedding <=> %(vector)s)
  FROM {table} WHERE chunk_id = ANY (%(by_words)b) GROUP BY chunk_id
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
    """Whether some were written after the words were looked up, or are gone."""

    def __len__(self) -> int:
        return len(self.chunks)


async def candidates(
    connection: Connection,
    *,
    words: LexicalRanking | None,
    matches: Matches | None,
    near: Sequence[Scored] | None,
    vector: Vector | None,
    space: SpaceId | None,
) -> Candidates:
    """The chunks of both rankings, of which one may be None, with both scores."""
    document_of: dict[ChunkId, DocumentId] = {}
    for ranking in (words.hits if words else (), near or ()):
        document_of |= {scored.chunk_id: scored.document_id for scored in ranking}
    numbers = dict(words.numbers) if words else {}
    similarity = {scored.chunk_id: scored.score for scored in near or ()}
    outdated = False
    if matches is not None and vector is not None and space is not None:
        by_meaning = similarity.keys() - numbers.keys()
        seen_numbers, seen_similarity = await _other_view(
            connection, space, vector, by_meaning, numbers.keys() - similarity.keys()
        )
        numbers |= seen_numbers
        similarity |= seen_similarity
        outdated = by_meaning > seen_numbers.keys() or any(
            number >= matches.next_number for number in seen_numbers.values()
        )
    chunks = sorted(document_of, key=lambda chunk: chunk.bytes)
    bm25 = np.zeros(len(chunks))
    lexical = bm25
    if matches is not None and words is not None:
        bm25 = matches.scores([numbers.get(chunk, -1) for chunk in chunks])
        lexical = calibrated(matches, bm25, [words.sequences.get(chunk, b"") for chunk in chunks])
    return Candidates(
        chunks=chunks,
        documents=np.array([document_of[chunk] for chunk in chunks], np.int64),
        bm25=bm25,
        lexical=lexical,
        dense=np.array([similarity.get(chunk, 0.0) for chunk in chunks], np.float64),
        outdated=outdated,
    )


async def _other_view(
    connection: Connection,
    space: SpaceId,
    vector: Vector,
    by_meaning: Collection[ChunkId],
    by_words: Collection[ChunkId],
) -> tuple[Mapping[ChunkId, int], Mapping[ChunkId, float]]:
    """The numbers of chunks found by meaning, the similarities of those found by words."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        sql.SQL(OTHER_VIEW).format(table=sql.Identifier(embeddings.table(space))),
        {
            "by_meaning": list(by_meaning),
            "by_words": list(by_words),
            "vector": HalfVector(vector),
        },
    )
    numbers: dict[ChunkId, int] = {}
    similarities: dict[ChunkId, float] = {}
    for chunk, number, similarity in await cursor.fetchall():
        if number is not None:
            numbers[chunk] = number
        else:
            similarities[chunk] = similarity
    return numbers, similarities
