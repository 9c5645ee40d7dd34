"""Every check, read, store, refresh and search of stored pages as a row.

Rows are written beside the work: whoever asked does not wait for the disk. A clean end writes what
is left; a kill may lose the events of its last moments, and nothing else.
"""

import asyncio
from contextlib import suppress

from vademecum.cache.serve import CacheResult
from vademecum.cache.state import CacheState
from vademecum.errors import DatabaseUnavailable
from vademecum.store import cache
from vademecum.store.cache import Event, Kind


def note(
    state: CacheState,
    kind: Kind,
    outcome: str,
    result: CacheResult,
    project: str | None,
    *,
    detail: str | None = None,
) -> None:
    """What became of an address."""
    event = Event(
        kind=kind,
        outcome=outcome,
        url=result.url,
        project=project,
        tokens_served=result.tokens,
        tokens_native=result.tokens_native,
        latency_ms=result.latency_ms,
        detail=detail or result.reason or None,
    )
    _later(state, event)


def note_search(state: CacheState, results: int, latency_ms: float) -> None:
    """A search of stored pages."""
    outcome = "found" if results else "nothing"
    event = Event(kind="search", outcome=outcome, url="", latency_ms=latency_ms)
    _later(state, event)


async def written(state: CacheState) -> None:
    """Wait for what is still to be written."""
    await asyncio.gather(*state.notes, return_exceptions=True)


def _later(state: CacheState, event: Event) -> None:
    if not state.counts:
        return
    task = asyncio.create_task(_write(state, event))
    state.notes.add(task)
    task.add_done_callback(state.notes.discard)


async def _write(state: CacheState, event: Event) -> None:
    with suppress(DatabaseUnavailable):
        async with state.database.connection() as connection:
            await cache.note(connection, event)
