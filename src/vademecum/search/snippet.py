"""The two or three lines of a chunk that show why it was found."""

import re
from bisect import bisect_right
from collections.abc import Collection
from itertools import accumulate
from operator import or_

MAX_LINES = 3
MAX_CHARACTERS = 320
_HEADING = re.compile(r"#{1,6} ")
_WORD = re.compile(r"(?<!\S)\S")
"""Where a word begins."""


def snippet(text: str, wanted: Collection[str]) -> str:
    """The consecutive lines that hold most of the wanted terms, the earliest of the best."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    body = [line for line in lines if line[0] != "#" or not _HEADING.match(line)] or lines
    held = [*_held(body, wanted), *[0] * (MAX_LINES - 1)]
    together = held
    for further in range(1, MAX_LINES):
        together = list(map(or_, together, held[further:]))
    gains = list(map(int.bit_count, together))
    start = gains.index(max(gains)) if gains else 0
    return _shortened("\n".join(body[start : start + MAX_LINES]), wanted)


def _held(lines: list[str], wanted: Collection[str]) -> list[int]:
    """Which terms each line holds, a bit for each.

    A stem is part of its words, so looking for it is as good as analysing every line, and fast.
    """
    lowered = list(map(str.lower, lines))
    text = "\n".join(lowered)
    ends = [after + 1 for after in accumulate(map(len, lowered), lambda end, line: end + 1 + line)]
    held = [0] * len(lines)
    for place, term in enumerate(wanted):
        found = text.find(term)
        while found >= 0:
            line = bisect_right(ends, found)
            held[line] |= 1 << place
            found = text.find(term, ends[line])
    return held


def _shortened(text: str, wanted: Collection[str]) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    lowered = text.lower()
    found = [place for term in wanted if (place := lowered.find(term)) >= 0]
    # Where the word with the first of them begins; the whole text where none is in it.
    word = max(lowered.rfind(blank, 0, min(found, default=0)) for blank in " \n\t") + 1
    start = max(0, min(word - MAX_CHARACTERS // 4, len(text) - MAX_CHARACTERS))
    if start and (next_word := _WORD.search(text, start)):
        start = next_word.start()
    end = start + MAX_CHARACTERS
    if end < len(text):
        end = text.rfind(" ", start, end) if " " in text[start:end] else end
    return ("… " if start else "") + text[start:end].strip() + (" …" if end < len(text) else "")
