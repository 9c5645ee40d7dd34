"""Collections that are asked often, kept in memory: all that a search reads of chunks to rank them.

    [Segment] --read--> [Part] --without those that are gone--> View

What is kept is of segments of the lexical index: a chunk gets its number in the transaction that
writes its vectors, a segment never changes but for chunks that go, and its key is never used again.
The server says with each search which segments there are, so what is kept is never out of date.
"""

import asyncio
import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from psycopg import Error, sql

from vademecum.errors import VadeError
from vademecum.ranking import Ranking, joined
from vademecum.store import embeddings, lexical
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.lexical import Numbered, Segment
from vademecum.types import CollectionId, SpaceId
from vademecum.vectors.view import Left, Part, View, steps

OFTEN = 8
"""Searches of a collection in one process until it is kept: a command asks once and is gone."""
LATER = 8
"""So many times as many searches, once it had to make room."""
WORTH = 2000
"""Chunks of a collection: fewer the server compares as fast."""
AT_ONCE = 500
"""Chunks that a search waits for; while more are read, it asks the server as before."""
BATCH = 2000
"""Chunks read at once."""
VECTOR_BYTES = 2.125
"""Of each number of a vector: as it is compared, and its sign. The least that is needed, to know
before reading where there is no room."""

COUNTED = """
SELECT dimensions, (SELECT count(*) FROM chunk_terms t JOIN {table} e ON e.chunk_id = t.chunk_id
                     WHERE t.collection_id = %(collection)s
                       AND t.number >= %(first)s AND t.number < %(after)s)
  FROM embedding_spaces WHERE id = %(space)s
"""
WINDOWS = """
SELECT string_agg(int4send(t.number) || halfvec_send(e.embedding), ''::bytea
                  ORDER BY t.number, e.window_index)
  FROM chunk_terms t JOIN {table} e ON e.chunk_id = t.chunk_id
 WHERE t.collection_id = %(collection)s AND t.number >= %(first)s AND t.number < %(after)s
"""
SECTIONS = """
SELECT string_agg(int4send(t.number)
                  || int8send(hashtextextended(k.section_id, k.document_id)), ''::bytea
                  ORDER BY t.number)
  FROM chunk_terms t JOIN document_chunks k ON k.id = t.chunk_id
 WHERE t.collection_id = %(collection)s AND t.number >= %(first)s AND t.number < %(after)s
"""
SECTION = np.dtype([("number", ">i4"), ("section", ">i8")])


@dataclass(slots=True, kw_only=True)
class _Kept:
    """Of one collection."""

    space: SpaceId
    often: int
    """Searches until it is read."""
    asked: int = 0
    parts: dict[bytes, Left] = field(default_factory=dict)
    """By the keys of their segments, in the order of their numbers."""
    reading: asyncio.Task[None] | None = None
    too_many: float = math.inf
    """So many chunks cannot be kept."""

    @property
    def size(self) -> int:
        return sum(one.part.size for one in self.parts.values())


class _TooLarge(Exception):
    """There is no room for it."""


class KeptChunks:
    """What one process keeps of the collections that it searches often."""

    def __init__(
        self, *, most: int, often: int = OFTEN, worth: int = WORTH, at_once: int = AT_ONCE
    ) -> None:
        """`most` is how many bytes are kept; what was not asked for longest goes first."""
        self._most, self._often, self._worth, self._at_once = most, often, worth, at_once
        self._kept: dict[CollectionId, _Kept] = {}
        """What was asked for longest ago first."""

    def worth(self, collection: Collection) -> bool:
        """Whether it is asked often enough to be kept, of which this is one time, and has room."""
        if collection.space_id is None or collection.chunk_count < self._worth:
            return False
        kept = self._kept.pop(collection.id, None)
        if kept is None or kept.space != collection.space_id:
            kept = _Kept(space=collection.space_id, often=self._often)
        self._kept[collection.id] = kept
        kept.asked += 1
        return kept.asked >= kept.often and collection.chunk_count < kept.too_many

    async def view(
        self,
        database: Database,
        collection: Collection,
        segments: Sequence[Segment] | None = None,
    ) -> View | None:
        """A collection that is worth it, as it was when it had these segments, of which the server
        is asked where they are not given; None where not all of it is kept yet."""
        kept = self._kept[collection.id]
        if segments is None:
            async with database.connection() as connection:
                segments = await lexical.segments(connection, collection.id)
        parts = {one.key: kept.parts[one.key] for one in segments if one.key in kept.parts}
        missing = [one for one in segments if one.key not in parts]
        if sum(one.chunks for one in missing) > self._at_once:
            if kept.reading is None or kept.reading.done():
                kept.parts = parts
                reading = self._read_beside(database, collection, kept, missing)
                kept.reading = asyncio.create_task(reading)
            return None
        if missing or any(parts[one.key].gone != one.gone for one in segments):
            async with database.connection() as connection:
                for one in missing:
                    parts[one.key] = Left(await _part(connection, collection.id, kept.space, one))
                dropped = await lexical.dropped(connection, collection.id)
            parts = {one.key: _left(parts[one.key], one, dropped) for one in segments}
        if not parts:
            return None
        kept.parts = parts
        if kept.size > self._most:
            kept.parts, kept.too_many = {}, collection.chunk_count
            return None
        self._make_room(collection.id)
        return View(list(parts.values()))

    def sizes(self) -> dict[CollectionId, int]:
        """What is kept of each collection, in bytes; what was asked for longest ago first."""
        return {key: kept.size for key, kept in self._kept.items() if kept.parts}

    async def close(self) -> None:
        for kept in self._kept.values():
            if kept.reading is not None:
                kept.reading.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await kept.reading

    async def _read_beside(
        self, database: Database, collection: Collection, kept: _Kept, missing: Sequence[Segment]
    ) -> None:
        """What cannot be read now is read after another search."""
        try:
            for one in missing:
                room = self._most - kept.size
                async with database.connection() as connection:
                    part = await _part(connection, collection.id, kept.space, one, most=room)
                kept.parts[one.key] = Left(part)
        except _TooLarge:
            kept.parts, kept.too_many = {}, collection.chunk_count
        except (VadeError, Error):
            return

    def _make_room(self, wanted: CollectionId) -> None:
        """Forget others that were not asked for longest. They are read again much later each time:
        where there is no room for all, most are better asked for in the database."""
        sizes = self.sizes()
        for oldest in list(sizes):
            if oldest == wanted or sum(sizes.values()) <= self._most:
                return
            kept = self._kept[oldest]
            self._kept[oldest] = _Kept(space=kept.space, often=LATER * kept.often)
            del sizes[oldest]


def _left(one: Left, segment: Segment, dropped: Mapping[bytes, NDArray[np.int32]]) -> Left:
    """The same part without the chunks that are gone."""
    if one.gone == segment.gone:
        return one
    gone = dropped.get(segment.key, np.empty(0, np.int32))
    there = ~np.isin(one.part.numbers, gone)
    return replace(one, chunks=None if there.all() else there, gone=len(gone))


async def _part(
    connection: Connection,
    collection: CollectionId,
    space: SpaceId,
    segment: Segment,
    *,
    most: float = math.inf,
) -> Part:
    """The chunks that a segment has now, in this space. Raises _TooLarge where their vectors take
    more than `most` bytes."""
    table = embeddings.table(space)
    where = {"collection": collection, "space": space}
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        _query(COUNTED, table), where | {"first": segment.first, "after": segment.after}
    )
    [(dimensions, count)] = await cursor.fetchall()
    if count * dimensions * VECTOR_BYTES > most:
        raise _TooLarge
    # At once, and filled: pieces of it would take as much again.
    vectors = np.empty((count, dimensions), np.int16)
    filled = 0
    read: list[Numbered] = []
    owners: list[NDArray[np.int32]] = []
    for first in range(segment.first, segment.after, BATCH):
        after = min(first + BATCH, segment.after)
        numbers = np.arange(first, after)
        chunks = await lexical.chunks_of(connection, collection, numbers, sequences=True, near=None)
        rows = where | {"first": first, "after": after}
        await cursor.execute(SECTIONS, rows)
        [(packed,)] = await cursor.fetchall()
        _note_sections(chunks.found, np.frombuffer(packed or b"", SECTION))
        await cursor.execute(_query(WINDOWS, table), rows)
        [(packed,)] = await cursor.fetchall()
        of, unit = await asyncio.to_thread(_unpacked, packed or b"", dimensions)
        # What was deleted between two of the statements is in one of them only.
        there = np.flatnonzero(np.isin(of, chunks.found["number"]))[: count - filled]
        vectors[filled : filled + len(there)] = unit[there]
        filled += len(there)
        owners.append(of[there])
        read.append(chunks)
    found = joined(one.found for one in read)
    return await asyncio.to_thread(
        Part,
        chunks=found,
        sequences=np.concatenate([_ended(one) for one in read]),
        lengths=np.concatenate([one.lengths for one in read]),
        owners=np.searchsorted(found["number"], np.concatenate(owners)),
        vectors=vectors[:filled],
    )


def _note_sections(found: Ranking, sections: NDArray[np.void]) -> None:
    there = np.isin(found["number"], sections["number"])
    found["section"][there] = sections["section"][np.isin(sections["number"], found["number"])]


def _ended(chunks: Numbered) -> NDArray[np.int32]:
    """The sequences with a 0 after the last one, too."""
    return np.append(chunks.sequences, np.int32(0)) if len(chunks.found) else chunks.sequences


def _unpacked(packed: bytes, dimensions: int) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
    """The numbers of the chunks of some windows, and their vectors in steps."""
    row = np.dtype([("number", ">i4"), ("head", ">i4"), ("vector", ">f2", (dimensions,))])
    found = np.frombuffer(packed, row)
    return found["number"].astype(np.int32), steps(found["vector"].astype(np.float32))


@cache
def _query(template: str, table: str) -> bytes:
    return sql.SQL(template).format(table=sql.Identifier(table)).as_bytes()
