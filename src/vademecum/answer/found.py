"""Whether the hits hold an answer at all: a small logistic rule over the evidence."""

import math

from vademecum.answer.evidence import Evidence


def holds_answer(evidence: Evidence) -> bool:
    return bool(evidence.candidates) and probability(evidence) >= 0.5


def probability(evidence: Evidence) -> float:
    return 1 / (1 + math.exp(-20 * (evidence.sentence_similarity - 0.4)))
