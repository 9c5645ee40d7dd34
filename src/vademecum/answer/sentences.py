"""The quotable stretches of a passage: its sentences, and its code, lists and tables in one piece.

A passage is a chunk, so it may begin or end in the middle of a block; what is cut off there is
never quoted as if it were whole.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["sentence", "item", "row", "list", "code", "table"]

MAX_SENTENCE = 600
"""Characters. What runs longer without a full stop is cut between words."""
MAX_BLOCK = 1600
"""Characters of a block that may be quoted whole: several of them stay within 1200 tokens."""
MIN_WORDS = 4
"""Less is a label."""
MAX_PASSAGE = 20_000
"""Characters of a passage that are looked at; only one without words can be that long."""
MAX_DEPTH = 3

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_MARKER = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_RULE = re.compile(r"[ \t]*([-*_=])(?:[ \t]*\1){2,}[ \t]*$")
_MARKUP_LINE = re.compile(
    r"[ \t]*(?:<[^<>]*>[ \t]*|\{\{[^{}]*\}\}[ \t]*|!\[[^\]]*\]\([^()]*\)[ \t]*)+$"
)
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_STOP = re.compile(
    r"""(?<![.!?…])[.!?…]++["'”’»)\]*_`]*+\s++(?=[^a-z\s])
      | [ ][.?!][ ]+
      | [。！？]++[”’」』）]*+\s*+""",
    re.VERBOSE,
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:e\.g|i\.e|cf|vs|approx|resp|[Nn]o|[Ff]igs?|[Ee]qs?|[Ss]ecs?|Mr|Mrs|Ms|Dr|Prof"
    r"|Jr|St|al|[A-Z]|(?:[A-Za-z]\.)+[A-Za-z])\.$"
)
FULL_STOP = re.compile(r"(?<!\.)[.!?。！？][\"'”’»)\]*_`]*$")
_ABBREVIATED = 16
"""Characters before a full stop that tell whether it is one."""
_NUMBER_ONLY = re.compile(r"[\d.\s()]+$")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W\d_]{2,}")
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)|https?://\S+")


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of a passage that can be quoted."""

    kind: Kind
    start: int
    end: int
    lead: int
    """Where a block begins behind the sentence that introduces it; of any other unit its start."""


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    """Without white space at its end."""

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


def units(text: str) -> list[Unit]:
    """What of a passage can be quoted; the items of a list come after the list as a whole."""
    text = text[:MAX_PASSAGE]
    lines, start = [], 0
    for raw in text.split("\n"):
        lines.append(_Line(start, start + len(raw.rstrip()), raw.rstrip().expandtabs(1)))
        start += len(raw) + 1
    found = _Scan(text, lines).units()
    return [unit for unit in found if _says_something(text, unit)]


class _Scan:
    """Reads blocks off the lines of a passage, or of one long item of a list."""

    def __init__(self, text: str, lines: list[_Line], depth: int = 0) -> None:
        self._text, self._lines, self._depth = text, lines, depth
        self._fences = _fenced(lines)

    def units(self) -> list[Unit]:
        found: list[Unit] = []
        index = 0
        while index < len(self._lines):
            line = self._lines[index].text
            if index in self._fences:
                last, whole = self._fences[index]
                if whole:
                    found.append(self._block("code", index, last, found))
            elif not line or any(mark.match(line) for mark in (_HEADING, _RULE, _MARKUP_LINE)):
                last = index
            elif self._is_indented_code(index):
                last = self._indented_end(index)
                found.append(self._block("code", index, last, found))
            elif self._is_table(index):
                last = self._table_end(index)
                found += self._table(index, last, found)
            elif _MARKER.match(line):
                last = self._list_end(index)
                found += self._list(index, last, found)
            else:
                last = self._paragraph_end(index)
                found += self._sentences(index, last)
            index = last + 1
        return found

    def _block(self, kind: Kind, first: int, last: int, found: list[Unit]) -> Unit:
        """A block behind its introduction: the sentence right before it."""
        lead = self._lines[first].start + self._lines[first].indent
        start = lead
        if found and found[-1].kind == "sentence" and self._adjoins(found[-1], lead):
            if _words(self._text[found[-1].start : found[-1].end]) > 1:
                start = found[-1].start
            if not FULL_STOP.search(self._text, found[-1].start, found[-1].end):
                found.pop()  # it says nothing without the block
        return Unit(kind, start, self._lines[last].end, lead)

    def _adjoins(self, unit: Unit, lead: int) -> bool:
        return not self._text[unit.end : lead].strip("> \t\n\r")

    def _sentences(self, first: int, last: int) -> Iterator[Unit]:
        lines = self._lines[first : last + 1]
        for begins, ends in _runs(lines):
            start = lines[begins].start
            if quoted := _QUOTE.match(lines[begins].text):
                start += quoted.end()
            for begin, end in sentence_spans(self._text, start, lines[ends].end):
                yield Unit("sentence", begin, end, begin)

    def _list(self, first: int, last: int, found: list[Unit]) -> list[Unit]:
        margin = self._lines[first].indent
        starts = [
            index
            for index in range(first, last + 1)
            if self._lines[index].indent <= margin
            and index not in self._fences
            and _MARKER.match(self._lines[index].text)
        ]
        whole = [self._block("list", first, last, found)] if len(starts) > 1 else []
        items = [self._item(start, after) for start, after in pairwise([*starts, last + 1])]
        return [*whole, *(unit for item in items for unit in item)]

    def _item(self, first: int, after: int) -> list[Unit]:
        """An item without its marker; a long one in its parts."""
        marker = _MARKER.match(self._lines[first].text)
        skipped = marker.end() if marker else 0
        line = self._lines[first]
        begin, end = _trimmed(self._text, line.start + skipped, self._lines[after - 1].end)
        if end - begin <= MAX_SENTENCE or self._depth >= MAX_DEPTH:
            return [Unit("item", begin, end, begin)] if end - begin <= MAX_SENTENCE else []
        head = _Line(line.start + skipped, line.end, line.text[skipped:])
        return _Scan(self._text, [head, *self._lines[first + 1 : after]], self._depth + 1).units()

    def _table(self, first: int, last: int, found: list[Unit]) -> list[Unit]:
        """A table; its rows only where it is too long to be quoted as a whole."""
        table = self._block("table", first, last, found)
        if table.end - table.start <= MAX_BLOCK:
            return [table]
        return [
            Unit("row", row.start, row.end, row.start) for row in self._lines[first + 2 : last + 1]
        ]

    def _is_indented_code(self, index: int) -> bool:
        """Behind a line that announces it: other indented text may as well be prose."""
        if not self._is_indented(index) or index < 2 or self._lines[index - 1].text:
            return False
        before = next((one for one in reversed(self._lines[:index]) if one.text), None)
        return before is not None and not before.indent and before.text.endswith(":")

    def _indented_end(self, index: int) -> int:
        last = index
        while (index := index + 1) < len(self._lines):
            if self._is_indented(index):
                last = index
            elif self._lines[index].text:
                break
        return last

    def _is_indented(self, index: int) -> bool:
        line = self._lines[index]
        return bool(line.text) and self._text.startswith(("    ", "\t"), line.start)

    def _is_table(self, index: int) -> bool:
        if "|" not in self._lines[index].text or index + 1 >= len(self._lines):
            return False
        below = self._lines[index + 1].text
        return "|" in below and "-" in below and not below.strip("|:- \t")

    def _table_end(self, index: int) -> int:
        while index + 1 < len(self._lines) and "|" in self._lines[index + 1].text:
            index += 1
        return index

    def _list_end(self, first: int) -> int:
        """A list lasts while items follow, or lines that belong to one by their indent."""
        margin = self._lines[first].indent
        last = index = first
        while (index := index + 1) < len(self._lines):
            line, tight = self._lines[index], bool(self._lines[index - 1].text)
            if index in self._fences:
                if line.indent <= margin and not tight:
                    break
                index = last = self._fences[index][0]
            elif not line.text:
                continue
            elif _HEADING.match(line.text):
                break
            elif _MARKER.match(line.text) or line.indent > margin or tight:
                last = index
            else:
                break
        return last

    def _paragraph_end(self, index: int) -> int:
        while index + 1 < len(self._lines):
            text = self._lines[index + 1].text
            if (
                not text
                or index + 1 in self._fences
                or _HEADING.match(text)
                or _MARKER.match(text)
                or self._is_table(index + 1)
            ):
                break
            index += 1
        return index


def sentence_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The sentences of a stretch of prose, without the white space around them."""
    cuts = [start]
    for match in _STOP.finditer(text, start, end):
        before = text[max(cuts[-1], match.end() - _ABBREVIATED) : match.end()].rstrip()
        numbered = match.end() - cuts[-1] < _ABBREVIATED and _NUMBER_ONLY.match(before)
        if not numbered and not _ABBREVIATION.search(before):
            cuts.append(match.end())
    spans = [_trimmed(text, first, last) for first, last in pairwise([*cuts, end])]
    return [piece for span in spans for piece in _short(text, *span) if piece[0] < piece[1]]


def _runs(lines: list[_Line]) -> Iterator[tuple[int, int]]:
    """Lines that run on into each other: some authors end a sentence by a line break alone.

    A break is meant where the next word would have had room on the line.
    """
    width = max(len(line.text) for line in lines)
    first = 0
    for index in range(len(lines) - 1):
        here, following = lines[index].text.rstrip(), lines[index + 1].text.lstrip("> \t")
        word = following.split(maxsplit=1)[0] if following else ""
        room = width - len(here) - 1 - len(word)
        opens = word.lstrip("[(*_`\"'")[:1]
        if opens and not opens.islower() and (room > 12 or width > 130 or here.endswith(":")):
            yield first, index
            first = index + 1
    yield first, len(lines) - 1


def _fenced(lines: list[_Line]) -> dict[int, tuple[int, bool]]:
    """First line of each fenced block -> its last line, and whether all of the block is there."""
    marks = [
        (index, match[1], match[2].strip())
        for index, line in enumerate(lines)
        if (match := _FENCE.match(line.text))
    ]
    found: dict[int, tuple[int, bool]] = {}
    if marks and _begins_inside(lines, marks):
        found[0] = (marks.pop(0)[0], False)
    while marks:
        index, mark, _ = marks.pop(0)
        closing = next(
            (
                at
                for at, (_, other, info) in enumerate(marks)
                if other.startswith(mark) and not info
            ),
            None,
        )
        last = len(lines) - 1 if closing is None else marks[closing][0]
        marks = [] if closing is None else marks[closing + 1 :]
        found[index] = (last, closing is not None)
    return found


def _begins_inside(lines: list[_Line], marks: list[tuple[int, str, str]]) -> bool:
    """Whether the passage opens in the middle of code: a fence too many, and bare at both ends.

    A passage whose first line is a heading or a sentence does not.
    """
    if len(marks) % 2 == 0 or marks[0][2]:
        return False
    before = [line.text for line in lines[: marks[0][0]] if line.text.strip()]
    return bool(before) and not any(
        _HEADING.match(line) or re.search(r"\w[.:!?]$", line) for line in before
    )


def _says_something(text: str, unit: Unit) -> bool:
    """Not a label, a bare link, or the announcement of something that is not there."""
    if unit.kind in ("code", "list", "table"):
        return True
    stretch = text[unit.start : unit.end]
    return _words(stretch) >= MIN_WORDS and not stretch.rstrip("*_`").endswith(
        (":", "：", "?", "...", "…")
    )


def _words(text: str) -> int:
    """How many there are; link targets are none."""
    return len(_WORD.findall(_LINK_TARGET.sub("", text)))


def _short(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > MAX_SENTENCE:
        cut = text.rfind(" ", start + MAX_SENTENCE // 2, start + MAX_SENTENCE)
        cut = cut if cut > 0 else start + MAX_SENTENCE
        yield _trimmed(text, start, cut)
        start = cut
    yield _trimmed(text, start, end)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
