"""An answer in the sources' own words: question + hits -> Answer with citations.

[Hit] --gather--> Evidence --holds--> found? --choose--> [Candidate] --arrange--> Answer

Nothing is written by a model: every quotation is a verbatim stretch of the chunk it cites, and
the same question and hits give the same answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from vademecum.answer.choose import choose
from vademecum.answer.evidence import MAX_HITS, Candidate, gather
from vademecum.answer.found import holds_answer
from vademecum.answer.question import Question
from vademecum.inference.embedder import Embedder, Tokenizer
from vademecum.inference.words import WordTokenizer
from vademecum.types import Answer, Cited, Dropped, Hit

__all__ = ["MAX_HITS", "Quotation", "answer", "quote"]

MAX_TOKENS = 1200
"""Of the whole answer with its citations, by the embedder's tokenizer."""
NEAREST = 3
"""Sections named where the answer was not found."""
NOT_FOUND = "Not found in the sources: no passage answers this question."


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotation:
    """A verbatim stretch of a hit's text."""

    hit: Hit
    text: str

    def __str__(self) -> str:
        separator = "\n" if "\n" in self.text else " "
        return f"{self.text}{separator}[source: {self.hit.reference}]"


async def answer(question: Question, hits: Sequence[Hit], embedder: Embedder | None) -> Answer:
    """Up to six sentences or blocks of two to four sources, each followed by its citation.

    Without an embedder the words of the question alone are the evidence. Raises
    ModelUnavailable.
    """
    quotations = await quote(question, hits, embedder)
    if not quotations:
        return not_found(question.text, hits)
    return Answer(
        question=question.text,
        found=True,
        answer="\n\n".join(str(quotation) for quotation in quotations),
        sources=cited([quotation.hit for quotation in quotations]),
    )


async def quote(
    question: Question, hits: Sequence[Hit], embedder: Embedder | None
) -> list[Quotation]:
    """What the answer consists of, in reading order; nothing where the hits do not hold it."""
    evidence = await gather(question, hits, embedder)
    if not holds_answer(evidence):
        return []
    tokenizer = embedder.tokenizer if embedder else WordTokenizer()
    kept: list[Candidate] = []
    for candidate in choose(evidence):
        if _tokens(arrange([*kept, candidate]), tokenizer) <= MAX_TOKENS:
            kept.append(candidate)
    return arrange(kept)


def arrange(chosen: Sequence[Candidate]) -> list[Quotation]:
    """Document by document, the one with the best evidence first; each in its own order."""
    documents = list(dict.fromkeys(candidate.hit.document_id for candidate in chosen))
    ordered = sorted(
        chosen,
        key=lambda candidate: (
            documents.index(candidate.hit.document_id),
            candidate.hit.ordinal,
            candidate.unit.start,
        ),
    )
    return [Quotation(hit=candidate.hit, text=candidate.text) for candidate in ordered]


def _tokens(quotations: Sequence[Quotation], tokenizer: Tokenizer) -> int:
    return sum(tokenizer.counts([str(quotation) for quotation in quotations]))


def _one_per_reference(hits: Sequence[Hit]) -> list[Hit]:
    return list({hit.reference: hit for hit in reversed(hits)}.values())[::-1]


def not_found(
    question: str, hits: Sequence[Hit], *, by: str = "extractive", dropped: tuple[Dropped, ...] = ()
) -> Answer:
    """The answer that there is none, with the nearest sections."""
    return Answer(
        question=question,
        found=False,
        answer=NOT_FOUND,
        sources=cited(_one_per_reference(hits)[:NEAREST]),
        by=by,
        dropped=dropped,
    )


def cited(hits: Sequence[Hit]) -> tuple[Cited, ...]:
    """The sources, each once."""
    return tuple(
        Cited(
            reference=hit.reference,
            collection=hit.collection,
            path=hit.path,
            section_id=hit.section_id,
            title=hit.title,
            score=hit.score,
        )
        for hit in _one_per_reference(hits)
    )
