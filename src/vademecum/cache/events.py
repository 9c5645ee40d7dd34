"""Every check, read, store, refresh and search of stored pages as a row.

Rows are written a moment after the work: whoever asked is answered first, and does not wait for the
disk. A clean end writes what is left; a kill may lose the events of its last moments, and nothing
else.
"""

import asyncio
from contextlib import suppress

from vademecum.cache.serve import CacheResult
from vademecum.cache.state import CacheState
from vademecum.errors import DatabaseUnavailable
from vademecum.store import cache
from vademecum.store.cache import Event, Kind

LATER_SECONDS = 0.1


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
    """Write what is still to be written, and wait for it."""
    async with state.writing:
        events = state.events[:]
        del state.events[:]
        with suppress(DatabaseUnavailable):
            if events:
                async with state.database.transaction() as connection:
                    for event in events:
                        await cache.note(connection, event)


def _later(state: CacheState, event: Event) -> None:
    if not state.counts:
        return
    state.events.append(event)
    if len(state.events) == 1:
        state.written = asyncio.create_task(_written_later(state))


async def _written_later(state: CacheState) -> None:
    await asyncio.sleep(LATER_SECONDS)
    await written(state)
