"""The fetches that wait: done by whoever comes first, politely, again where that may help."""

import asyncio
import time
from contextlib import suppress

from vademecum.cache import pages
from vademecum.cache.events import note
from vademecum.cache.serve import CacheResult
from vademecum.cache.state import CacheState
from vademecum.errors import (
    DatabaseUnavailable,
    FetchRefused,
    HostBusy,
    NotCacheable,
    UnreadableSource,
    VadeError,
)
from vademecum.store import cache
from vademecum.store.cache import DuePage

MAX_FAILURES = 5
MAX_FETCHES = 4
"""Fetches under way at once, of different hosts."""
PUT_BACK_SECONDS = 5.0
"""How long an end in good order waits for a database that is away."""


async def fetch_due(state: CacheState, *, limit: int | None = None, wait: bool = False) -> int:
    """Do the fetches that are due, several hosts at a time; how many were done.

    With `wait`, also those that are to be tried again within a few seconds.
    """
    done = 0

    async def work(*, suspect: bool = False) -> None:
        nonlocal done
        while limit is None or done < limit:
            if (job := await _take(state, suspect=suspect)) is None:
                return
            done += 1
            try:
                await _fetch(state, job)
            except asyncio.CancelledError:
                await asyncio.shield(_put_back(state, job))
                raise

    while True:
        before = done
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(MAX_FETCHES if limit is None else min(limit, MAX_FETCHES)):
                    group.create_task(work())
            # What a process died on takes no other fetch along.
            await work(suspect=True)
        except* VadeError as errors:
            raise errors.exceptions[0] from None
        async with state.database.connection() as connection:
            _, due_in = await cache.due(connection)
        soon = due_in is not None and due_in < 10
        if done == before and not (wait and soon):
            return done
        if not wait or (limit is not None and done >= limit):
            return done
        if soon:
            await asyncio.sleep(max(due_in or 0.0, 0.05))


async def fetch_if_due(state: CacheState) -> int:
    """As `fetch_due`, after one look whether there is anything to do."""
    async with state.database.connection() as connection:
        _, due_in = await cache.due(connection)
    return await fetch_due(state) if due_in is not None and due_in <= 0 else 0


async def _take(state: CacheState, *, suspect: bool) -> DuePage | None:
    """The next page, taken by this process; what is taken while we are stopped is put back."""

    async def take() -> DuePage | None:
        async with state.database.connection() as connection:
            return await cache.take_due(connection, suspect=suspect)

    taking = asyncio.ensure_future(take())
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        if (job := await taking) is not None:
            await asyncio.shield(_put_back(state, job))
        raise


async def _put_back(state: CacheState, job: DuePage) -> None:
    """At once if the database is there; else it comes back when its lease ends."""
    with suppress(DatabaseUnavailable, TimeoutError):
        async with asyncio.timeout(PUT_BACK_SECONDS), state.database.connection() as connection:
            await cache.page_put_off(connection, job.id, 0.0)


async def _fetch(state: CacheState, job: DuePage) -> None:
    started = time.perf_counter()
    rule = state.rules.of(job.url)
    detail = None
    try:
        collection = await pages.by_id(state, job.collection_id)
        known = await pages.find(state, collection, job.url)
        outcome: str = await state.fetcher.renew(
            collection, job.url, rule, known, project=job.project
        )
    except UnreadableSource as error:
        put_off = isinstance(error, HostBusy) and error.status is None
        outcome, detail = "put-off" if put_off else "failed", error.reason
        await _failed(state, job, error)
    except DatabaseUnavailable:  # no failure of the page
        await _put_back(state, job)
        raise
    except Exception as error:  # noqa: BLE001 - one page's failure is its own
        outcome, detail = "failed", f"{type(error).__name__}: {error}"
        await _failed(state, job, UnreadableSource(job.url, detail))
    result = CacheResult(
        outcome="miss", url=job.url, latency_ms=(time.perf_counter() - started) * 1000
    )
    note(state, "store", outcome, result, job.project, detail=detail)


async def _failed(state: CacheState, job: DuePage, error: UnreadableSource) -> None:
    again: float | None = 4.0**job.failures
    if isinstance(error, HostBusy):
        if error.status is None:
            async with state.database.connection() as connection:
                await cache.page_put_off(connection, job.id, error.retry_after or 1.0)
            return
        again = error.retry_after or 60.0
    elif isinstance(error, NotCacheable | FetchRefused) or _final(error):
        again = None
    if job.failures >= MAX_FAILURES:
        again = None
    async with state.database.connection() as connection:
        await cache.page_failed(connection, job.id, error.reason, again_in=again)


async def due(state: CacheState) -> int:
    """Fetches that wait."""
    async with state.database.connection() as connection:
        return (await cache.due(connection))[0]


def _final(error: UnreadableSource) -> bool:
    """Whether another try is in vain: the server knows no such page."""
    return any(f"it answered {status}" in error.reason for status in (401, 403, 404, 410))
