"""Of one page, the passages that matter for a prompt: verbatim, in page order, within a budget.

Words are weighed within the page: what each of its passages says tells them apart in nothing.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vademecum.ingest.sections import Section, sections
from vademecum.search.fuse import WEIGHTS
from vademecum.search.terms import query_terms, term_sequence, terms
from vademecum.store.cache import PageChunk
from vademecum.types import ChunkId

K1, B = 1.2, 0.75
PAIR_WEIGHT = 0.3
RECENT_PAGES = 32
"""Of which terms and sections are kept at hand."""
OUTLINE_SHARE = 0.12
"""Of the budget, at most, for the outline."""


def tokens(text: str) -> int:
    """Four bytes of UTF-8 each: a measure that needs no one's tokeniser, near enough for English
    and code, and the same for what is served and for what it is compared with."""
    return -(-len(text.encode()) // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of the page's text, in characters."""

    start: int
    end: int


def locate(text: str, chunks: Sequence[PageChunk]) -> list[Span]:
    """Where each chunk stands in the page, in order; an empty span for one that is not there."""
    spans: list[Span] = []
    after = 0
    for chunk in chunks:
        start = text.find(chunk.text, after)
        if start < 0:
            start = text.find(chunk.text)
        if start < 0:
            spans.append(Span(start=0, end=0))
            continue
        spans.append(Span(start=start, end=start + len(chunk.text)))
        after = start + 1
    return spans


def relevance(
    prompt: str, chunks: Sequence[PageChunk], similarity: Mapping[ChunkId, float]
) -> NDArray[np.float64]:
    """How much each chunk matters for the prompt, shape (chunks,). Words and meaning count as in
    search; words alone where there are no vectors."""
    lexical = _lexical(prompt, chunks)
    if not similarity:
        return lexical
    dense = np.array(
        [similarity.get(chunk.id, 0.0) if chunk.id else 0.0 for chunk in chunks], dtype=np.float64
    )
    return WEIGHTS["lexical"] * lexical + WEIGHTS["dense"] * dense


def _lexical(prompt: str, chunks: Sequence[PageChunk]) -> NDArray[np.float64]:
    """BM25 over the chunks of the page, and pairs of words that stand together, as a share of the
    most that a chunk could have."""
    wanted = query_terms(prompt)
    pairs = set(pairwise(term_sequence(prompt)))
    counts = _counts(tuple("\n".join((*chunk.heading_path, chunk.text)) for chunk in chunks))
    lengths = [count.total() for count in counts]
    average = sum(lengths) / max(1, len(lengths)) or 1.0
    holding = Counter(term for count in counts for term in wanted if term in count)
    weight = {
        term: math.log(1 + (len(chunks) - n + 0.5) / (n + 0.5)) for term, n in holding.items()
    }
    most = sum(weight.values()) or 1.0
    scores = []
    for chunk, words, count in zip(chunks, lengths, counts, strict=True):
        length = K1 * (1 - B + B * words / average)
        score = sum(
            value * count[term] * (K1 + 1) / (count[term] + length) / (K1 + 1)
            for term, value in weight.items()
            if count[term]
        )
        possible = {(a, b) for a, b in pairs if a in count and b in count}
        here = _neighbours(chunk.text) if possible else frozenset()
        score += PAIR_WEIGHT * sum(
            min(weight.get(a, 0.0), weight.get(b, 0.0)) for a, b in possible & here
        )
        scores.append(score / most)
    return np.array(scores, dtype=np.float64)


@lru_cache(maxsize=RECENT_PAGES)
def _counts(texts: tuple[str, ...]) -> tuple[Counter[str], ...]:
    """The term frequencies of each text; a page is mostly asked about more than once."""
    return tuple(Counter(terms(text)) for text in texts)


@lru_cache(maxsize=1000)
def _neighbours(text: str) -> frozenset[tuple[str, str]]:
    """Words that stand together."""
    return frozenset(pairwise(term_sequence(text)))


@lru_cache(maxsize=RECENT_PAGES)
def _sections(text: str, title: str) -> tuple[Section, ...]:
    return tuple(sections(text, title))


def choose(
    spans: Sequence[Span], scores: NDArray[np.float64], text: str, budget: int
) -> list[Span]:
    """The best spans that fit into `budget` tokens, in page order, those that touch joined."""
    taken: list[Span] = []
    spent = 0
    for index in np.argsort(-scores, kind="stable"):
        span = spans[int(index)]
        cost = tokens(text[span.start : span.end]) + 12
        if span.start == span.end or spent + cost > budget:
            continue
        taken.append(span)
        spent += cost
    joined: list[Span] = []
    for span in sorted(taken, key=lambda span: span.start):
        if joined and not text[joined[-1].end : span.start].strip():
            joined[-1] = Span(start=joined[-1].start, end=max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def quoted(text: str, title: str, chosen: Sequence[Span]) -> str:
    """The passages, each under the headings it stands below, with a mark where text is left out."""
    found = _sections(text, title)
    starts = [section.start for section in found]
    parts: list[str] = []
    after = 0
    for span in chosen:
        if text[after : span.start].strip():
            parts.append("[…]")
        section = found[max(0, bisect_right(starts, span.start) - 1)] if found else None
        if section and section.heading_path and span.start > section.start:
            parts.append(f"[{' > '.join(section.heading_path)}]")
        elif section and len(section.heading_path) > 1:
            parts.append(f"[{' > '.join(section.heading_path[:-1])}]")
        parts.append(text[span.start : span.end].strip("\n"))
        after = span.end
    if text[after:].strip():
        parts.append("[…]")
    return "\n\n".join(parts)


def outline(text: str, title: str, chosen: Sequence[Span], budget: int) -> str:
    """Headings with the offsets they begin at, of what is not among the chosen; the deep ones are
    left out first where there are too many."""
    rest = [
        section
        for section in _sections(text, title)
        if section.heading_path
        and not any(span.start <= section.body and section.end <= span.end + 2 for span in chosen)
    ]
    for depth in range(6, 1, -1):  # the title alone says nothing
        kept = [section for section in rest if len(section.heading_path) <= depth]
        lines = "\n".join(_line(section) for section in kept)
        if lines and tokens(lines) <= budget:
            return lines
    shown = ""
    for number, section in enumerate(rest):
        if tokens(shown + _line(section)) + 8 > budget:
            shown += f"[… and {len(rest) - number} more headings]"
            break
        shown += _line(section) + "\n"
    return shown.rstrip("\n")


def _line(section: Section) -> str:
    indent = "  " * (len(section.heading_path) - 1)
    return f"{indent}- {section.heading_path[-1]} (offset {section.start})"
