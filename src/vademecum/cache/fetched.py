"""After a fetch: what a client fetched is queued to be fetched by us, and what it found is kept."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from vademecum.cache import pages
from vademecum.cache.address import normalise
from vademecum.cache.events import note
from vademecum.cache.serve import CacheResult, Outcome
from vademecum.cache.state import CacheState
from vademecum.cache.store import Fetched, read_page, written_page
from vademecum.errors import FetchRefused, NotCacheable
from vademecum.store import cache
from vademecum.store.cache import Event
from vademecum.types import Document


async def page_fetched(
    state: CacheState,
    url: str,
    *,
    prompt: str | None = None,
    result: str | None = None,
    project: str | None = None,
) -> Outcome:
    """A client fetched a page: queue our own fetch, and keep what its model made of it.

    Answers `miss` where a fetch is queued, `hit` where the page is fresh, `pass` where it is
    not to be stored.
    """
    try:
        address = normalise(url)
    except FetchRefused:
        return "pass"
    rule = state.rules.of(address)
    if rule.action != "cache":
        note(state, "store", "pass", CacheResult(outcome="pass", url=address), project)
        return "pass"
    collection = await pages.own(state, project)
    page = await pages.stored(state, address, project)
    fresh = page is not None and page.expires_at is not None
    fresh = fresh and datetime.now(UTC) < page.expires_at  # type: ignore[union-attr,operator]
    async with state.database.transaction() as connection:
        if result and result.strip():
            await cache.store_digest(
                connection,
                collection.id,
                url=address,
                prompt=prompt or "",
                result=result.replace("\x00", ""),
                derived=not rule.verbatim,
                project=project,
            )
        if not fresh:
            await cache.queue_fetch(connection, collection.id, address, project)
    outcome: Outcome = "hit" if fresh else "miss"
    note(
        state,
        "store",
        "known" if fresh else "queued",
        CacheResult(outcome=outcome, url=address),
        project,
    )
    return outcome


async def searched(
    state: CacheState,
    query: str,
    results: Sequence[Mapping[str, object]],
    project: str | None = None,
) -> int:
    """Keep what a web search found (title, url, snippet each) as sources; how many."""
    collection = await pages.own(state, project)
    kept = 0
    async with state.database.transaction() as connection:
        for found in results:
            try:
                address = normalise(str(found.get("url") or ""))
            except FetchRefused:
                continue
            await cache.store_source(
                connection,
                collection.id,
                query=query.replace("\x00", ""),
                url=address,
                title=str(found.get("title") or "").replace("\x00", ""),
                snippet=str(found.get("snippet") or "").replace("\x00", ""),
                project=project,
            )
            kept += 1
        if state.counts:
            await cache.note(
                connection, Event(kind="store", outcome="sources", url="", project=project)
            )
    return kept


async def read_now(state: CacheState, url: str) -> Document:
    """What a page says at this moment; not stored. Raises FetchRefused, UnreadableSource."""
    address = normalise(url)
    page = await state.fetcher.get(address, state.rules.of(address), None, patient=True)
    return await asyncio.to_thread(read_page, page)


async def store_page(
    state: CacheState, url: str, *, content: str | None = None, project: str | None = None
) -> Fetched:
    """Fetch and store a page at once; with `content`, that instead of a fetch.

    Raises FetchRefused, NotCacheable, UnreadableSource.
    """
    started = time.perf_counter()
    address = normalise(url)
    rule = state.rules.of(address)
    if rule.action != "cache":
        raise NotCacheable(address, "a rule says not to store it")
    before = await pages.existing(state, pages.collection_name(state, project), fresh=True)
    known = await pages.find(state, before, address) if before else None
    if content is not None:
        page = written_page(address, content)
    else:
        page = await state.fetcher.get(address, rule, known, patient=True)
    readable = await state.fetcher.read(page, trusted=content is not None)
    collection = await pages.own(state, project)  # only now: what fails makes none
    fetched = await state.fetcher.store(collection, address, readable, rule, known, project=project)
    result = CacheResult(
        outcome="hit", url=address, latency_ms=(time.perf_counter() - started) * 1000
    )
    note(state, "store", fetched, result, project)
    return fetched
