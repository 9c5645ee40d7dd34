"""Evaluation: questions with known answers, asked in each mode.

[Question] --search in each mode--> rankings --first_met--> ranks --measure--> Table

A question that names a section is measured over hits, each a section. One that names only paths
is measured over documents: the best hit of a document counts and its others take no rank.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median

from vademecum.evaluate.gold import Expectation, Question
from vademecum.evaluate.metrics import (
    Estimate,
    Measures,
    Met,
    bootstrap,
    first_met,
    measure,
)
from vademecum.evaluate.trec import documents
from vademecum.search.pipeline import MAX_LIMIT
from vademecum.types import Hit, Mode, Query

MODES: tuple[Mode, ...] = ("hybrid", "dense", "lexical")
RERANKED = "hybrid+rerank"
"""Hybrid search with its best hits put in order by a reranker; measured where there is one."""
METRICS = tuple(field.name for field in fields(Measures))

Search = Callable[[Query], Awaitable[Sequence[Hit]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeResult:
    """What one mode is worth over all questions."""

    mode: str
    """One of MODES, or RERANKED."""
    estimates: Mapping[str, Estimate]
    """By metric: hit, reciprocal_rank, ndcg, recall."""
    p50_ms: float
    """Median time of a search for as many hits as were asked for."""
    rankings: Sequence[Sequence[Hit]]
    """The hits for each question."""
    met: Sequence[Sequence[Met]]
    """The ranks at which the expectations of each question are met."""
    measures: Sequence[Measures]
    """Of each question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much more a mode reaches than another on the same questions."""

    mode: str
    other: str
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The questions, what each mode made of them, and how the first mode differs from others."""

    collection: str
    k: int
    questions: Sequence[Question]
    modes: Sequence[ModeResult]
    differences: Sequence[Difference]
    notices: Sequence[str]
    """What could not be measured."""


async def evaluate(
    questions: Sequence[Question],
    search: Search,
    *,
    collection: str,
    modes: Sequence[str],
    k: int,
    boost: tuple[str, ...] = (),
    asked: Callable[[], None] = lambda: None,
    notices: Sequence[str] = (),
) -> Evaluation:
    """Ask all questions in each mode; `asked` is called after each of them."""
    results = [
        await _mode(
            questions,
            search,
            mode,
            Query(
                text="",
                collection=collection,
                mode="hybrid" if mode == RERANKED else mode,  # type: ignore[arg-type]
                limit=k,
                boost=boost,
                rerank=mode == RERANKED,
            ),
            asked=asked,
        )
        for mode in modes
    ]
    return Evaluation(
        collection=collection,
        k=k,
        questions=questions,
        modes=results,
        differences=[_difference(results[0], other) for other in results[1:]],
        notices=notices,
    )


async def _mode(
    questions: Sequence[Question],
    search: Search,
    mode: str,
    asking: Query,
    *,
    asked: Callable[[], None],
) -> ModeResult:
    """All questions asked as `asking` is, but for its text."""
    seconds, rankings = [], []
    # The first search of a process loads the model, which says nothing about the others.
    await search(replace(asking, text=questions[0].query))
    for question in questions:
        query = replace(asking, text=question.query)
        # Timed as a user would ask; then again for all that there is, since the hits of ten
        # documents can be many more than ten.
        started = time.perf_counter()
        await search(query)
        seconds.append(time.perf_counter() - started)
        rankings.append(await search(replace(query, limit=MAX_LIMIT)))
        asked()
    met = [
        first_met(question.expect, results(question, hits), Expectation.met_by)
        for question, hits in zip(questions, rankings, strict=True)
    ]
    measures = [measure(one, k=asking.limit) for one in met]
    return ModeResult(
        mode=mode,
        estimates={
            metric: bootstrap([getattr(one, metric) for one in measures]) for metric in METRICS
        },
        p50_ms=median(seconds) * 1000,
        rankings=rankings,
        met=met,
        measures=measures,
    )


def results(question: Question, hits: Sequence[Hit]) -> Sequence[Hit]:
    """What takes ranks for this question: sections, or documents by their best hit."""
    return hits if question.by_section else documents(hits)


def _difference(result: ModeResult, other: ModeResult) -> Difference:
    return Difference(
        mode=result.mode,
        other=other.mode,
        estimates={
            metric: bootstrap(
                [
                    getattr(mine, metric) - getattr(theirs, metric)
                    for mine, theirs in zip(result.measures, other.measures, strict=True)
                ]
            )
            for metric in METRICS
        },
    )
