"""Profiles: what a kind of collection looks like, declared in TOML.

[chunks]
max_tokens = 1000
overlap_tokens = 100
header = "[{collection} | {file} | {topic} | {headings}]"

[[topics]]
name = "JOIN"
pattern = '\\bJOIN\\b'
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from vademecum.errors import BadInput, UnknownProfile

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
    digest: str
    """Of the declaration: another digest makes other chunks."""

    def topic(self, text: str) -> str:
        """The first topic whose pattern is found; MISC where none is, empty without topics."""
        if not self.topics:
            return ""
        return next((topic.name for topic in self.topics if topic.pattern.search(text)), "MISC")


def profile_names() -> list[str]:
    """The profiles that come with Vademecum."""
    return sorted(
        file.name.removesuffix(".toml")
        for file in files(__package__).iterdir()
        if file.name.endswith(".toml")
    )


@cache
def load_profile(name: str) -> Profile:
    """A profile by name. Raises UnknownProfile."""
    if name not in profile_names():
        raise UnknownProfile(name, profile_names())
    text = (files(__package__) / f"{name}.toml").read_text(encoding="utf-8")
    return parse_profile(name, text)


def parse_profile(name: str, text: str) -> Profile:
    """A profile from its declaration. Raises BadInput that says what is wrong with it."""
    try:
        declared = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"profile {name}: {error}") from None
    _refuse_unknown(name, declared, {"chunks", "topics"})
    chunks = declared.get("chunks", {})
    wanted = {field.name for field in fields(Chunks)}
    _refuse_unknown(name, chunks, wanted)
    if missing := wanted - chunks.keys():
        raise BadInput(f"profile {name}: [chunks] lacks {', '.join(sorted(missing))}")
    if unknown := set(re.findall(r"{(\w*)}", chunks["header"])) - _HEADER_FIELDS:
        raise BadInput(
            f"profile {name}: the header has no field {', '.join(sorted(unknown))}",
            hint=f"Fields are {', '.join(sorted(_HEADER_FIELDS))}.",
        )
    return Profile(
        name=name,
        chunks=Chunks(**chunks),
        topics=tuple(_topic(name, topic) for topic in declared.get("topics", [])),
        digest=hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()[:12],
    )


def _topic(profile: str, declared: Mapping[str, str]) -> Topic:
    _refuse_unknown(profile, declared, {"name", "pattern"})
    try:
        return Topic(name=declared["name"], pattern=re.compile(declared["pattern"], re.IGNORECASE))
    except (KeyError, re.error) as error:
        raise BadInput(f"profile {profile}: a topic needs a name and a pattern: {error}") from None


def _refuse_unknown(profile: str, declared: Mapping[str, object], known: set[str]) -> None:
    if unknown := declared.keys() - known:
        raise BadInput(
            f"profile {profile}: unknown key {', '.join(sorted(unknown))}",
            hint=f"Known keys are {', '.join(sorted(known))}.",
        )
