"""Whether an index holds what PostgreSQL holds: ids and hashes compared, the difference named."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from vademecum.store import chunks, mirrors
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.embeddings import table
from vademecum.store.mirrors import MirrorRow
from vademecum.types import ChunkId, DocumentId
from vademecum.vectors.feed import hashes_of
from vademecum.vectors.index import Mirror

NAMED = 20
"""Differences that are named; the others are counted."""
PAGE = 1000

Kind = Literal["missing", "extra", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """One chunk that differs."""

    kind: Kind
    chunk_id: ChunkId
    window_index: int
    reference: str
    """The citation; empty for a chunk that PostgreSQL does not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """How an index differs from PostgreSQL."""

    collection: str
    store: str
    entries: int
    """Windows that it should hold."""
    missing: int
    extra: int
    changed: int
    waiting: int
    """Chunks it has yet to be told of; their differences are expected, and are not counted."""
    named: list[Wrong]
    chunks: Sequence[ChunkId] = field(default=(), repr=False)
    """All that differ."""
    documents: Sequence[DocumentId] = field(default=(), repr=False)
    """In PostgreSQL itself: those whose vectors are not whole."""

    @property
    def ok(self) -> bool:
        return not (self.missing or self.extra or self.changed)


async def difference(
    database: Database, target: Collection, row: MirrorRow, mirror: Mirror
) -> Verification:
    """Raises VectorStoreUnavailable."""
    async with database.connection() as connection:
        _, waiting = await mirrors.changes(connection, row, limit=2**31 - 1)
        expected = await _expected(connection, row)
    entries = len(expected)
    expected_later = set(waiting)
    wrong: list[tuple[Kind, ChunkId, int]] = []
    async for listed in mirror.listing():
        hash_ = expected.pop((listed.chunk_id, listed.window_index), None)
        if listed.chunk_id in expected_later or hash_ == listed.hash:
            continue
        wrong.append(
            ("extra" if hash_ is None else "changed", listed.chunk_id, listed.window_index)
        )
    for chunk, window in expected:
        if chunk not in expected_later:
            wrong.append(("missing", chunk, window))
    async with database.connection() as connection:
        named = await _named(connection, target, wrong[:NAMED])
    kinds = [kind for kind, _, _ in wrong]
    return Verification(
        collection=target.name,
        store=row.store,
        entries=entries,
        missing=kinds.count("missing"),
        extra=kinds.count("extra"),
        changed=kinds.count("changed"),
        waiting=len(expected_later),
        named=named,
        chunks=[chunk for _, chunk, _ in wrong],
    )


async def _expected(connection: Connection, row: MirrorRow) -> dict[tuple[ChunkId, int], str]:
    ids = await mirrors.chunk_ids(connection, row)
    expected: dict[tuple[ChunkId, int], str] = {}
    for first in range(0, len(ids), PAGE):
        expected |= await hashes_of(connection, row, ids[first : first + PAGE])
    return expected


async def postgresql(database: Database, target: Collection) -> Verification:
    """Chunks without vectors, with a gap between their windows, or with another text than they
    were made of."""
    if target.space_id is None:
        return _nothing(target)
    async with database.connection() as connection:
        entries, broken = await mirrors.broken_chunks(connection, target.id, table(target.space_id))
        named = await _named(
            connection, target, [(kind, chunk, 0) for kind, chunk, _ in broken[:NAMED]]
        )
    kinds = [kind for kind, _, _ in broken]
    return Verification(
        collection=target.name,
        store="pgvector",
        entries=entries,
        missing=kinds.count("missing"),
        extra=0,
        changed=kinds.count("changed"),
        waiting=0,
        named=named,
        chunks=[chunk for _, chunk, _ in broken],
        documents=sorted({document for _, _, document in broken}),
    )


def _nothing(target: Collection) -> Verification:
    return Verification(
        collection=target.name,
        store="pgvector",
        entries=0,
        missing=0,
        extra=0,
        changed=0,
        waiting=0,
        named=[],
    )


async def _named(
    connection: Connection, target: Collection, wrong: Sequence[tuple[Kind, ChunkId, int]]
) -> list[Wrong]:
    stored = await chunks.by_id(connection, target.id, [chunk for _, chunk, _ in wrong])
    return [
        Wrong(
            kind=kind,
            chunk_id=chunk,
            window_index=window,
            reference=stored[chunk].reference if chunk in stored else "",
        )
        for kind, chunk, window in wrong
    ]
