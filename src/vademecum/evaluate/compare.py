"""Two ways to search, compared question by question.

    side A: question -> ranks ┐
    side B: question -> ranks ┴--measure--> paired differences --bootstrap--> intervals

A side is a saved evaluation, a TREC run, or a collection that is asked now.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vademecum.errors import BadInput
from vademecum.evaluate.gold import Expectation, Question
from vademecum.evaluate.metrics import Estimate, Measures, Met, bootstrap, first_met, measure
from vademecum.evaluate.pipeline import METRICS
from vademecum.evaluate.saved import SavedEvaluation

LEAST_GAIN = -0.01
"""A mean nDCG@10 that is worse by more than this is worse."""

Ranks = Callable[[Question], Sequence[Met] | None]
"""At which ranks a side meets what a question expects; None where it was not asked that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A question that the two sides answer differently; ranks are of the first that counts."""

    question: Question
    rank_a: int | None
    rank_b: int | None
    difference: float
    """Of nDCG@10, B less A."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What B reaches beyond A on the same questions."""

    k: int
    questions: Sequence[Question]
    a: Mapping[str, Estimate]
    b: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]
    moved: Sequence[Moved]
    """The most worsened first, the most improved last."""
    left_out: int
    """Questions that only one side was asked."""


def compare(questions: Sequence[Question], a: Ranks, b: Ranks, *, k: int) -> Comparison:
    """Raises BadInput where no question was asked of both."""
    asked = [(question, a(question), b(question)) for question in questions]
    pairs = [(question, mine, theirs) for question, mine, theirs in asked if mine and theirs]
    if not pairs:
        raise BadInput(
            "A and B share no question",
            hint="Save both with the same gold file, or name one with --gold.",
        )
    measured = [
        (question, measure(mine, k=k), measure(theirs, k=k)) for question, mine, theirs in pairs
    ]
    moved = [
        Moved(
            question=question,
            rank_a=_first(mine),
            rank_b=_first(theirs),
            difference=measure(theirs, k=k).ndcg - measure(mine, k=k).ndcg,
        )
        for question, mine, theirs in pairs
    ]
    return Comparison(
        k=k,
        questions=[question for question, _, _ in pairs],
        a=_estimates([before for _, before, _ in measured]),
        b=_estimates([after for _, _, after in measured]),
        differences={
            metric: bootstrap(
                [getattr(after, metric) - getattr(before, metric) for _, before, after in measured]
            )
            for metric in METRICS
        },
        moved=sorted((one for one in moved if one.difference), key=lambda one: one.difference),
        left_out=len(questions) - len(pairs),
    )


def ranks_saved(saved: SavedEvaluation, mode: str) -> Ranks:
    """By what is asked and expected: ids are line numbers, which move."""
    known = {
        (question.query, question.expect): met
        for question, met in zip(saved.questions, saved.modes[mode], strict=True)
    }
    return lambda question: known.get((question.query, question.expect))


def ranks_run(run: Mapping[str, Sequence[str]]) -> Ranks:
    """A run ranks documents, so a question about sections has no place in it; a question that is
    not in the run found nothing."""

    def ranks(question: Question) -> Sequence[Met] | None:
        if question.by_section:
            return None
        return first_met(question.expect, run.get(question.id, ()), _in_path)

    return ranks


def ranks_asked(questions: Sequence[Question], met: Sequence[Sequence[Met]]) -> Ranks:
    known = {question.id: one for question, one in zip(questions, met, strict=True)}
    return lambda question: known.get(question.id)


def _in_path(expected: Expectation, path: str) -> bool:
    return expected.path_contains is not None and expected.path_contains in path


def _first(met: Sequence[Met]) -> int | None:
    return min((one.rank for one in met if one.rank is not None), default=None)


def _estimates(measures: Sequence[Measures]) -> dict[str, Estimate]:
    return {metric: bootstrap([getattr(one, metric) for one in measures]) for metric in METRICS}
