"""The words of a query to the chunks that hold them, by BM25, and by which words stand together.

BM25 of Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
in the form that Lucene uses: score = Σ idf(t) · tf / (tf + k1 · (1 - b + b · length / average)).
Every posting of every word is scored: exact, and faster than choosing among them.
"""

import math
from collections.abc import Collection as Ids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vademecum.search.terms import query_terms, term_sequence
from vademecum.store import lexical
from vademecum.store.db import Connection
from vademecum.types import CollectionId, DocumentId, Scored, SpaceId, Vector

K1 = 1.2
B = 0.75
PAIR_WEIGHT = 0.1
"""What a pair of query words that stand together counts, beside what the words count alone.
Measured: docs/decisions/0006-fusion.md."""

DENSE = 4
"""With fewer numbers than so many a posting, adding up in an array of all of them is faster than
sorting the postings: with 33 000 postings of 51 155 chunks it took a quarter of the time, with a
fifth as many postings as chunks the same."""

MOST_EQUALS = 500
"""Chunks that score as the last one of a ranking, of which the ids are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The chunks that hold a word of the query, by number; arrays of shape (chunks,)."""

    numbers: NDArray[np.int64]
    """Ascending."""
    bm25: NDArray[np.float64]
    bound: float
    """No chunk scores this much: a saturated frequency is below 1."""
    pairs: Sequence[tuple[int, int]]
    """Ids of known terms that stand together in the query."""
    collection_chunks: int
    next_number: int
    """Chunks written since have this number, or a larger one, and may hold the words too."""

    def best(self, limit: int) -> NDArray[np.intp]:
        """Where the best of them stand, and those that equal the last, in the order written."""
        if limit >= len(self.bm25):
            return np.arange(len(self.bm25))
        last = np.partition(self.bm25, -limit)[-limit]
        places = np.flatnonzero(self.bm25 >= last)
        if len(places) > limit + MOST_EQUALS:
            places = places[np.lexsort((places, -self.bm25[places]))][: limit + MOST_EQUALS]
        return places

    def scores(self, numbers: Sequence[int]) -> NDArray[np.float64]:
        """Of chunks by number; 0 for one that holds no word of the query."""
        if not len(self.numbers):
            return np.zeros(len(numbers))
        wanted = np.asarray(numbers, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        scores: NDArray[np.float64] = np.where(
            self.numbers[places] == wanted, self.bm25[places], 0.0
        )
        return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalRanking:
    """The best matches, best first, their terms in order, and how near they are to the query."""

    hits: Sequence[Scored]
    sequences: Mapping[int, bytes]
    """By number."""
    similarities: Mapping[int, float]
    """By number: cosine similarity of the best window; 0 without vectors."""
    outdated: bool
    """Whether some of the best were written anew, or deleted, since they were looked up."""


def inverse_document_frequency(chunks: int, holding: int) -> float:
    """ln(1 + (N - n + ½) / (n + ½)): Robertson & Spärck Jones, kept positive as Lucene does."""
    return math.log(1 + (chunks - holding + 0.5) / (holding + 0.5))


async def matches(
    connection: Connection,
    collection: CollectionId,
    text: str,
    *,
    documents: Ids[DocumentId] | None = None,
) -> Matches | None:
    """All chunks that hold a word of the query, of all documents or of some; None where the
    collection knows none of its words."""
    counts = query_terms(text)
    held = await lexical.postings(connection, collection, counts)
    if held is None:
        return None
    statistics, entries = held.statistics, held.entries
    weights = [
        counts[term.term] * inverse_document_frequency(statistics.chunk_count, term.chunk_count)
        for term in held.terms
    ]
    shares = np.repeat(weights, held.lengths)
    if documents is not None:
        let_through = np.isin(entries["document"], np.fromiter(documents, np.int64))
        entries, shares = entries[let_through], shares[let_through]
    length = entries["length"].astype(np.float64)
    numbers, bm25 = _sums(
        entries["number"].astype(np.int64),
        shares * saturated(entries["frequency"].astype(np.float64), length, statistics),
    )
    known = {term.term: term.id for term in held.terms}
    sequence = pairwise(known.get(term) for term in term_sequence(text))
    return Matches(
        numbers=numbers,
        bm25=bm25,
        bound=sum(weights),
        pairs=list(dict.fromkeys((a, b) for a, b in sequence if a is not None and b is not None)),
        collection_chunks=statistics.chunk_count,
        next_number=statistics.next_number,
    )


def saturated(
    frequencies: NDArray[np.float64], length: NDArray[np.float64], statistics: lexical.Statistics
) -> NDArray[np.float64]:
    """tf / (tf + k1 · (1 - b + b · length / average)), each in [0, 1)."""
    return frequencies / (frequencies + K1 * (1 - B + B * length / statistics.average_length))


def _sums(
    keys: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Each key once, ascending, and the sum of its values, which are above zero."""
    if not len(keys):
        return keys, values
    if keys.max() < DENSE * len(keys):
        sums = np.asarray(np.bincount(keys, values), np.float64)
        held = np.flatnonzero(sums).astype(np.int64)
        return held, sums[held]
    # Added up in the same order as above, so that the sums are the same to the last bit.
    held, place = np.unique(keys, return_inverse=True)
    return held, np.asarray(np.bincount(place, values), np.float64)


async def best_matches(
    connection: Connection,
    collection: CollectionId,
    found: Matches,
    *,
    limit: int,
    near: tuple[SpaceId, Vector] | None = None,
) -> LexicalRanking:
    """The best matches that still exist; equals by id, which does not depend on who came first.

    `near` is the query as a vector of a space, to look at the same chunks by meaning.
    """
    places = found.best(limit)
    numbers = found.numbers[places].tolist()
    stored = await lexical.chunks_of(
        connection, collection, numbers, sequences=bool(found.pairs), near=near
    )
    score_of = dict(zip(numbers, found.bm25[places].tolist(), strict=True))
    hits = [
        Scored(
            chunk_id=chunk.chunk_id,
            document_id=chunk.document_id,
            score=score_of[chunk.number],
            number=chunk.number,
        )
        for chunk in stored
    ]
    return LexicalRanking(
        hits=sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id.int))[:limit],
        sequences={chunk.number: chunk.sequence for chunk in stored},
        similarities={chunk.number: chunk.similarity for chunk in stored},
        outdated=len(stored) < len(numbers),
    )


def calibrated(
    query: Matches, bm25: NDArray[np.float64], sequences: Sequence[bytes]
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
