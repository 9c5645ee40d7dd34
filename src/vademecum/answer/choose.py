"""Which of the candidates make up the answer: good ones that do not repeat each other."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from vademecum.answer.evidence import Candidate, Evidence

MIN_QUOTATIONS, MAX_QUOTATIONS = 3, 6
MIN_SOURCES, MAX_SOURCES = 2, 4
REPETITION = 0.35
"""What likeness to a chosen sentence takes off a candidate's score: maximal marginal relevance."""
SAME = 0.93
ENOUGH, RELEVANT = 0.82, 0.62
"""Shares of the best score: below `ENOUGH` the answer is full at three quotations, below
`RELEVANT` a sentence is no evidence, and three are not filled up with it."""


@dataclass(slots=True)
class _Choice:
    chosen: list[Candidate] = field(default_factory=list)

    def fits(self, candidate: Candidate) -> bool:
        references = {other.hit.reference for other in self.chosen}
        return (candidate.hit.reference in references or len(references) < MAX_SOURCES) and not any(
            _overlaps(candidate, other) for other in self.chosen
        )

    def worth(self, candidate: Candidate) -> float:
        likeness = max((alike(candidate, other) for other in self.chosen), default=0.0)
        return -1.0 if likeness >= SAME else candidate.score - REPETITION * likeness


def choose(evidence: Evidence) -> list[Candidate]:
    """Up to six candidates of up to four sources, the best first; none without evidence."""
    choice = _Choice()
    waiting = [candidate for candidate in evidence.candidates if choice.fits(candidate)]
    if not waiting:
        return []
    best = waiting[0].score
    while waiting and len(choice.chosen) < MAX_QUOTATIONS:
        following = max(waiting, key=choice.worth)
        waiting.remove(following)
        floor = RELEVANT if len(choice.chosen) < MIN_QUOTATIONS else ENOUGH
        if following.score < floor * best or choice.worth(following) < 0:
            continue
        _add(choice, following, evidence.candidates)
        waiting = [candidate for candidate in waiting if choice.fits(candidate)]
    return _with_second_source(choice.chosen, evidence.candidates, best)


def _add(choice: _Choice, candidate: Candidate, candidates: Sequence[Candidate]) -> None:
    """The candidate, after the sentence it leans on; without that it stays out."""
    if candidate.dangles and not any(_precedes(other, candidate) for other in choice.chosen):
        before = next((other for other in candidates if _precedes(other, candidate)), None)
        if (
            before is None
            or before.dangles
            or not choice.fits(before)
            or len(choice.chosen) + 2 > MAX_QUOTATIONS
        ):
            return
        choice.chosen.append(before)
    choice.chosen.append(candidate)


def _precedes(first: Candidate, second: Candidate) -> bool:
    """The sentence right before it."""
    return (
        first.hit.chunk_id == second.hit.chunk_id
        and first.unit.kind == "sentence"
        and first.unit.end <= second.unit.start
        and not first.hit.text[first.unit.end : second.unit.start].strip()
    )


def _with_second_source(
    chosen: list[Candidate], candidates: Sequence[Candidate], best: float
) -> list[Candidate]:
    """One source alone is joined by the best sentence of another, if there is evidence in it."""
    references = {candidate.hit.reference for candidate in chosen}
    if not chosen or len(references) >= MIN_SOURCES:
        return chosen
    kept = _Choice(chosen[: MAX_QUOTATIONS - 1])
    for candidate in candidates:
        if (
            candidate.hit.reference not in references
            and not candidate.dangles
            and candidate.score >= RELEVANT * best
            and kept.fits(candidate)
            and kept.worth(candidate) > 0
        ):
            return [*kept.chosen, candidate]
    return chosen


def alike(one: Candidate, other: Candidate) -> float:
    """Cosine of the two, or without vectors the share of words they have in common."""
    if one.vector is not None and other.vector is not None:
        return float(one.vector @ other.vector)
    either = len(one.terms | other.terms)
    return len(one.terms & other.terms) / either if either else 0.0


def _overlaps(one: Candidate, other: Candidate) -> bool:
    if one.text in other.text or other.text in one.text:
        return True
    return (
        one.hit.chunk_id == other.hit.chunk_id
        and one.unit.start < other.unit.end
        and other.unit.start < one.unit.end
    )
