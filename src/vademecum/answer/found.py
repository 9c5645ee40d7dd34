"""Whether the hits hold an answer at all: a small rule over the evidence.

Its numbers were fitted on one half of 3200 questions, answerable and not: those of three judged
sets to their own documents, without the judged documents, and to those of other sets, and
hand-written ones about real and made-up things to six. `benchmarks/answers.py` reports the error
rates on the other half.
"""

from vademecum.answer.evidence import Evidence

UNKNOWN = 0.18
"""Share of the question's terms that the collection does not know: `quantum scheduler in
Kubernetes` has one of four. So much is unknown in 1 % of answerable questions, and in nine of ten
about made-up things, which is more than likeness of sentences could ever tell."""

# Logistic regression: weights of similarity and coverage, and the constant. Found is what is more
# likely than not, shifted a little that way: to miss an answer and to show a doubtful one then
# happen about equally often.
WITH_VECTORS = (11.6, 5.5, -9.3)
WITHOUT_VECTORS = (0.0, 10.3, -5.2)


def holds_answer(evidence: Evidence) -> bool:
    """Whether a passage answers the question, more likely than not."""
    if not evidence.candidates or evidence.unknown >= UNKNOWN:
        return False
    weights = WITHOUT_VECTORS if evidence.similarity is None else WITH_VECTORS
    similarity, coverage, constant = weights
    return similarity * (evidence.similarity or 0.0) + coverage * evidence.coverage + constant >= 0
