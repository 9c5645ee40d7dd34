"""The words of a query to the chunks that hold them, by BM25."""

import math
from collections.abc import Collection as Ids
from dataclasses import dataclass

from pgvector import SparseVector

from vademecum.search.terms import query_terms
from vademecum.store.db import Connection
from vademecum.store.lexical import DIMENSIONS
from vademecum.store.sql import SQL
from vademecum.types import ChunkId, CollectionId, DocumentId, Scored

POSTINGS_CEILING = 20_000
"""Postings of the rarest terms that are scored at most; see the SQL function `lexical_hits`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A chunk's score, and where the chunk stands."""

    document_id: DocumentId
    section_id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedTerms:
    """The terms of a query that a collection knows, rarest first."""

    ids: list[int]
    weights: list[float]
    """Inverse document frequency times occurrences in the query."""
    chunks: list[int]
    """How many chunks hold each term."""

    @property
    def bound(self) -> float:
        """No chunk scores this much: a saturated frequency is below 1."""
        return sum(self.weights)

    @property
    def vector(self) -> SparseVector:
        """What a chunk's weights are multiplied with for its score."""
        return SparseVector(
            {term - 1: weight for term, weight in zip(self.ids, self.weights, strict=True)},
            DIMENSIONS,
        )


def inverse_document_frequency(chunks: int, holding: int) -> float:
    """ln(1 + (N - n + ½) / (n + ½)): Robertson & Spärck Jones, kept positive as Lucene does."""
    return math.log(1 + (chunks - holding + 0.5) / (holding + 0.5))


async def weighted_terms(
    connection: Connection, collection: CollectionId, text: str
) -> WeightedTerms | None:
    """The known terms of a query; None where there is none."""
    counts = query_terms(text)
    cursor = await connection.execute(
        SQL["known_terms"], {"collection": collection, "terms": list(counts)}
    )
    rows = await cursor.fetchall()
    if not rows:
        return None
    return WeightedTerms(
        ids=[term_id for _, term_id, _, _ in rows],
        weights=[
            counts[term] * inverse_document_frequency(chunks, holding)
            for term, _, holding, chunks in rows
        ],
        chunks=[holding for _, _, holding, _ in rows],
    )


async def lexical_hits(
    connection: Connection,
    query: WeightedTerms,
    *,
    limit: int,
    exact: int | None = None,
    keyword: str | None = None,
    ceiling: int = POSTINGS_CEILING,
) -> list[Scored]:
    """The chunks that match best, best first; the first `exact` of them are surely the best."""
    cursor = await connection.execute(
        SQL["lexical_hits"],
        {
            "ids": query.ids,
            "weights": query.weights,
            "chunks": query.chunks,
            "keyword": keyword,
            "limit": limit,
            "exact": min(limit, exact or limit),
            "ceiling": ceiling,
        },
    )
    return [Scored(chunk_id=chunk, score=score) for chunk, score in await cursor.fetchall()]


async def lexical_scores(
    connection: Connection,
    collection: CollectionId,
    query: WeightedTerms | None,
    candidates: Ids[ChunkId],
) -> dict[ChunkId, Placed]:
    """The BM25 score and the place of each candidate that exists in the collection."""
    cursor = await connection.execute(
        SQL["lexical_scores"],
        {
            "collection": collection,
            "query": query.vector if query else SparseVector({}, DIMENSIONS),
            "candidates": list(candidates),
        },
    )
    return {
        chunk: Placed(document_id=document, section_id=section, score=score)
        for chunk, document, section, score in await cursor.fetchall()
    }
