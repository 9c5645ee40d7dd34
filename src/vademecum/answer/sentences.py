"""The quotable stretches of a passage: its sentences, and its code, lists and tables in one piece.

A passage is a chunk, so it may begin or end in the middle of a block; what is cut off there is
never quoted as if it were whole.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["sentence", "item", "row", "list", "code", "table"]

MAX_SENTENCE = 600
"""Characters. What runs longer without a full stop is cut between words."""

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_MARKER = re.compile(r"([ \t]*)(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_DELIMITERS = re.compile(r"[ \t]*[|:\- \t]*-[|:\- \t]*$")
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
_NUMBER_ONLY = re.compile(r"[\d.\s()]+$")
_WORD = re.compile(r"[^\W\d_]{2,}|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)|https?://\S+")


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of a passage that can be quoted. `lead` is where the block behind its introducing
    sentence begins; of a plain sentence it is its start."""

    kind: Kind
    start: int
    end: int
    lead: int
    paragraph: int
    """Which paragraph it is of: a sentence leans only on those of its own."""


class _Line(NamedTuple):
    start: int
    end: int
    text: str


def units(text: str) -> list[Unit]:
    """What of a passage can be quoted, in reading order; an item of a list comes after the list."""
    found: list[Unit] = []
    lines = _lines(text)
    inside = _fenced(lines)
    index = paragraph = 0
    introduction: Unit | None = None
    while index < len(lines):
        line = lines[index].text
        if not line.strip():
            index += 1
            continue
        paragraph += 1
        if index in inside:
            last, whole = inside[index]
            if whole:
                found.append(_block("code", lines, index, last, introduction, paragraph))
            introduction, index = None, last + 1
        elif _HEADING.match(line) or _RULE.match(line):
            introduction, index = None, index + 1
        elif _MARKUP_LINE.match(line):
            index += 1
        elif _is_table(lines, index):
            last = _table_end(lines, index)
            found.append(_block("table", lines, index, last, introduction, paragraph))
            found += _rows(lines, index + 2, last, paragraph)
            introduction, index = None, last + 1
        elif _MARKER.match(line):
            last = _list_end(lines, index, inside)
            items = _items(text, lines, index, last, paragraph)
            if len(items) > 1:
                found.append(_block("list", lines, index, last, introduction, paragraph))
            found += items
            introduction, index = None, last + 1
        else:
            last = _paragraph_end(lines, index, inside)
            sentences = list(_sentences(text, lines[index : last + 1], paragraph))
            found += sentences
            introduction = sentences[-1] if sentences else None
            index = last + 1
    return [unit for unit in found if _says_something(text, unit)]


def sentence_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The sentences of a stretch of prose, without the white space around them."""
    cuts = [start]
    for match in _STOP.finditer(text, start, end):
        before = text[cuts[-1] : match.end()].rstrip()
        if not _ABBREVIATION.search(before) and not _NUMBER_ONLY.match(before):
            cuts.append(match.end())
    spans = [_trimmed(text, first, last) for first, last in pairwise([*cuts, end])]
    return [piece for span in spans for piece in _short(text, *span) if piece[0] < piece[1]]


def _sentences(text: str, lines: list[_Line], paragraph: int) -> Iterator[Unit]:
    for first, last in _runs(lines):
        start = lines[first].start
        if quoted := _QUOTE.match(lines[first].text):
            start += quoted.end()
        for begin, end in sentence_spans(text, start, lines[last].end):
            yield Unit("sentence", begin, end, begin, paragraph)


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
        if word and not word[0].islower() and (room > 12 or width > 130 or here.endswith(":")):
            yield first, index
            first = index + 1
    yield first, len(lines) - 1


def _items(text: str, lines: list[_Line], first: int, last: int, paragraph: int) -> list[Unit]:
    """The outermost items of a list, each without its marker."""
    depth = len(_indent(lines[first].text))
    starts = [
        index
        for index in range(first, last + 1)
        if (marker := _MARKER.match(lines[index].text)) and len(marker[1]) <= depth
    ]
    items = []
    for start, after in pairwise([*starts, last + 1]):
        marker = _MARKER.match(lines[start].text)
        begin = lines[start].start + (marker.end() if marker else 0)
        begin, end = _trimmed(text, begin, lines[after - 1].end)
        if end - begin <= MAX_SENTENCE:
            items.append(Unit("item", begin, end, begin, paragraph))
        else:
            items += [
                Unit("item", *span, span[0], paragraph) for span in sentence_spans(text, begin, end)
            ]
    return items


def _rows(lines: list[_Line], first: int, last: int, paragraph: int) -> list[Unit]:
    rows = (lines[index] for index in range(first, last + 1))
    return [Unit("row", row.start, row.end, row.start, paragraph) for row in rows]


def _block(
    kind: Kind, lines: list[_Line], first: int, last: int, before: Unit | None, paragraph: int
) -> Unit:
    lead = lines[first].start
    start = before.start if before else lead
    return Unit(kind, start, lines[last].end, lead, paragraph)


def _lines(text: str) -> list[_Line]:
    lines, start = [], 0
    for raw in text.split("\n"):
        lines.append(_Line(start, start + len(raw.rstrip()), raw.rstrip()))
        start += len(raw) + 1
    return lines


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


def _is_table(lines: list[_Line], index: int) -> bool:
    if "|" not in lines[index].text or index + 1 >= len(lines):
        return False
    below = lines[index + 1].text
    return "|" in below and _DELIMITERS.match(below) is not None


def _table_end(lines: list[_Line], index: int) -> int:
    while index + 1 < len(lines) and "|" in lines[index + 1].text:
        index += 1
    return index


def _list_end(lines: list[_Line], first: int, inside: dict[int, tuple[int, bool]]) -> int:
    """A list lasts while items follow, or lines that belong to one by their indent."""
    depth = len(_indent(lines[first].text))
    last = index = first
    while (index := index + 1) < len(lines):
        text = lines[index].text
        if index in inside and (len(_indent(text)) > depth or lines[index - 1].text):
            index = last = inside[index][0]
        elif not text.strip():
            continue
        elif _HEADING.match(text) or index in inside:
            break
        elif _MARKER.match(text) or len(_indent(text)) > depth or lines[index - 1].text.strip():
            last = index
        else:
            break
    return last


def _paragraph_end(lines: list[_Line], index: int, inside: dict[int, tuple[int, bool]]) -> int:
    while index + 1 < len(lines):
        text = lines[index + 1].text
        starts_another = (
            not text.strip()
            or index + 1 in inside
            or _HEADING.match(text)
            or _MARKER.match(text)
            or _MARKUP_LINE.match(text)
            or _is_table(lines, index + 1)
        )
        if starts_another:
            break
        index += 1
    return index


def _says_something(text: str, unit: Unit) -> bool:
    """Not a label, a bare link, or the announcement of something that is not there."""
    stretch = text[unit.lead : unit.end]
    if unit.kind in ("code", "list", "table"):
        return True
    bare = _LINK_TARGET.sub("", stretch)
    words = len(_WORD.findall(bare))
    if unit.kind == "item":
        return words >= 2
    return words >= 4 and not stretch.rstrip("*_`").endswith((":", "：", "?"))


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


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())].expandtabs(4)


def without_introduction(unit: Unit) -> Unit:
    """The block alone."""
    return replace(unit, start=unit.lead)
