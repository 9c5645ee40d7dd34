"""Fusion: what the retrievers say of each candidate, to one score that explains itself.

Both scores are on one scale by what they mean and not by what the other candidates happen to
score: the cosine similarity as it is, and the words' score as a share of the most that any chunk
could have for the query. So scores compare between queries, and a retriever that finds nothing good
cannot pretend to.

The chunks of a document support one another: a document's score is the smooth maximum (log-sum-exp)
of its chunks' scores, for each retriever by itself, since the passage that says it in the query's
words and the one that means it need not be the same. One excellent chunk is as good as a few good
ones, and many mediocre ones add little. A document of one chunk keeps that chunk's score.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

WEIGHTS = {"lexical": 0.6, "dense": 0.4}
"""Of the retrievers where both take part. Measured: docs/decisions/0006-fusion.md."""
SHARPNESS = 20.0
"""Of the smooth maximum: a chunk 0.05 below the best still counts by a third (1/e).
Measured: docs/decisions/0006-fusion.md."""


def fuse(
    documents: NDArray[np.int64],
    scores: Mapping[str, NDArray[np.float64]],
    weights: Mapping[str, float],
) -> dict[str, NDArray[np.float64]]:
    """The share of each retriever in the score of each candidate; the score is their sum.

    `documents` and each of `scores` have shape (candidates,), and so have the shares. The best
    chunk of a document has the document's score; each other one has less by as much as it is worse
    itself. `weights` sum up to 1.
    """
    if not len(documents):
        return {name: np.empty(0) for name in weights}
    _, document = np.unique(documents, return_inverse=True)
    own = np.sum([weight * scores[name] for name, weight in weights.items()], axis=0)
    best = best_of_each(document, own)
    shares = {}
    for name, weight in weights.items():
        support = smooth_maximum(scores[name], document) - scores[name][best]
        shares[name] = weight * (scores[name] + support[document])
    return shares


def smooth_maximum(scores: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    """ln Σ exp(sharpness · score) / sharpness of each group, shape (groups,); at least the maximum,
    and just it for a group of one."""
    most = np.full(group.max() + 1, -np.inf)
    np.maximum.at(most, group, scores)
    sums = np.bincount(group, weights=np.exp(SHARPNESS * (scores - most[group])))
    smooth: NDArray[np.float64] = most + np.log(sums) / SHARPNESS
    return smooth


def best_of_each(group: NDArray[np.intp], scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """The index of the best score of each group, shape (groups,)."""
    order = np.lexsort((scores, group))
    last = np.flatnonzero(np.diff(group[order], append=-1))
    best: NDArray[np.intp] = order[last]
    return best
