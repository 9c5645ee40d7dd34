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

from vademecum.ranking import Ranking
from vademecum.search.proximity import pairs_held
from vademecum.search.terms import query_terms, term_sequence
from vademecum.store import lexical
from vademecum.store.db import Connection
from vademecum.store.lexical import KeptEntries
from vademecum.types import CollectionId, DocumentId, SpaceId, Vector

K1 = 1.2
B = 0.75
PAIR_WEIGHT = 0.1
"""What a pair of query words that stand together counts, beside what the words count alone.
Measured, as the next: docs/decisions/0006-fusion.md."""
NEAR_WEIGHT = 0.08
"""What a query word counts by the others near it, all of them together."""

DENSE = 4
"""With fewer numbers than so many a posting, adding up in an array of all of them is faster than
sorting the postings: with 33 000 postings of 51 155 chunks it took a quarter of the time, with a
fifth as many postings as chunks the same."""

T = TypeVar("T", bound=np.generic)

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
    words: Sequence[int]
    """Ids of its known terms, stop words left out, each once."""
    pairs: Sequence[tuple[int, int]]
    """Of these, those that stand together in the query."""
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

    def scores(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of chunks by number; 0 for one that holds no word of the query."""
        return looked_up(self.bm25, self.numbers, numbers)


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
        let_through = np.fromiter(documents, np.int32)
        held = [one.within(let_through) for one in held]
    entries = [part for one in held for part in one.entries]
    shares = np.repeat(
        [weights[one.term.term] for one in held for _ in one.entries], [len(e) for e in entries]
    )
    frequencies = np.concatenate([part.frequencies for part in entries], dtype=np.float64)
    lengths = np.concatenate([part.lengths for part in entries], dtype=np.float64)
    numbers, bm25 = _sums(
        np.concatenate([part.numbers for part in entries], dtype=np.int64),
        shares * saturated(frequencies, lengths, statistics),
    )
    known = {one.term.term: one.term.id for one in held}
    sequence = [known.get(term) for term in term_sequence(text)]
    return Matches(
        numbers=numbers,
        bm25=bm25,
        bound=sum(weights.values()),
        words=list(dict.fromkeys(one for one in sequence if one is not None)),
        pairs=list(
            dict.fromkeys((a, b) for a, b in pairwise(sequence) if a is not None and b is not None)
        ),
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
    numbers = found.numbers[places]
    paired = bool(found.pairs) or len(found.words) > 1
    read = await lexical.chunks_of(connection, collection, numbers, sequences=paired, near=near)
    there = read.found["number"].astype(np.int64)
    hits = read.found.copy()
    hits["score"] = found.scores(there)
    best = np.lexsort((hits["low"], hits["high"], -hits["score"]))[:limit]
    return LexicalRanking(
        hits=hits[best],
        numbers=there,
        similarities=read.found["score"].astype(np.float64),
        pairs=pairs_held(read.sequences, read.lengths, found.words, found.pairs)
        if paired
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
        inverse_document_frequency(query.collection_chunks, holding) if holding else 0.0
        for holding in pairs.sum(axis=0).tolist()
    ]
    shares: NDArray[np.float64] = (bm25 + pairs @ weights) / (query.bound + float(weights.sum()))
    return shares
