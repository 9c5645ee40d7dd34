"""How well each quotable stretch of the hits answers a question, and whether any of them does."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vademecum.answer.question import Question
from vademecum.answer.sentences import FULL_STOP, MAX_BLOCK, Unit, units
from vademecum.inference.embedder import Embedder
from vademecum.search.terms import terms
from vademecum.types import Hit

MAX_HITS = 16
MAX_CANDIDATES = 24
"""Chosen by words before they are embedded: a sentence takes the local model a millisecond."""
EMBEDDED_CHARACTERS, HEADING_CHARACTERS = 240, 60
"""Of a block: its introduction and first lines say what it is; the model takes 256 tokens."""

SIMILARITY, COVERAGE, RANK, INTENT = 1.0, 0.5, 0.15, 0.12
DANGLING, POINTER, FRAGMENT, LENGTH = 0.06, 0.15, 0.08, 0.15
"""What is taken off what leans on another sentence, sends the reader elsewhere, does not
end as a sentence does, or is long."""
HEADING_SHARE = 0.5
"""What a question's term counts that stands in the headings, not in the sentence itself."""

FEW_MORE = 4
"""Words beside the question itself with which a stretch is no answer to it."""

_WORD = re.compile(r"\w+")
_CITATION_LIKE = re.compile(r"\[\s*source\s*:", re.IGNORECASE)
_DANGLING = re.compile(
    r"[*_`\"]*(?:this|that|these|those|it|its|they|their|he|she|such|here|both|the (?:above|former"
    r"|latter|following)|however|therefore|thus|hence|otherwise|instead|but|and|so|also|then"
    r"|similarly|furthermore|moreover|additionally|in (?:this|that) case|as a result|for example"
    r"|for instance)\b",
    re.IGNORECASE,
)
_HEADINGS = re.compile(r"^ {0,3}#{1,6}[ \t].*$", re.MULTILINE)
_POINTER = re.compile(
    r"^how to\b|\b(?:see|refer to|read|visit|check out)\b[^.]*(?:\][(\[]|https?://)", re.IGNORECASE
)
_OUTPUT = re.compile(
    r"```(?:none|text)\b|\b(?:output|should see|similar to|returns?|prints?)\b", re.IGNORECASE
)
_WHAT_IS = re.compile(r"what(?:'s| is| are) (?:an? |the )?([^?]{2,60}?)\s*\??\s*$", re.IGNORECASE)
_HOW_TO = re.compile(
    r"\b(?:how (?:do|can|to|would|should|does one)\b|command|example|syntax|snippet|install|set up"
    r"|configure|steps)",
    re.IGNORECASE,
)
_LISTING = re.compile(
    r"\b(?:(?:what|which) (?:\w+ ){0,2}?(?:are|kinds|types|options|fields|values|steps|ways|tools)"
    r"|list|steps|requirements|prerequisites|differences)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A stretch of a hit's text with what speaks for it. Scores are of this question only."""

    hit: Hit
    rank: int
    unit: Unit
    terms: frozenset[str]
    score: float
    similarity: float
    """Cosine with the question; 0 where it was not embedded."""
    vector: NDArray[np.float32] | None

    @property
    def text(self) -> str:
        return self.hit.text[self.unit.start : self.unit.end]

    @property
    def dangles(self) -> bool:
        """It opens with a word that points at a sentence before; what opens a section does not."""
        return bool(_DANGLING.match(self.text)) and bool(
            _HEADINGS.sub("", self.hit.text[: self.unit.start]).strip()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the hits hold of an answer, the best first, and the signs that they hold it."""

    candidates: list[Candidate]
    similarity: float | None
    """Cosine of the question and the candidate nearest to it; None without an embedder."""
    coverage: float
    """Share of the question's terms, by weight, that the best passage holds."""
    unknown: float
    """Share of the question's terms that the collection does not know at all."""


async def gather(question: Question, hits: Sequence[Hit], embedder: Embedder | None) -> Evidence:
    """The quotable stretches of the best hits, scored, best first."""
    hits = hits[:MAX_HITS]
    found = [
        candidate for rank, hit in enumerate(hits) for candidate in _candidates(hit, rank, question)
    ]
    found = sorted(found, key=_merit)[:MAX_CANDIDATES]
    if embedder is not None:
        found = sorted(await _embedded(question.text, found, embedder), key=_merit)
    similarities = [candidate.similarity for candidate in found]
    return Evidence(
        candidates=found,
        similarity=max(similarities, default=0.0) if embedder else None,
        coverage=max((question.coverage(_all_terms(hit)) for hit in hits), default=0.0),
        unknown=question.unknown,
    )


def _merit(candidate: Candidate) -> tuple[float, int, int]:
    return (-candidate.score, candidate.rank, candidate.unit.start)


def _candidates(hit: Hit, rank: int, question: Question) -> list[Candidate]:
    headings = frozenset(terms(" ".join((hit.title, *hit.heading_path))))
    found = []
    for unit in units(hit.text):
        stretch = hit.text[unit.start : unit.end]
        # Quoted, what looks like a citation would pass for one of ours.
        if len(stretch) > MAX_BLOCK or _CITATION_LIKE.search(stretch):
            continue
        if unit.kind in ("sentence", "code") and _repeats(question.text, stretch):
            continue
        held = frozenset(terms(stretch))
        coverage = question.coverage(held) + HEADING_SHARE * question.coverage(headings - held)
        score = (
            COVERAGE * coverage
            + RANK / (1 + rank / 4)
            + INTENT * _intent(question.text, unit, hit.text)
            - DANGLING * bool(_DANGLING.match(stretch))
            - POINTER * (unit.kind in ("sentence", "item") and bool(_POINTER.search(stretch)))
            - FRAGMENT * (unit.kind == "sentence" and not FULL_STOP.search(stretch))
            - LENGTH * max(0, len(stretch) - EMBEDDED_CHARACTERS) / MAX_BLOCK
        )
        found.append(Candidate(hit, rank, unit, held, score, 0.0, None))
    return found


def _repeats(question: str, stretch: str) -> bool:
    """Whether it is the question and hardly more, as an example in a manual may be."""
    asked, said = (" ".join(_WORD.findall(text.lower())) for text in (question, stretch))
    words = len(asked.split())
    return words > FEW_MORE and asked in said and len(said.split()) <= words + FEW_MORE


def _intent(question: str, unit: Unit, text: str) -> float:
    """Whether the question asks for something of this kind."""
    stretch = text[unit.start : unit.end]
    if unit.kind == "code":
        shown = _OUTPUT.search(text, unit.start, unit.lead + len("```output"))
        return 1.0 if _HOW_TO.search(question) and not shown else -0.5
    if unit.kind == "list":
        steps = text[unit.lead].isdigit() and _HOW_TO.search(question)
        return 1.0 if steps or _LISTING.search(question) else -0.2
    if unit.kind == "table":
        return 0.5 if _LISTING.search(question) else -0.5
    asked = _WHAT_IS.match(question)
    return 1.0 if asked and _defines(stretch, asked[1]) else 0.0


def _defines(sentence: str, subject: str) -> bool:
    """`A pod is ...` for `pod`."""
    opening = (
        rf"\W*(?:an? |the )?{re.escape(subject)}s?\W+(?:\([^()]*\) )?(?:is|are|means|refers)\b"
    )
    return bool(re.match(opening, sentence, re.IGNORECASE))


async def _embedded(
    question: str, candidates: Sequence[Candidate], embedder: Embedder
) -> list[Candidate]:
    query = await embedder.embed_query(question)
    texts = [_within(_in_context(candidate), embedder) for candidate in candidates]
    vectors = await embedder.embed(texts)
    return [
        replace(
            candidate,
            score=candidate.score + SIMILARITY * float(similarity),
            similarity=float(similarity),
            vector=vector,
        )
        for candidate, similarity, vector in zip(candidates, vectors @ query, vectors, strict=True)
    ]


def _in_context(candidate: Candidate) -> str:
    """Its heading tells what a sentence is about that does not repeat its subject."""
    hit = candidate.hit
    heading = hit.heading_path[-1] if hit.heading_path else hit.title
    return f"{heading[:HEADING_CHARACTERS]}. {candidate.text[:EMBEDDED_CHARACTERS]}"


def _within(text: str, embedder: Embedder) -> str:
    """As much of the text as one vector covers."""
    while embedder.tokenizer.counts([text])[0] > embedder.max_tokens:
        text = text[: embedder.tokenizer.starts(text)[embedder.max_tokens - 1]]
    return text


def _all_terms(hit: Hit) -> frozenset[str]:
    return frozenset(terms("\n".join((hit.title, *hit.heading_path, hit.text))))
