"""Gold files: questions with what a good search finds for them, one JSON object a line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from vademecum.errors import BadGold, BadInput
from vademecum.search.pipeline import check
from vademecum.types import Hit, Query

MAX_REL = 1_000_000
"""Sums of them must stay finite numbers."""
_QUESTION_KEYS = ("id", "query", "expect", "note")
"""A note is for people and is not read."""
_EXPECTATION_KEYS = ("path_contains", "section_contains", "rel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a result has to be. A result meets it if all that is given is in it."""

    path_contains: str | None = None
    """Part of the document's path, by the letter."""
    section_contains: str | None = None
    """Part of the section's id or of its headings joined by ` > `, in any case."""
    rel: float = 1.0
    """What it is worth beside the others, more than 0."""

    def met_by(self, hit: Hit) -> bool:
        if self.path_contains is not None and self.path_contains not in hit.path:
            return False
        if self.section_contains is None:
            return True
        wanted = self.section_contains.casefold()
        return (
            wanted in hit.section_id.casefold() or wanted in " > ".join(hit.heading_path).casefold()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query with its expectations, of which there is at least one."""

    id: str
    """As given, else the number of the line."""
    query: str
    expect: tuple[Expectation, ...]

    @property
    def by_section(self) -> bool:
        """Whether its results are sections; else they are whole documents."""
        return any(expected.section_contains is not None for expected in self.expect)


def read_gold(path: Path) -> list[Question]:
    """The questions of a gold file; empty lines are left out.

    Raises BadGold for the first line that cannot be used, BadInput for the file as a whole.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read the gold file {path}: {error.strerror}") from None
    questions: list[Question] = []
    lines: dict[str, int] = {}
    # Split as bytes: a str has more line ends than JSON Lines, such as U+2028 inside a query.
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            question = _question(json.loads(line), number)
            if question.id in lines:
                raise _LineError(
                    f"the id {question.id!r} is already that of line {lines[question.id]}"
                )
        except _LineError as error:
            raise BadGold(str(path), number, str(error)) from None
        except (ValueError, RecursionError) as error:
            raise BadGold(str(path), number, f"no valid JSON: {_reason(error)}") from None
        lines[question.id] = number
        questions.append(question)
    if not questions:
        raise BadInput(
            f"the gold file {path} holds no question",
            hint='Write one a line: {"query": "…", "expect": [{"path_contains": "…"}]}.',
        )
    return questions


def fields(question: Question) -> dict[str, object]:
    """A question as its line in a gold file has it."""
    expect = [
        {
            "path_contains": one.path_contains,
            "section_contains": one.section_contains,
            "rel": one.rel if one.rel != 1 else None,
        }
        for one in question.expect
    ]
    return {
        "id": question.id,
        "query": question.query,
        "expect": [{key: part for key, part in one.items() if part is not None} for one in expect],
    }


def question_of(fields: Mapping[str, Any]) -> Question:
    """The question that `fields` was made of."""
    return Question(
        id=fields["id"],
        query=fields["query"],
        expect=tuple(Expectation(**one) for one in fields["expect"]),
    )


class _LineError(Exception):
    """What is wrong with a line."""


def _question(value: object, number: int) -> Question:
    fields = _object(value, "the line", _QUESTION_KEYS)
    query = _text(fields, "query", required=True)
    try:
        check(Query(text=query, collection=""))
    except BadInput as error:
        raise _LineError(str(error)) from None
    expect = fields.get("expect")
    if not isinstance(expect, list) or not expect:
        raise _LineError('"expect" must be a list with at least one expectation')
    return Question(
        id=_id(fields, number),
        query=query,
        expect=tuple(_expectation(one) for one in expect),
    )


def _id(fields: Mapping[str, object], number: int) -> str:
    value = fields.get("id", number)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(fields, "id", required=True)


def _expectation(value: object) -> Expectation:
    fields = _object(value, "an expectation", _EXPECTATION_KEYS)
    path, section = _text(fields, "path_contains"), _text(fields, "section_contains")
    if path is None and section is None:
        raise _LineError('an expectation needs "path_contains", "section_contains" or both')
    return Expectation(path_contains=path, section_contains=section, rel=_rel(fields.get("rel", 1)))


def _rel(value: object) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not 0 < value <= MAX_REL:  # type: ignore[operator]
        raise _LineError(f'"rel" must be a number above 0 and at most {MAX_REL}')
    return float(value)  # type: ignore[arg-type]


def _object(value: object, what: str, keys: tuple[str, ...]) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _LineError(f"{what} is no JSON object")
    for key in value:
        if key not in keys:
            raise _LineError(f"{what} has an unknown key {key!r}; known are {', '.join(keys)}")
    return value


@overload
def _text(fields: Mapping[str, object], key: str, *, required: Literal[True]) -> str: ...
@overload
def _text(fields: Mapping[str, object], key: str) -> str | None: ...
def _text(fields: Mapping[str, object], key: str, *, required: bool = False) -> str | None:
    if key not in fields:
        if required:
            raise _LineError(f'"{key}" is missing')
        return None
    value = fields[key]
    if not isinstance(value, str):
        raise _LineError(f'"{key}" must be a text')
    if not value.strip():
        raise _LineError(f'"{key}" is empty')
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _LineError(f'"{key}" holds half of a character (a lone surrogate)') from None
    return value


def _reason(error: Exception) -> str:
    """Without the position in the line's bytes, which nobody counts."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
