"""Candidates: every chunk that a retriever found, as both retrievers see it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vademecum.ranking import Ranking, by_id, chunk_id, joined
from vademecum.search.lexical import LexicalRanking, Matches, calibrated, looked_up
from vademecum.types import ChunkId


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Chunks that may be hits, in the order of their ids; arrays of shape (chunks,)."""

    found: Ranking
    numbers: NDArray[np.int64]
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
        return len(self.found)

    def chunk_id(self, index: int) -> ChunkId:
        return chunk_id(self.found[index])


def candidates(
    words: LexicalRanking | None, matches: Matches | None, near: Ranking | None
) -> Candidates:
    """The chunks of both rankings, of which one may be None, with both scores."""
    both = [near, None if words is None else words.hits]
    found = joined(ranking for ranking in both if ranking is not None)
    # A chunk without a number is no more.
    there = found["number"] >= 0
    outdated = not there.all()
    # By number, which is quicker to look up than an id; of a chunk in both the first.
    _, first = np.unique(found["number"][there], return_index=True)
    places = np.flatnonzero(there)[first]
    places = places[by_id(found[places])]
    found = found[places]
    numbers = found["number"].astype(np.int64)
    bm25 = lexical = dense = np.zeros(len(found))
    if matches is not None and words is not None:
        bm25 = matches.scores(numbers)
        lexical = calibrated(matches, bm25, looked_up(words.pairs, words.numbers, numbers))
        dense = looked_up(words.similarities, words.numbers, numbers)
        outdated |= bool((numbers >= matches.statistics.next_number).any())
    if near is not None:
        dense = np.where(places < len(near), found["score"], dense)
    return Candidates(
        found=found,
        numbers=numbers,
        documents=found["document"].astype(np.int64),
        bm25=bm25,
        lexical=lexical,
        dense=dense,
        outdated=outdated,
    )
