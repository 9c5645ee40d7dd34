"""Fusion: what the retrievers say of each candidate, to one ranking that explains itself.

Both scores are on one scale by what they mean and not by what the other candidates happen to
score: the cosine similarity as it is, and the words' score as a share of the most that any chunk
could have for the query. So scores compare between queries, and a retriever that finds nothing good
cannot pretend to.

The chunks of a document support one another: a document's score is the smooth maximum (log-sum-exp)
of its chunks' scores, for each retriever by itself, since the passage that says it in the query's
words and the one that means it need not be the same. One excellent chunk is as good as a few good
ones, and many mediocre ones add little. A document of one chunk keeps that chunk's score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vademecum.types import ChunkId, DocumentId

SHARPNESS = 20.0
"""Of the smooth maximum: a chunk 0.05 below the best still counts by a third (1/e).
Measured: docs/decisions/0006-fusion.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Chunks that may be hits, each with every retriever's score on the common scale."""

    chunks: Sequence[ChunkId]
    documents: Sequence[DocumentId]
    scores: Mapping[str, NDArray[np.float64]]
    """By retriever, shape (chunks,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """A chunk with its fused score, which is the sum of the shares."""

    chunk_id: ChunkId
    document_id: DocumentId
    score: float
    shares: Mapping[str, float]
    """By retriever, and by boost where there is one."""


def fuse(candidates: Candidates, weights: Mapping[str, float]) -> list[Fused]:
    """Candidates by their document's score and their own; best first, ties by id.

    The best chunk of a document has the document's score; each other one has less by as much as
    it is worse itself. `weights` are by retriever and sum up to 1.
    """
    if not candidates.chunks:
        return []
    _, document = np.unique(np.array(candidates.documents), return_inverse=True)
    own = sum(weight * candidates.scores[name] for name, weight in weights.items())
    best = _best_of_each(document, np.asarray(own))
    shares = {}
    for name, weight in weights.items():
        scores = candidates.scores[name]
        support = smooth_maximum(scores, document) - scores[best]
        shares[name] = weight * (scores + support[document])
    total = np.sum(list(shares.values()), axis=0)
    fused = [
        Fused(
            chunk_id=chunk,
            document_id=candidates.documents[index],
            score=float(total[index]),
            shares={name: float(values[index]) for name, values in shares.items()},
        )
        for index, chunk in enumerate(candidates.chunks)
    ]
    return sorted(fused, key=lambda hit: (-hit.score, hit.chunk_id))


def smooth_maximum(scores: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    """ln Σ exp(sharpness · score) / sharpness of each group, shape (groups,); at least the maximum,
    and just it for a group of one."""
    most = np.full(group.max() + 1, -np.inf)
    np.maximum.at(most, group, scores)
    sums = np.bincount(group, weights=np.exp(SHARPNESS * (scores - most[group])))
    smooth: NDArray[np.float64] = most + np.log(sums) / SHARPNESS
    return smooth


def _best_of_each(group: NDArray[np.intp], scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """The index of the best score of each group, shape (groups,)."""
    order = np.lexsort((scores, group))
    last = np.flatnonzero(np.diff(group[order], append=-1))
    best: NDArray[np.intp] = order[last]
    return best
