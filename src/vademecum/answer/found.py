"""Whether the hits hold an answer at all: a small logistic rule over the evidence."""

import math

from vademecum.answer.evidence import Evidence

WITH_VECTORS = (14.13, 3.60, 0.0, -9.25)
WITHOUT_VECTORS = (11.5, 0.0, -5.6)


def holds_answer(evidence: Evidence) -> bool:
    """More likely than not."""
    return bool(evidence.candidates) and probability(evidence) >= 0.5


def probability(evidence: Evidence) -> float:
    """That a passage answers the question."""
    if evidence.similarity is None:
        coverage, unknown, constant = WITHOUT_VECTORS
        similar = 0.0
    else:
        similarity, coverage, unknown, constant = WITH_VECTORS
        similar = similarity * evidence.similarity
    odds = similar + coverage * evidence.coverage + unknown * evidence.unknown + constant
    return 1 / (1 + math.exp(-odds))
