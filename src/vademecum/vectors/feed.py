"""Feeding a mirror: what changed in PostgreSQL is told to the store, until nothing is left."""

from collections.abc import Callable
from collections.abc import Collection as Ids

from vademecum.store import mirrors
from vademecum.store.db import Connection, Database
from vademecum.store.mirrors import MirrorRow, Told
from vademecum.types import ChunkId
from vademecum.vectors.index import IndexEntry, Mirror, entry_hash, field_of

CHANGES = 500
"""Told in one step; a step that fails is told again."""


async def feed(
    database: Database,
    row: MirrorRow,
    mirror: Mirror,
    progress: Callable[[int], None] = lambda chunks: None,
) -> int:
    """Tell the store all changes; how many chunks it was told of.

    Changes are forgotten once searches of the store see them. One process feeds a mirror at a
    time; where another one does, this returns at once. Raises VectorStoreUnavailable.
    """
    total = 0
    while True:
        async with database.transaction() as connection:
            if not await mirrors.hold(connection, row):
                return total
            ids, chunks = await mirrors.changes(connection, row, limit=CHANGES)
            if not ids:
                return total
            entries = await entries_of(connection, row, chunks)
            await mirror.upsert(entries)
            await mirror.delete(set(chunks) - {entry.chunk_id for entry in entries})
            await mirror.settled()
            await mirrors.forget(connection, ids)
        total += len(chunks)
        progress(total)


async def entries_of(
    connection: Connection, row: MirrorRow, chunks: Ids[ChunkId]
) -> list[IndexEntry]:
    """What the store should hold of these chunks."""
    told = await mirrors.told(connection, row.collection_id, chunks)
    windows = await mirrors.windows(connection, row, chunks)
    return [
        IndexEntry(
            chunk_id=window.chunk_id,
            window_index=window.window_index,
            document_id=told[window.chunk_id].document_id,
            input_hash=window.input_hash,
            vector=window.vector,
            fields=fields(told[window.chunk_id]),
            text=told[window.chunk_id].text,
        )
        for window in windows
        if window.chunk_id in told and window.vector is not None
    ]


async def hashes_of(
    connection: Connection, row: MirrorRow, chunks: Ids[ChunkId]
) -> dict[tuple[ChunkId, int], str]:
    """The hashes of what the store should hold of these chunks, by chunk and window."""
    told = await mirrors.told(connection, row.collection_id, chunks)
    by_chunk = {chunk: fields(one) for chunk, one in told.items()}
    return {
        (window.chunk_id, window.window_index): entry_hash(
            window.window_index, window.input_hash, by_chunk[window.chunk_id]
        )
        for window in await mirrors.windows(connection, row, chunks, vectors=False)
        if window.chunk_id in by_chunk
    }


def fields(told: Told) -> dict[str, object]:
    """The fields of a chunk, its document's facets among them."""
    return told.fields | {field_of(name): value for name, value in told.facets.items()}
