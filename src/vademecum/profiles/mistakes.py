"""The mistakes in a declaration, each with the line it is on."""

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping

from vademecum.errors import BadProfile

Place = tuple[str | int, ...]
"""Keys from the top of a declaration down; a number counts within `[[tables]]`."""

_HEADER = re.compile(r"\s*(\[\[?)[^\[].*\]")
_KEY = re.compile(r"\s*([^#=\[]+?)\s*=")
_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class Mistakes:
    """Collects what is wrong, so that all of it is told at once."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text
        self._found: list[tuple[Place, str]] = []

    def load(self) -> dict[str, object]:
        """The declaration. Raises BadProfile where it is no TOML."""
        try:
            return tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            message = str(error)
            at = _AT_LINE.search(message)
            line = int(at[1]) if at and at[1] else self._text.count("\n") + 1
            raise BadProfile(self._name, [(line, _AT_LINE.sub("", message))]) from None

    def add(self, place: Place, text: str) -> None:
        self._found.append((place, text))

    def unknown(self, place: Place, declared: Mapping[str, object], known: Collection[str]) -> None:
        """Keys that mean nothing here."""
        for key in declared.keys() - known:
            self.add((*place, key), f"unknown key {key!r}; known are {', '.join(sorted(known))}")

    def table(self, place: Place, declared: object) -> dict[str, object]:
        """The table itself; an empty one with a mistake where it is none."""
        if isinstance(declared, dict):
            return declared
        self.add(place, f"{place[-1]} must be a table")
        return {}

    def pattern(self, place: Place, declared: object) -> re.Pattern[str] | None:
        if not isinstance(declared, str):
            self.add(place, f"{place[-1]} must be a pattern in quotes")
            return None
        try:
            return re.compile(declared, re.IGNORECASE)
        except re.error as error:
            self.add(place, f"{declared!r} is no regular expression: {error}")
            return None

    def refuse(self) -> None:
        """Raises BadProfile if there are any."""
        if self._found:
            lines = _lines(self._text)
            raise BadProfile(
                self._name, sorted((_line(lines, place), text) for place, text in self._found)
            )


def _line(lines: Mapping[Place, int], place: Place) -> int:
    """The line of a key, or of the nearest table around it."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def _lines(text: str) -> dict[Place, int]:
    """The line on which each table and key is declared, from 1."""
    lines: dict[Place, int] = {}
    table: Place = ()
    seen: Counter[Place] = Counter()
    before = ""
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        header, key = _HEADER.match(line), _KEY.match(line)
        # Within a string or an array of several lines what stands before is no whole declaration.
        if (header or key) and _whole(before):
            if header:
                table = _path(line)
                if header[1] == "[[":
                    table = (*table, seen[table])
                    seen[table[:-1]] += 1
                place = table
            else:
                place = (*table, *_path(f"{key[1]} = 0")) if key else table
            for depth in range(1, len(place) + 1):
                lines.setdefault(place[:depth], number)
        before += line
    return lines


def _whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _path(line: str) -> Place:
    """The keys that a line of TOML declares."""
    declared: object = tomllib.loads(line)
    path: list[str] = []
    while declared and isinstance(declared, dict | list):
        if isinstance(declared, list):
            declared = declared[0]
            continue
        key = next(iter(declared))
        path.append(key)
        declared = declared[key]
    return tuple(path)
