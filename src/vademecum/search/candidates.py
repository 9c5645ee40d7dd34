"""Candidates: every chunk that a retriever found, as both retrievers see it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vademecum.search.lexical import LexicalRanking, Matches, calibrated
from vademecum.types import ChunkId, Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Chunks that may be hits, in the order of their ids; arrays of shape (chunks,)."""

    chunks: list[ChunkId]
    numbers: list[int]
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


def candidates(
    words: LexicalRanking | None, matches: Matches | None, near: Sequence[Scored] | None
) -> Candidates:
    """The chunks of both rankings, of which one may be None, with both scores."""
    # By number, which is quicker to look up than an id. A chunk without one is no more.
    found = {one.number: one for one in near or () if one.number is not None}
    outdated = near is not None and len(found) < len(near)
    similarity = {number: one.score for number, one in found.items()}
    if words is not None:
        found |= {one.number: one for one in words.hits if one.number is not None}
        similarity = dict(words.similarities) | similarity
    scored = sorted(found.items(), key=lambda item: item[1].chunk_id.int)
    numbers = [number for number, _ in scored]
    bm25 = np.zeros(len(scored))
    lexical = bm25
    if matches is not None and words is not None:
        bm25 = matches.scores(numbers)
        lexical = calibrated(matches, bm25, [words.sequences.get(one, b"") for one in numbers])
        outdated |= max(numbers, default=-1) >= matches.next_number
    return Candidates(
        chunks=[one.chunk_id for _, one in scored],
        numbers=numbers,
        documents=np.array([one.document_id for _, one in scored], np.int64),
        bm25=bm25,
        lexical=lexical,
        dense=np.array([similarity.get(one, 0.0) for one in numbers], np.float64),
        outdated=outdated,
    )
