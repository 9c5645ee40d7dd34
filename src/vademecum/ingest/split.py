"""A document to chunks: by headings, then by a window of tokens that spares what belongs together.

Every chunk is a verbatim stretch of the document and within the window; together they hold all
of its text. What a chunk looks like depends on its own section only, so that editing one section
leaves the chunks of the others, and their embeddings, as they are.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vademecum.errors import BadInput
from vademecum.inference.embedder import Tokenizer
from vademecum.ingest.blocks import Block, Kind, blocks, parts, restarts
from vademecum.ingest.identity import chunk_ids, content_hash, parent_id
from vademecum.ingest.ruler import WORD, Ruler, best_cut, breaks
from vademecum.ingest.sections import Section, sections
from vademecum.types import Chunk, Document

MIN_TOKENS = 16
MIN_CHARACTERS = 10

_VISIBLE = re.compile(r"\S")

# Bare headings that one chunk may open with: a heading of each level.
_MAX_BARE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPolicy:
    """How long chunks are, in tokens of the embedding model, and how much of one the next repeats.

    `by_headings` starts a chunk at every heading.
    """

    max_tokens: int
    overlap_tokens: int
    by_headings: bool = True

    def __post_init__(self) -> None:
        if self.max_tokens < MIN_TOKENS:
            raise BadInput(
                f"a chunk of {self.max_tokens} tokens is too small",
                hint=f"Set max_tokens to {MIN_TOKENS} or more.",
            )
        if not 0 <= self.overlap_tokens <= self.max_tokens // 2:
            raise BadInput(
                f"chunks of {self.max_tokens} tokens cannot overlap by {self.overlap_tokens}",
                hint="Set overlap_tokens between 0 and half of max_tokens.",
            )


@dataclass(frozen=True, slots=True)
class _Group:
    """What is split on its own: a section, after the bare headings before it."""

    start: int
    end: int
    section: Section | None
    """None for a whole document: then a chunk is of the section it begins in."""


@dataclass(frozen=True, slots=True)
class _Span:
    """A chunk to be: a stretch of the document without white space around it."""

    start: int
    end: int
    fresh: int
    """Where what the chunk before did not hold begins."""


def split(
    document: Document, *, identity: str, policy: ChunkPolicy, tokenizer: Tokenizer
) -> list[Chunk]:
    """The chunks of a document in reading order.

    `identity` names the document among all others; ids are made of it and of the text.
    """
    text = document.text
    found = sections(text, document.title)
    groups = _groups(text, found) if policy.by_headings else [_Group(0, len(text), None)]
    pieces = list(_pieces(text, groups, policy, tokenizer))
    texts = [text[span.start : span.end] for span, _, _ in pieces]
    digests = [content_hash(piece) for piece in texts]
    ids = chunk_ids(identity, digests)
    parent = parent_id(identity)
    starts = [section.start for section in found]
    chunks = []
    for ordinal, (span, tokens, group) in enumerate(pieces):
        section = group.section or found[bisect_right(starts, span.fresh) - 1]
        chunks.append(
            Chunk(
                id=ids[ordinal],
                parent_id=parent,
                previous_id=ids[ordinal - 1] if ordinal else None,
                next_id=ids[ordinal + 1] if ordinal + 1 < len(ids) else None,
                ordinal=ordinal,
                text=texts[ordinal],
                heading_path=section.heading_path,
                section_id=section.section_id,
                content_hash=digests[ordinal],
                token_count=tokens,
                word_count=len(texts[ordinal].split()),
                char_count=len(texts[ordinal]),
            )
        )
    return chunks


def _groups(text: str, found: list[Section]) -> list[_Group]:
    """Sections; one that says too little to stand alone opens the next, or closes the last."""
    groups: list[_Group] = []
    bare: list[Section] = []
    for section in found:
        if len(bare) < _MAX_BARE and _is_bare(text, section):
            bare.append(section)
        else:
            groups.append(_Group((bare or [section])[0].start, section.end, section))
            bare = []
    if bare and groups:
        groups[-1] = replace(groups[-1], end=bare[-1].end)
    elif bare:
        groups.append(_Group(bare[0].start, bare[-1].end, bare[-1]))
    return groups


def _is_bare(text: str, section: Section) -> bool:
    if not _VISIBLE.search(text, section.body, section.end):
        return True
    # Only a short one is copied: most are not.
    return (
        section.end - section.start < 1000
        and len(text[section.start : section.end].strip()) < MIN_CHARACTERS
    )


def _pieces(
    text: str, groups: list[_Group], policy: ChunkPolicy, tokenizer: Tokenizer
) -> Iterator[tuple[_Span, int, _Group]]:
    """Spans with their number of tokens. A span in which the model sees nothing is none."""
    wholes = [_trimmed(text, group.start, group.end) for group in groups]
    # A group of many characters is most likely too long as a whole, and is measured when it is cut.
    most = policy.max_tokens * 5
    small = [whole for whole in wholes if whole.end - whole.start <= most]
    counts = dict(zip(small, _counts(text, small, tokenizer), strict=True))
    for group, whole in zip(groups, wholes, strict=True):
        count = counts.get(whole, policy.max_tokens + 1)
        fits = count <= policy.max_tokens
        spans = [(whole, count)] if fits else _windowed(text, whole, policy, tokenizer)
        yield from ((span, tokens, group) for span, tokens in spans if tokens)


def _windowed(
    text: str, whole: _Span, policy: ChunkPolicy, tokenizer: Tokenizer
) -> list[tuple[_Span, int]]:
    ruler = Ruler(tokenizer.starts(text[whole.start : whole.end]), whole.start, whole.end)
    budget = policy.max_tokens
    while budget >= MIN_TOKENS // 2:
        spans = _Window(text, whole, ruler, budget, min(policy.overlap_tokens, budget // 2)).spans()
        counts = _counts(text, spans, tokenizer)
        excess = max(counts) - policy.max_tokens
        if excess <= 0:
            return list(zip(spans, counts, strict=True))
        budget -= excess  # some tokenizers see more in a piece than in the whole
    return list(_halved(text, whole, policy.max_tokens, tokenizer))


def _halved(
    text: str, span: _Span, limit: int, tokenizer: Tokenizer
) -> Iterator[tuple[_Span, int]]:
    """The last resort, for a tokenizer that counts pieces quite unlike the whole."""
    [count] = _counts(text, [span], tokenizer)
    length = span.end - span.start
    if count <= limit or length < 2:
        yield span, count
        return
    middle = span.start + length // 2
    cut = best_cut(text, span.start + length // 3, middle, middle)
    for start, end in ((span.start, cut), (cut, span.end)):
        yield from _halved(text, _trimmed(text, start, end), limit, tokenizer)


@dataclass(frozen=True, slots=True)
class _Window:
    """One group being cut: its tokens, how many go into a chunk, how many may repeat."""

    text: str
    whole: _Span
    ruler: Ruler
    budget: int
    overlap: int

    def spans(self) -> list[_Span]:
        """As many blocks to a span as fit, each span opening with the end of the one before."""
        spans: list[_Span] = []
        start = self.whole.start
        held: list[Block] = []
        for block in self._units():
            if held and not self._fits(start, block.end):
                spans.append(_trimmed(self.text, start, held[-1].end, held[0].start))
                start = self._repeat_from(start, held, block)
                held = []
            held.append(block)
        if held:
            spans.append(_trimmed(self.text, start, held[-1].end, held[0].start))
        return self._long_enough(spans)

    def _fits(self, start: int, end: int) -> bool:
        return self.ruler.count(start, end) <= self.budget

    def _units(self) -> Iterator[Block]:
        """Blocks that fit, a heading in one with what follows it."""
        heading: Block | None = None
        for block in self._fitting():
            if heading and self._fits(heading.start, block.end):
                kind = "text" if block.kind == "item" else block.kind
                block = Block(kind, heading.start, block.end)
            elif heading:
                yield heading
            heading = block if block.kind == "heading" else None
            if not heading:
                yield block
        if heading:
            yield heading

    def _fitting(self) -> Iterator[Block]:
        waiting = blocks(self.text, self.whole.start, self.whole.end)[::-1]
        while waiting:
            block = waiting.pop()
            if self.text[block.start : block.end].isspace():
                continue
            if self._fits(block.start, block.end):
                yield block
            elif smaller := parts(self.text, block):
                waiting += reversed(smaller)
            else:
                yield from self._words(block)

    def _words(self, block: Block) -> Iterator[Block]:
        """A line that is too long, cut between words if there are any; it leaves room to repeat."""
        kind: Kind = "row" if block.kind == "row" else "words"
        room = self.budget if kind == "row" else self.budget - self.overlap
        start = block.start
        while start < block.end:
            end = min(self.ruler.forward(start, room), block.end)
            if end < block.end:
                low = self.ruler.forward(start, room * 4 // 5)
                end = max(best_cut(self.text, low, end, end), start + 1)
            if not self.text[start:end].isspace():
                yield Block(kind, start, end)
            start = end

    def _repeat_from(self, before: int, held: list[Block], following: Block) -> int:
        """Where the next span begins: after the start of the one before it, if that fits."""
        end, start = held[-1].end, following.start
        for block in reversed(held):
            candidates = self._word_starts(block) if block.kind == "words" else None
            for candidate in candidates or restarts(self.text, block):
                if (
                    candidate <= before
                    or self.ruler.count(candidate, end) > self.overlap
                    or not self._fits(candidate, following.end)
                ):
                    return start
                start = candidate
            if block.kind in ("row", "words"):
                break
        return start

    def _word_starts(self, block: Block) -> list[int]:
        low = max(self.ruler.backward(block.end, self.overlap), block.start)
        return [*breaks(WORD, self.text, low, block.end - 1)][::-1] or [low]

    def _long_enough(self, spans: list[_Span]) -> list[_Span]:
        """A span of a few characters joins a neighbour, or reaches into it."""
        kept: list[_Span] = []
        for span in spans:
            short = bool(kept) and (_is_short(kept[-1]) or _is_short(span))
            if short and self._fits(kept[-1].start, span.end):
                kept[-1] = replace(kept[-1], end=span.end)
                continue
            kept.append(span)
        return [self._reached(span) if _is_short(span) else span for span in kept]

    def _reached(self, span: _Span) -> _Span:
        """Longer by what is before it, or after it at the start of the group."""
        first, last = self.whole.start, self.whole.end
        start = max(span.end - MIN_CHARACTERS, first)
        start = self.text.rfind(" ", max(start - MIN_CHARACTERS, first), start) + 1 or start
        while self.text[start].isspace():
            start -= 1
        end = max(span.end, min(start + MIN_CHARACTERS, last))
        while self.text[end - 1].isspace():
            end += 1
        return _Span(start, end, span.fresh)


def _is_short(span: _Span) -> bool:
    return span.end - span.start < MIN_CHARACTERS


def _counts(text: str, spans: Sequence[_Span], tokenizer: Tokenizer) -> list[int]:
    return tokenizer.counts([text[span.start : span.end] for span in spans])


def _trimmed(text: str, start: int, end: int, fresh: int | None = None) -> _Span:
    piece = text[start:end]
    first = start + len(piece) - len(piece.lstrip())
    last = max(end - len(piece) + len(piece.rstrip()), first)
    return _Span(first, last, max(first, fresh or first))
