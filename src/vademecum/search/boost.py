"""Boosts: on request, a hit counts more when a field of it matches the query."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from vademecum.search.fuse import Fused
from vademecum.search.terms import terms
from vademecum.store.chunks import StoredChunk
from vademecum.types import ChunkId

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


def boosted(
    fused: Sequence[Fused],
    stored: Mapping[ChunkId, StoredChunk],
    wanted: Collection[str],
    fields: Sequence[str],
) -> list[Fused]:
    """The hits in their new order; each boost is a share of the score under `boost:field`."""
    if not fields:
        return list(fused)
    names = dict.fromkeys(_ALIASES.get(name, name) for name in fields)
    hits = [
        _boost(hit, stored[hit.chunk_id], wanted, names) for hit in fused if hit.chunk_id in stored
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))


def _boost(
    hit: Fused, chunk: StoredChunk, wanted: Collection[str], names: Collection[str]
) -> Fused:
    shares = dict(hit.shares)
    for name in names:
        held = set(terms(FIELDS[name](chunk))) & set(wanted)
        # A topic is one word: that the query names it is a full match.
        whole = 1 if name == "topic" else len(wanted)
        if held and whole:
            shares[f"boost:{name}"] = BOOST * min(1.0, len(held) / whole)
    return replace(hit, shares=shares, score=sum(shares.values()))
