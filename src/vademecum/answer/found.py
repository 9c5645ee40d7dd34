"""Whether the hits hold an answer at all: a small logistic rule over the evidence."""

import math

from vademecum.answer.evidence import Evidence

# Weights of similarity, coverage, the unknown, and a constant. Fitted by logistic regression on one
# half of 3200 questions, answerable and not: those of three judged sets to their own documents
# and to those of other sets, and hand-written ones about real and about made-up things to six.
# `benchmarks/answers.py` reports the error rates.
WITH_VECTORS = (10.55, 3.87, -3.69, -7.49)
WITHOUT_VECTORS = (7.28, -7.22, -3.10)


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
