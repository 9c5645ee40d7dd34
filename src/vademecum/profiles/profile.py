"""Profiles: what a kind of collection looks like, declared in TOML.

[chunks]
max_tokens = 1000
overlap_tokens = 100
header = "[{collection} | {file} | {topic} | {headings}]"

[knowledge_base]
summaries = true

[facets.tier]
type = "integer"
front_matter = "tier"
required = true

[[topics]]
name = "JOIN"
pattern = '\\bJOIN\\b'
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from vademecum.errors import BadInput, UnknownProfile
from vademecum.profiles.declare import declared_facets
from vademecum.profiles.facet import Facet, Value, facets_of
from vademecum.profiles.mistakes import Mistakes, Place

DEFAULT = "docs"
_HEADER_FIELDS = frozenset({"collection", "file", "topic", "title", "headings"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """How documents are split, and what stands before each chunk when it is embedded."""

    max_tokens: int
    overlap_tokens: int
    header: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic and the pattern that gives it; of several the first declared."""

    name: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    name: str
    chunks: Chunks
    topics: tuple[Topic, ...]
    summaries: bool
    """Whether its collections are knowledge bases: each document has a summary, a language and a
    row in the ledger, and these are kept as files beside the documents."""
    facets: tuple[Facet, ...]
    """What its collections can be filtered by, and so what every index has to hold."""
    digest: str
    """Of the declaration: another digest makes other chunks."""

    def topic(self, text: str) -> str:
        """The first topic whose pattern is found; MISC where none is, empty without topics."""
        if not self.topics:
            return ""
        return next((topic.name for topic in self.topics if topic.pattern.search(text)), "MISC")

    def facets_of(
        self, path: str, metadata: Mapping[str, object], text: str
    ) -> dict[str, Value | list[Value]]:
        """The facets of a document. Raises ProfileViolation."""
        return facets_of(self.facets, profile=self.name, path=path, metadata=metadata, text=text)


def profile_names() -> list[str]:
    """The profiles that come with Vademecum."""
    return sorted(
        file.name.removesuffix(".toml")
        for file in files(__package__).iterdir()
        if file.name.endswith(".toml")
    )


def declaration(name: str) -> str:
    """The TOML of a profile that comes with Vademecum. Raises UnknownProfile."""
    if name not in profile_names():
        raise UnknownProfile(name, profile_names())
    return (files(__package__) / f"{name}.toml").read_text(encoding="utf-8")


@lru_cache(maxsize=100)
def load_profile(name: str, declared: str | None = None) -> Profile:
    """A profile by name, or a user's own by what it declares. Raises UnknownProfile, BadProfile."""
    return parse_profile(name, declaration(name) if declared is None else declared)


def read_profile(path: Path) -> tuple[str, str]:
    """Name and declaration of a user's own profile, checked. Raises BadInput, BadProfile."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"cannot read the profile {path}: {reason}") from None
    if path.stem in profile_names():
        raise BadInput(
            f"{path.stem} is a profile that comes with Vademecum", hint="Rename the file."
        )
    parse_profile(str(path), text)
    return path.stem, text


def parse_profile(name: str, text: str) -> Profile:
    """A profile from its declaration. Raises BadProfile with every mistake and its line."""
    mistakes = Mistakes(name, text)
    declared = mistakes.load()
    mistakes.unknown((), declared, {"chunks", "topics", "facets", "knowledge_base"})
    chunks = _chunks(declared.get("chunks"), mistakes)
    topics = _topics(declared.get("topics", []), mistakes)
    facets = declared_facets(
        declared.get("facets", {}), tuple((t.name, t.pattern) for t in topics), mistakes
    )
    summaries = _summaries(declared.get("knowledge_base", {}), mistakes)
    mistakes.refuse()
    assert chunks is not None
    return Profile(
        name=name,
        chunks=chunks,
        topics=topics,
        facets=facets,
        summaries=summaries,
        digest=hashlib.sha256(
            json.dumps(declared, sort_keys=True, default=str).encode()
        ).hexdigest()[:12],
    )


def _chunks(declared: object, mistakes: Mistakes) -> Chunks | None:
    place: Place = ("chunks",)
    if declared is None:
        mistakes.add((), "the table [chunks] is missing")
        return None
    table = mistakes.table(place, declared)
    wanted = [field.name for field in fields(Chunks)]
    mistakes.unknown(place, table, wanted)
    if missing := [key for key in wanted if key not in table]:
        mistakes.add(place, f"[chunks] lacks {', '.join(missing)}")
        return None
    tokens, overlap, header = (table[key] for key in wanted)
    whole = [isinstance(n, int) and not isinstance(n, bool) for n in (tokens, overlap)]
    if not whole[0] or not 16 <= tokens <= 8000:  # type: ignore[operator]
        mistakes.add((*place, "max_tokens"), "max_tokens must be a whole number, 16 to 8000")
    elif not whole[1] or not 0 <= overlap <= tokens // 2:  # type: ignore[operator]
        mistakes.add(
            (*place, "overlap_tokens"), "overlap_tokens must be from 0 to half of max_tokens"
        )
    if not isinstance(header, str):
        mistakes.add((*place, "header"), "header must be a text")
        return None
    try:
        header.format(**dict.fromkeys(_HEADER_FIELDS, ""))
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        known = ", ".join(sorted(_HEADER_FIELDS))
        mistakes.add((*place, "header"), f"the header has no field {error}; fields are {known}")
    return Chunks(max_tokens=tokens, overlap_tokens=overlap, header=header)  # type: ignore[arg-type]


def _summaries(declared: object, mistakes: Mistakes) -> bool:
    place: Place = ("knowledge_base",)
    table = mistakes.table(place, declared)
    mistakes.unknown(place, table, {"summaries"})
    if not isinstance(summaries := table.get("summaries", False), bool):
        mistakes.add((*place, "summaries"), "summaries must be true or false")
    return summaries is True


def _topics(declared: object, mistakes: Mistakes) -> tuple[Topic, ...]:
    if not isinstance(declared, list):
        mistakes.add(("topics",), "topics are tables: [[topics]]")
        return ()
    found = []
    for index, one in enumerate(declared):
        place: Place = ("topics", index)
        topic = mistakes.table(place, one)
        mistakes.unknown(place, topic, {"name", "pattern"})
        if not isinstance(name := topic.get("name"), str) or "pattern" not in topic:
            mistakes.add(place, "a topic needs a name and a pattern")
        elif pattern := mistakes.pattern((*place, "pattern"), topic["pattern"]):
            found.append(Topic(name=name, pattern=pattern))
    return tuple(found)
