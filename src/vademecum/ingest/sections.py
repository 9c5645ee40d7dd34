"""Markdown to sections: one for each heading, and one for what comes before the first."""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

MAX_SLUG = 80
MAX_HEADING = 200

# Lines that matter here: headings, and what can hold a line that only looks like one. Deeper
# indented fences need no care, since what is indented as deep is no heading.
_LANDMARK = re.compile(
    r"""^(?:
        [ ]{0,3}(?P<marks>\#{1,6})(?=[ \t\r\n]|\Z)(?P<heading>[^\n]*)
      | (?:[ ]{0,3}(?:[-*+]|\d{1,9}[.)])[ \t]++)*+[ ]{0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})
      | [ ]{0,3}<(?P<html>!--|(?i:pre|script|style|textarea)\b)
    )""",
    re.VERBOSE | re.MULTILINE,
)
_CODE = r"(?P<ticks>`+)(?P<code>.+?)(?P=ticks)"
_LINK = re.compile(rf"{_CODE}|!?\[(?P<label>[^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_MARKUP = re.compile(
    rf"""{_CODE}
      | \\(?P<escaped>[!-/:-@\[-`{{-~])
      | \*+ | ~~ | (?<!\w)_+ | _+(?!\w)
      | </?[A-Za-z][^<>]*>""",
    re.VERBOSE,
)
_ANCHOR = re.compile(r"\s*\{:?\s*#[^{}]*\}$")
_CLOSING_MARKS = re.compile(r"(?:^|[ \t])#+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """From a heading to the next one, whatever its level."""

    start: int
    body: int
    """Where the text after the heading line begins."""
    end: int
    heading_path: tuple[str, ...]
    section_id: str


@dataclass(frozen=True, slots=True)
class _Heading:
    start: int
    end: int
    level: int
    text: str


def sections(text: str, title: str = "") -> list[Section]:
    """The sections of a document in reading order; together they are all of it."""
    headings = list(_headings(text))
    names = _Names()
    first = headings[0].start if headings else len(text)
    found = []
    if text[:first].strip():
        name = names.unique(slug((title,)) if title.strip() else "top")
        found.append(Section(start=0, body=0, end=first, heading_path=(), section_id=name))
    parents: list[_Heading] = []
    for heading, after in zip(headings, [*headings[1:], None], strict=False):
        parents = [parent for parent in parents if parent.level < heading.level] + [heading]
        path = tuple(parent.text for parent in parents)
        # The heading that names the whole document says nothing about a part of it.
        named = parents[0] is headings[0] and parents[0].level == 1 and len(path) > 1
        found.append(
            Section(
                start=heading.start,
                body=heading.end,
                end=after.start if after else len(text),
                heading_path=path,
                section_id=names.unique(slug(path[1:] if named else path)),
            )
        )
    return found


def _headings(text: str) -> Iterator[_Heading]:
    unclosed: set[str] = set()
    position = 0
    while match := _LANDMARK.search(text, position):
        position = match.end()
        if (heading := match["heading"]) is not None:
            yield _Heading(match.start(), match.end(), len(match["marks"]), plain(heading))
        elif fence := match["fence"]:
            position = _fence_end(text, position, fence)
        elif (tag := match["html"].lower()) not in unclosed:
            closing = "-->" if tag == "!--" else f"</{tag}>"
            end = text.find(closing, position)
            if end < 0:
                unclosed.add(tag)
            position = max(end, position)


def _fence_end(text: str, position: int, fence: str) -> int:
    """Where a fence ends; one that nobody closed lasts to the end, as readers of it see it."""
    closing = re.compile(rf"^[ \t]*+{re.escape(fence)}{re.escape(fence[0])}*+[ \t\r]*+$", re.M)
    match = closing.search(text, position)
    return match.end() if match else len(text)


def plain(heading: str) -> str:
    """What a reader sees of a heading: no markup, no closing marks, no anchor."""
    bare = _CLOSING_MARKS.sub("", heading.strip()[: MAX_HEADING * 10])
    bare = _ANCHOR.sub("", bare)
    for _ in range(2):  # an image within a link
        bare = _LINK.sub(lambda match: match[0] if match["code"] else match["label"], bare)
    bare = _MARKUP.sub(lambda match: match["code"] or match["escaped"] or "", bare)
    bare = " ".join(html.unescape(bare).split())
    return bare if len(bare) <= MAX_HEADING else bare[: MAX_HEADING - 1].rstrip() + "…"


def slug(path: tuple[str, ...]) -> str:
    """A heading path as an anchor: `temporary-tables-scope`."""
    words = unicodedata.normalize("NFKC", " ".join(path)).lower()
    kept = "".join(
        letter
        if letter.isalnum() or letter == "_" or unicodedata.category(letter).startswith("M")
        else " "
        for letter in words
    )
    name = "-".join(kept.split())
    if len(name) > MAX_SLUG:  # its end is what tells it from its neighbours
        name = name[-MAX_SLUG:]
        name = name.partition("-")[2] or name
    return name or "section"


class _Names:
    """Hands out each name once: `scope`, `scope-1`, `scope-2`."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def unique(self, name: str) -> str:
        repetition = self._taken.get(name, -1) + 1
        unique = f"{name}-{repetition}" if repetition else name
        while unique in self._taken and repetition:
            repetition += 1
            unique = f"{name}-{repetition}"
        self._taken[name] = repetition
        self._taken.setdefault(unique, 0)
        return unique
