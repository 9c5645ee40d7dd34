"""The blocks of a stretch of markdown, and how a block that is too long comes apart."""

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from vademecum.ingest.ruler import LINE, SENTENCE, breaks

Kind = Literal["heading", "text", "item", "code", "table", "sentence", "line", "words", "row"]

# Lists nested deeper come apart by their lines.
_MAX_DEPTH = 8

_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_FENCE = re.compile(r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]++|>[ \t]*+)*+(`{3,}(?=[^`]*$)|~{3,})")
_DELIMITERS = re.compile(r"[|:\- \t]*-[|:\- \t]*$")
_HTML = re.compile(r"<(!--|(?i:pre|script|style|textarea|table)\b)")


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text that should stay in one piece. A `row` is a piece of code or table."""

    kind: Kind
    start: int
    end: int
    depth: int = 0


class _Line(NamedTuple):
    start: int
    end: int
    indent: int
    text: str
    """Without white space around it."""


def blocks(text: str, start: int, end: int, *, depth: int = 0) -> list[Block]:
    """Headings, paragraphs, items of the outermost lists, fences and tables, in order."""
    lines = _lines(text, start, end)
    margin = min((line.indent for line in lines[1:] if line.text), default=0) if depth else 0
    scan = _Scan(lines, margin)
    found: list[Block] = []
    index = 0
    while index < len(lines):
        if not lines[index].text:
            index += 1
            continue
        kind, after = scan.block(index)
        found.append(Block(kind, lines[index].start, lines[after - 1].end, depth))
        index = after
    return found


def _lines(text: str, start: int, end: int) -> list[_Line]:
    lines = []
    while start < end:
        after = text.find("\n", start, end) + 1 or end
        raw = text[start:after]
        bare = raw.lstrip()
        indent = len(raw[: len(raw) - len(bare)].expandtabs(4)) if bare else 0
        lines.append(_Line(start, after, indent, bare.rstrip()))
        start = after
    return lines


class _Scan:
    """Finds where the block that begins at a line ends."""

    def __init__(self, lines: list[_Line], margin: int) -> None:
        self._lines, self._margin = lines, margin
        self._unclosed: dict[str, int] = {}

    def block(self, index: int) -> tuple[Kind, int]:
        line = self._lines[index]
        if _MARKER.match(line.text) and not self._deep(index):
            return "item", self._item(index)
        if after := self._fence(index) or self._html(index):
            return "code", after
        if self._deep(index):
            return "code", self._indented(index)
        if _HEADING.match(line.text):
            return "heading", index + 1
        if self._table(index):
            return "table", self._paragraph(index + 2, table=True)
        return "text", self._paragraph(index + 1)

    def _deep(self, index: int) -> bool:
        return index > 0 and self._lines[index].indent - self._margin >= 4

    def _paragraph(self, index: int, *, table: bool = False) -> int:
        while index < len(self._lines) and (line := self._lines[index].text):
            if (table and "|" not in line) or self._interrupts(index, in_table=table):
                break
            index += 1
        return index

    def _interrupts(self, index: int, *, in_table: bool) -> bool:
        line = self._lines[index].text
        if line[0] not in "#`~<-*+1" and (in_table or "|" not in line):
            return False
        marker = _MARKER.match(line)
        return bool(
            _HEADING.match(line)
            or (marker and marker.end() < len(line))
            or self._fence(index)
            or self._html(index)
            or (not in_table and self._table(index))
        )

    def _indented(self, index: int) -> int:
        while index < len(self._lines) and (not self._lines[index].text or self._deep(index)):
            index += 1
        return self._without_blanks(index)

    def _item(self, index: int) -> int:
        """Items end at the next of their level, or where unindented text follows a blank line."""
        indent = self._lines[index].indent
        at = self._fence(index) or index + 1
        while at < len(self._lines):
            line = self._lines[at]
            if line.text and line.indent <= indent and self._leaves(at):
                break
            at = (self._fence(at) if line.text else 0) or at + 1
        return self._without_blanks(at)

    def _leaves(self, index: int) -> bool:
        line = self._lines[index].text
        return bool(
            not self._lines[index - 1].text
            or _MARKER.match(line)
            or _HEADING.match(line)
            or _FENCE.match(line)
        )

    def _without_blanks(self, index: int) -> int:
        while not self._lines[index - 1].text:
            index -= 1
        return index

    def _table(self, index: int) -> bool:
        if "|" not in self._lines[index].text or index + 1 >= len(self._lines):
            return False
        below = self._lines[index + 1].text
        return "|" in below and _DELIMITERS.match(below) is not None

    def _fence(self, index: int) -> int:
        """The line after the fence that opens here, or 0."""
        line = self._lines[index].text
        if not (match := _FENCE.match(line)):
            return 0
        fence = match[1]
        if len(fence) < self._unclosed.get(fence[0], len(fence) + 1):
            for at in range(index + 1, len(self._lines)):
                closing = self._lines[at].text.lstrip("> ")
                if closing.startswith(fence) and not closing.strip(fence[0]):
                    return at + 1
            self._unclosed[fence[0]] = len(fence)
        # Nobody closed it: it lasts to the end, unless what holds it is an item or a quote.
        return 0 if match.start(1) or self._deep(index) else len(self._lines)

    def _html(self, index: int) -> int:
        """The line after the comment, listing or table that begins here, or 0."""
        if not (match := _HTML.match(self._lines[index].text)):
            return 0
        tag = match[1].lower()
        closing = "-->" if tag == "!--" else f"</{tag}>"
        if tag not in self._unclosed:
            for at in range(index, len(self._lines)):
                if closing in self._lines[at].text.lower():
                    return at + 1
            self._unclosed[tag] = 0
        return 0


def parts(text: str, block: Block) -> list[Block]:
    """The block in smaller blocks that together are all of it; none if only words are left."""
    match block.kind:
        case "item":
            return _inside(text, block)
        case "text":
            return _pieces("sentence", SENTENCE, text, block)
        case "sentence":
            return _pieces("line", LINE, text, block)
        case "code" | "table":
            return _rows(text, block)
        case "row":
            lines = _pieces("row", LINE, text, block)
            return lines if len(lines) > 1 else []
        case _:
            return []


def _inside(text: str, item: Block) -> list[Block]:
    whole = Block("text", item.start, item.end)
    marker = _MARKER.match(text, item.start, item.end)
    if marker is None or item.depth >= _MAX_DEPTH:
        return [whole]
    found = blocks(text, marker.end(), item.end, depth=item.depth + 1)
    if not found:
        return [whole]
    found[0] = replace(found[0], start=item.start)
    return found


def _pieces(kind: Kind, pattern: re.Pattern[str], text: str, block: Block) -> list[Block]:
    cuts = [block.start, *breaks(pattern, text, block.start, block.end - 1), block.end]
    return [Block(kind, start, end) for start, end in pairwise(cuts)]


def _rows(text: str, block: Block) -> list[Block]:
    """Lines; the first goes with the second, the head of a table with its first row."""
    rows = _pieces("row", LINE, text, block)
    head = 3 if block.kind == "table" else 2
    last = max(len(rows) - 2, head)  # a closing fence alone says nothing
    joined = [rows[:head], *([row] for row in rows[head:last]), rows[last:]]
    return [Block("row", group[0].start, group[-1].end) for group in joined if group]


def restarts(text: str, block: Block) -> list[int]:
    """Where a repetition of the block's end may begin, last first: never within code or a table."""
    match block.kind:
        case "row":
            return []
        case "item":
            starts = [start for part in parts(text, block) for start in restarts(text, part)]
        case "text" | "sentence":
            starts = [block.start]
            for pattern in (SENTENCE, LINE):
                starts += breaks(pattern, text, block.start, block.end - 1)
        case _:
            starts = [block.start]
    return sorted(set(starts), reverse=True)
