"""Every stored page looked at again: conditionally, politely, updating only what differs."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from vademecum.cache import pages
from vademecum.cache.address import host_of
from vademecum.cache.events import note
from vademecum.cache.serve import CacheResult
from vademecum.cache.state import CacheState
from vademecum.errors import HostBusy, UnreadableSource, VadeError
from vademecum.store import cache
from vademecum.store.cache import PageToRefresh


@dataclass(slots=True, kw_only=True)
class RefreshReport:
    """What a refresh found; `failed` are addresses with the reason, whose old content is kept."""

    unchanged: int = 0
    updated: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)


async def refresh(
    state: CacheState, older_than: timedelta, progress: Callable[[int, int], None]
) -> RefreshReport:
    """One page of a host at a time, several hosts at once."""
    async with state.database.connection() as connection:
        due = await cache.to_refresh(connection, older_than.total_seconds())
    report = RefreshReport()
    by_host: dict[str, list[PageToRefresh]] = defaultdict(list)
    for page in due:
        by_host[host_of(page.url)].append(page)
    done = 0
    places = asyncio.Semaphore(8)

    async def host(wanted: list[PageToRefresh]) -> None:
        nonlocal done
        for page in wanted:
            async with places:
                # A database that went away is waited for; to look again is safe.
                outcome, reason = await state.database.retry(partial(_look_again, state, page))
            if outcome == "failed":
                report.failed.append((page.url, reason))
            elif outcome == "unchanged":
                report.unchanged += 1
            else:
                report.updated += 1
            done += 1
            progress(done, len(due))

    try:
        async with asyncio.TaskGroup() as group:
            for wanted in by_host.values():
                group.create_task(host(wanted))
    except* VadeError as errors:
        raise errors.exceptions[0] from None
    return report


async def _look_again(state: CacheState, page: PageToRefresh) -> tuple[str, str]:
    """What became of the page, and why it failed where it did."""
    started = time.perf_counter()
    collection = await pages.by_id(state, page.collection_id)
    rule = state.rules.of(page.url)
    known = await pages.find(state, collection, page.url)
    outcome, reason = "", ""
    try:
        outcome = await state.fetcher.renew(collection, page.url, rule, known, project=page.project)
    except UnreadableSource as error:
        outcome, reason = "failed", error.reason
        if not (isinstance(error, HostBusy) and error.status is None):
            async with state.database.connection() as connection:
                await cache.page_failed(connection, page.id, reason, again_in=None)
    took = (time.perf_counter() - started) * 1000
    result = CacheResult(outcome="miss", url=page.url, latency_ms=took)
    note(state, "refresh", outcome, result, page.project, detail=reason or None)
    return outcome, reason
