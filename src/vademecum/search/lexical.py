"""The words of a query to the chunks that hold them, by BM25, and by which words stand together.

BM25 of Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
in the form that Lucene uses: score = Σ idf(t) · tf / (tf + k1 · (1 - b + b · length / average)).
Every posting of every word is scored: exact, and faster than choosing among them.
"""

import math
from collections.abc import Collection as Ids
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vademecum.ranking import Ranking, let_through
from vademecum.search.proximity import pairs_held
from vademecum.search.terms import query_terms, term_sequence
from vademecum.store import lexical
from vademecum.store.db import Connection
from vademecum.store.lexical import Entries, KeptEntries, Statistics
from vademecum.types import CollectionId, DocumentId, SpaceId, Vector
from vademecum.vectors.view import View

K1 = 1.2
B = 0.75
PAIR_WEIGHT = 0.1
"""What a pair of query words that stand together counts, beside what the words count alone.
Measured, as the next: docs/decisions/0006-fusion.md."""
NEAR_WEIGHT = 0.08
"""What a query word counts by the others near it, all of them together."""

DENSE = 32
"""With so many chunks an entry, or fewer, adding up in an array of all chunks is faster than
sorting the entries. Measured: 385 000 entries of 458 000 chunks take 1 ms so, 17 ms sorted."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""Below any score of a chunk that holds a word."""

SEEDS = 10
"""Chunks of the rarest words that the best are first looked for among, for each one wanted."""

T = TypeVar("T", bound=np.generic)

MOST_EQUALS = 500
"""Chunks that score as the last one of a ranking, of which the ids are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The chunks that hold a word of the query, with their scores."""

    numbers: NDArray[np.int64] | None
    """Ascending, shape (scores,); None where each number has its place among the scores."""
    bm25: NDArray[np.float64]
    """Shape (scores,); 0 for a chunk that holds no word."""
    rarest: Sequence[NDArray[np.int32]]
    """The numbers of the chunks that hold each word, the rarest first."""
    bound: float
    """No chunk scores this much: a saturated frequency is below 1."""
    words: Sequence[int]
    """Ids of its known terms, stop words left out, each once."""
    pairs: Sequence[tuple[int, int]]
    """Of these, those that stand together in the query."""
    statistics: Statistics
    """Chunks written since have its next number, or a larger one, and may hold the words too."""

    @property
    def paired(self) -> bool:
        """Whether it has words that may stand together."""
        return bool(self.pairs) or len(self.words) > 1

    def best(self, limit: int) -> NDArray[np.int64]:
        """The numbers of the best of them, and of those that equal the last; ascending."""
        # So many score at least this much: the others need not be put in order.
        places = np.flatnonzero(self.bm25 >= self._among_rarest(limit))
        scores = self.bm25[places]
        if limit < len(places):
            places = places[scores >= np.partition(scores, -limit)[-limit]]
        if len(places) > limit + MOST_EQUALS:
            best = np.lexsort((places, -self.bm25[places]))[: limit + MOST_EQUALS]
            places = np.sort(places[best])
        return places if self.numbers is None else self.numbers[places]

    def _among_rarest(self, limit: int) -> float:
        """The score of the last of the best among chunks of the rarest words; as little as can be
        where there are not so many."""
        some, count = [], 0
        for numbers in self.rarest:
            some.append(numbers[: SEEDS * limit])
            count += len(some[-1])
            if count >= SEEDS * limit:
                break
        held = np.sort(np.concatenate(some, dtype=np.int64))
        held = held[np.diff(held, prepend=-1) > 0]  # each once
        if len(held) < limit:
            return SMALLEST
        return float(np.partition(self.scores(held), -limit)[-limit])

    def scores(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of chunks by number; 0 for one that holds no word of the query."""
        if self.numbers is not None:
            return looked_up(self.bm25, self.numbers, numbers)
        known = numbers < len(self.bm25)
        scores = np.zeros(len(numbers))
        scores[known] = self.bm25[numbers[known]]
        return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalRanking:
    """The best matches, best first, and what else was read of them and of some that equal them."""

    hits: Ranking
    numbers: NDArray[np.int64]
    """Of all that were read, ascending; shape (read,)."""
    similarities: NDArray[np.float64]
    """Of these: cosine similarity of the best window, 0 without vectors; shape (read,)."""
    pairs: NDArray[np.bool_]
    """Of these: which pairs of the query stand together in them, and after those all pairs of its
    words that are near each other in any of them; shape (read, pairs)."""
    outdated: bool
    """Whether some of the best were written anew, or deleted, since they were looked up."""


def looked_up(
    values: NDArray[T], numbers: NDArray[np.int64], wanted: NDArray[np.int64]
) -> NDArray[T]:
    """Of each number wanted its value, or zeros where there is none; `values` has a row for each of
    `numbers`, which ascend."""
    if not len(numbers):
        return np.zeros((len(wanted), *values.shape[1:]), values.dtype)
    places = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    found = values[places]
    found[numbers[places] != wanted] = 0
    return found


def inverse_document_frequency(chunks: int, holding: int) -> float:
    """ln(1 + (N - n + ½) / (n + ½)): Robertson & Spärck Jones, kept positive as Lucene does."""
    return math.log(1 + (chunks - holding + 0.5) / (holding + 0.5))


async def matches(
    connection: Connection,
    collection: CollectionId,
    text: str,
    kept: KeptEntries,
    *,
    documents: Ids[DocumentId] | None = None,
) -> Matches | None:
    """All chunks that hold a word of the query, of all documents or of some; None where the
    collection knows none of its words."""
    counts = query_terms(text)
    found = await lexical.postings(connection, collection, counts, kept)
    if found is None:
        return None
    statistics, held = found
    weights = {
        one.term.term: counts[one.term.term]
        * inverse_document_frequency(statistics.chunk_count, one.term.chunk_count)
        for one in held
    }
    if documents is not None:
        passing = let_through(documents)
        held = [one.within(passing) for one in held]
    numbers, bm25 = _sums(
        [
            (part.numbers, weights[one.term.term], _saturated(part, statistics))
            for one in held
            for part in one.entries
        ],
        statistics.next_number,
    )
    known = {one.term.term: one.term.id for one in held}
    sequence = [known.get(term) for term in term_sequence(text)]
    return Matches(
        numbers=numbers,
        bm25=bm25,
        rarest=[part.numbers for one in held for part in one.entries],
        bound=sum(weights.values()),
        words=list(dict.fromkeys(one for one in sequence if one is not None)),
        pairs=list(
            dict.fromkeys((a, b) for a, b in pairwise(sequence) if a is not None and b is not None)
        ),
        statistics=statistics,
    )


def _saturated(part: Entries, statistics: Statistics) -> NDArray[np.float32]:
    """tf / (tf + k1 · (1 - b + b · length / average)) of each, in [0, 1)."""
    average = statistics.average_length
    if part.weighed is None or part.weighed[0] != average:
        frequencies = part.frequencies.astype(np.float64)
        shares = frequencies / (frequencies + K1 * (1 - B + B * part.lengths / average))
        part.weighed = average, shares.astype(np.float32)
    return part.weighed[1]


def _sums(
    parts: Sequence[tuple[NDArray[np.int32], float, NDArray[np.float32]]], next_number: int
) -> tuple[NDArray[np.int64] | None, NDArray[np.float64]]:
    """The sum of weighted shares of each number, which a part holds once: numbers and sums, or all
    sums by number. They are added up in the same order, and so are the same to the last bit."""
    if next_number <= DENSE * sum(len(numbers) for numbers, _, _ in parts):
        sums = np.zeros(next_number)
        for numbers, weight, shares in parts:
            sums[numbers] += np.float64(weight) * shares
        return None, sums
    keys = np.concatenate([numbers for numbers, _, _ in parts], dtype=np.int64)
    values = np.concatenate([np.float64(weight) * shares for _, weight, shares in parts])
    held, place = np.unique(keys, return_inverse=True)
    return held, np.asarray(np.bincount(place, values, len(held)), np.float64)


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
    numbers = found.best(limit)
    read = await lexical.chunks_of(
        connection, collection, numbers, sequences=found.paired, near=near
    )
    return _ranked(found, numbers, read, limit)


def best_kept(view: View, found: Matches, *, limit: int) -> LexicalRanking:
    """As `best_matches`, of a collection that is kept in memory, with no similarities yet."""
    numbers = found.best(limit)
    read = view.chunks_of(numbers, sequences=found.paired)
    return _ranked(found, numbers, read, limit)


def _ranked(
    found: Matches, numbers: NDArray[np.int64], read: lexical.Numbered, limit: int
) -> LexicalRanking:
    there = read.found["number"].astype(np.int64)
    hits = read.found.copy()
    hits["score"] = found.scores(there)
    best = np.lexsort((hits["low"], hits["high"], -hits["score"]))[:limit]
    return LexicalRanking(
        hits=hits[best],
        numbers=there,
        similarities=read.found["score"].astype(np.float64),
        pairs=pairs_held(read.sequences, read.lengths, found.words, found.pairs)
        if found.paired
        else np.zeros((len(there), 0), np.bool_),
        outdated=len(there) < len(numbers),
    )


def calibrated(
    query: Matches, bm25: NDArray[np.float64], pairs: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """BM25 and pairs as a share of the most that any chunk could score, shape (chunks,); `pairs`
    is which chunk holds which, shape (chunks, pairs).

    A pair's document frequency is counted among these chunks: those that hold it are mostly here.
    A word has so many others that may be near it, which therefore share what they count.
    """
    weights = np.full(pairs.shape[1], NEAR_WEIGHT / max(1, len(query.words) - 1))
    weights[: len(query.pairs)] = PAIR_WEIGHT
    weights *= [
        inverse_document_frequency(query.statistics.chunk_count, holding) if holding else 0.0
        for holding in pairs.sum(axis=0).tolist()
    ]
    # Not as a product of matrices: its last bit may depend on which row of them a chunk is.
    beside = np.where(pairs, weights, 0.0).sum(axis=1)
    shares: NDArray[np.float64] = (bm25 + beside) / (query.bound + float(weights.sum()))
    return shares
