"""How well rankings do, and how sure that is.

A ranking counts by the rank at which each expectation of a question is met, so the metrics are
those of trec_eval where every expectation names one document.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vademecum.evaluate.gold import Expectation

CUTOFF = 10
"""Of nDCG and recall."""
RESAMPLES = 1000
SEED = 20_240_229
"""Fixed, so that the same results always give the same intervals."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """An expectation: the rank, from 1, of the first result that meets it, and what it is worth."""

    rank: int | None
    rel: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What one ranking is worth, each from 0 to 1."""

    hit: float
    reciprocal_rank: float
    ndcg: float
    recall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over questions and its 95 % interval."""

    mean: float
    low: float
    high: float


def first_met(
    expectations: Sequence[Expectation],
    results: Sequence[Result],
    meets: Callable[[Expectation, Result], bool],
) -> list[Met]:
    """Where in the ranking each expectation is met; later results add nothing to it."""
    return [
        Met(
            rank=next(
                (rank for rank, result in enumerate(results, start=1) if meets(expected, result)),
                None,
            ),
            rel=expected.rel,
        )
        for expected in expectations
    ]


def measure(met: Sequence[Met], *, k: int) -> Measures:
    """All measures of one ranking; `met` is not empty."""
    return Measures(
        hit=hit(met, k=k),
        reciprocal_rank=reciprocal_rank(met),
        ndcg=ndcg(met),
        recall=recall(met),
    )


def hit(met: Sequence[Met], *, k: int) -> float:
    """1 if some expectation is met in the first k results, else 0: trec_eval's `success`."""
    return float(any(_within(one, k) for one in met))


def reciprocal_rank(met: Sequence[Met]) -> float:
    """1 / rank of the first result that meets any expectation, 0 if none does.

    Its mean is MRR (Voorhees, TREC-8 question answering track report, 1999).
    """
    return max((1 / one.rank for one in met if one.rank is not None), default=0.0)


def ndcg(met: Sequence[Met], *, k: int = CUTOFF) -> float:
    """Σ rel / log2(rank + 1) within k, divided by that of the best ranking there can be.

    Järvelin & Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 20(4), 2002,
    with the discount and the linear gain of trec_eval's `ndcg_cut`. The best ranking meets one
    expectation a rank, the worthiest first. A single result that meets several can beat it: 1.
    """
    gained = sum(one.rel / math.log2(one.rank + 1) for one in met if one.rank and one.rank <= k)
    ideal = sum(
        rel / math.log2(rank + 1)
        for rank, rel in enumerate(sorted((one.rel for one in met), reverse=True)[:k], start=1)
    )
    return min(gained / ideal, 1.0)


def recall(met: Sequence[Met], *, k: int = CUTOFF) -> float:
    """The share of the expectations met within k, whatever they are worth."""
    return sum(_within(one, k) for one in met) / len(met)


def bootstrap(values: Sequence[float]) -> Estimate:
    """The mean with its percentile bootstrap interval over questions.

    Efron & Tibshirani, "An introduction to the bootstrap", 1993, chapter 13. For a difference of
    two modes pass the differences question by question: pairs stay together (Sakai, "Evaluating
    evaluation metrics based on the bootstrap", SIGIR 2006).
    """
    sample: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    random = np.random.default_rng(SEED)
    # A resample at a time: all at once would take 8 MB for each 1000 questions.
    means = [
        float(sample[random.integers(0, len(sample), len(sample))].mean()) for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(mean=float(sample.mean()), low=float(low), high=float(high))


def _within(one: Met, k: int) -> bool:
    return one.rank is not None and one.rank <= k
