"""The two or three lines of a chunk that show why it was found."""

import re
from collections.abc import Collection

MAX_LINES = 3
MAX_CHARACTERS = 320
_HEADING = re.compile(r"#{1,6} ")
_WORD = re.compile(r"(?<!\S)\S")
"""Where a word begins."""


def snippet(text: str, wanted: Collection[str]) -> str:
    """The consecutive lines that hold most of the wanted terms, the earliest of the best."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    body = [line for line in lines if not _HEADING.match(line)] or lines
    # A stem is part of its words, so looking for it is as good as analysing every line, and fast.
    found = [{term for term in wanted if term in line.lower()} for line in body]

    def gain(start: int) -> int:
        return len(set().union(*found[start : start + MAX_LINES]))

    start = max(range(len(body)), key=lambda index: (gain(index), -index), default=0)
    return _shortened("\n".join(body[start : start + MAX_LINES]), wanted)


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
