"""Boosts: on request, a hit counts more when a field of it matches the query."""

from collections.abc import Callable, Collection, Sequence
from pathlib import PurePosixPath

from vademecum.search.terms import terms
from vademecum.store.chunks import StoredChunk

BOOST = 0.1
"""Added for a field that holds all of the query's terms, else in proportion."""

FIELDS: dict[str, Callable[[StoredChunk], str]] = {
    "title": lambda chunk: chunk.title,
    "heading": lambda chunk: "\n".join(chunk.heading_path),
    "topic": lambda chunk: chunk.topic,
    "file": lambda chunk: PurePosixPath(chunk.path).stem,
}
BOOSTABLE = frozenset({*FIELDS, "sql_topic", "file_name", "headings"})
_ALIASES = {"sql_topic": "topic", "file_name": "file", "headings": "heading"}


def boosts(chunk: StoredChunk, wanted: Collection[str], fields: Sequence[str]) -> dict[str, float]:
    """What each of the fields adds to the chunk's score, by `boost:field`; none where it adds
    nothing."""
    added = {}
    for name in dict.fromkeys(_ALIASES.get(field, field) for field in fields):
        held = set(terms(FIELDS[name](chunk))) & set(wanted)
        # A topic is one word: that the query names it is a full match.
        whole = 1 if name == "topic" else len(wanted)
        if held and whole:
            added[f"boost:{name}"] = BOOST * min(1.0, len(held) / whole)
    return added
