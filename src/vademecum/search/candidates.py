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
    found = {scored.chunk_id: scored for scored in near or ()}
    similarity = {chunk: scored.score for chunk, scored in found.items()}
    if words is not None:
        found |= {scored.chunk_id: scored for scored in words.hits}
        similarity = dict(words.similarities) | similarity
    chunks = sorted(found, key=lambda chunk: chunk.bytes)
    scored = [found[chunk] for chunk in chunks]
    bm25 = np.zeros(len(chunks))
    lexical = bm25
    outdated = False
    if matches is not None and words is not None:
        numbers = [-1 if one.number is None else one.number for one in scored]
        bm25 = matches.scores(numbers)
        lexical = calibrated(matches, bm25, [words.sequences.get(chunk, b"") for chunk in chunks])
        outdated = min(numbers, default=0) < 0 or max(numbers, default=0) >= matches.next_number
    return Candidates(
        chunks=chunks,
        documents=np.array([one.document_id for one in scored], np.int64),
        bm25=bm25,
        lexical=lexical,
        dense=np.array([similarity.get(chunk, 0.0) for chunk in chunks], np.float64),
        outdated=outdated,
    )
