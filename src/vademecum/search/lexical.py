"""The words of a query to the chunks that hold them, by BM25, and by which words stand together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector

from vademecum.search.terms import query_terms, term_sequence
from vademecum.store.db import Connection
from vademecum.store.lexical import DIMENSIONS
from vademecum.store.sql import SQL
from vademecum.types import CollectionId, Scored

POSTINGS_CEILING = 20_000
"""Postings of the rarest terms that are scored at most; see the SQL function `lexical_hits`."""
PAIR_WEIGHT = 0.1
"""What a pair of query words that stand together counts, beside what the words count alone.
Measured: docs/decisions/0006-fusion.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedTerms:
    """The terms of a query that a collection knows, rarest first."""

    ids: list[int]
    weights: list[float]
    """Inverse document frequency times occurrences in the query."""
    chunks: list[int]
    """How many chunks hold each term."""
    pairs: list[tuple[int, int]]
    """Ids of known terms that stand together in the query."""
    collection_chunks: int

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
    known = {term: term_id for term, term_id, _, _ in rows}
    sequence = pairwise(known.get(term) for term in term_sequence(text))
    return WeightedTerms(
        ids=list(known.values()),
        weights=[
            counts[term] * inverse_document_frequency(chunks, holding)
            for term, _, holding, chunks in rows
        ],
        chunks=[holding for _, _, holding, _ in rows],
        pairs=list(dict.fromkeys((a, b) for a, b in sequence if a is not None and b is not None)),
        collection_chunks=rows[0][3],
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
    return [
        Scored(chunk_id=chunk, document_id=document, score=score)
        for chunk, document, score in await cursor.fetchall()
    ]


def calibrated(
    query: WeightedTerms, bm25: NDArray[np.float64], sequences: Sequence[bytes]
) -> NDArray[np.float64]:
    """BM25 and pairs as a share of the most that any chunk could score, shape (chunks,).

    A pair's document frequency is counted among these chunks: those that hold it are mostly here.
    """
    held = pairs_held(sequences, query.pairs)
    weights = np.array(
        [
            inverse_document_frequency(query.collection_chunks, holding) if holding else 0.0
            for holding in held.sum(axis=0).tolist()
        ]
    )
    most = query.bound + PAIR_WEIGHT * float(weights.sum())
    shares: NDArray[np.float64] = (bm25 + PAIR_WEIGHT * (held @ weights)) / most
    return shares


def pairs_held(sequences: Sequence[bytes], pairs: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Which of the pairs stand together in which sequence, shape (sequences, pairs)."""
    held = np.zeros((len(sequences), len(pairs)), dtype=np.bool_)
    if not pairs:
        return held
    # One array for all, a 0 between: it is no term's id.
    joined = np.frombuffer(b"\0\0\0\0".join(sequences), dtype="<i4")
    ends = np.cumsum([len(sequence) // 4 + 1 for sequence in sequences])
    for column, (first, second) in enumerate(pairs):
        places = np.flatnonzero((joined[:-1] == first) & (joined[1:] == second))
        held[np.searchsorted(ends, places, side="right"), column] = True
    return held
