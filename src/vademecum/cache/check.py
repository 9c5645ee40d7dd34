"""Before a fetch: the page if it is stored, and what of it matters for the prompt.

address --look up--> page --fresh? else look again--> passages within the budget
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from vademecum.cache import changes as changing
from vademecum.cache import pages, serve
from vademecum.cache.address import normalise
from vademecum.cache.events import note
from vademecum.cache.passages import Span, locate, relevance, tokens
from vademecum.cache.serve import CacheResult, Outcome, checked_budget
from vademecum.cache.state import CacheState
from vademecum.cache.store import spare
from vademecum.errors import FetchRefused, ModelUnavailable, UnreadableSource
from vademecum.inference.words import WordTokenizer
from vademecum.ingest.split import ChunkPolicy, split
from vademecum.search.pipeline import MAX_QUERY_CHARACTERS
from vademecum.store import cache
from vademecum.store.cache import PageChunk, StoredPage
from vademecum.telemetry.spans import span
from vademecum.types import ChunkId, Document
from vademecum.vectors import pgvector

REVALIDATE_SECONDS = 0.25
"""How long an agent waits for a server to say whether a page has changed."""
SERVING_SECONDS = 0.1
"""Of the time a caller has, kept for choosing passages and the database."""


async def check(
    state: CacheState,
    url: str,
    *,
    prompt: str | None = None,
    project: str | None = None,
    budget_tokens: int | None = None,
    revalidate_seconds: float = REVALIDATE_SECONDS,
    seconds: float | None = None,
) -> CacheResult:
    """What is to be read of a page, if it is stored. Raises BadInput, DatabaseUnavailable.

    `seconds` is all the time the caller has; looking again at the page takes what is left.
    """
    started = time.perf_counter()
    deadline = None if seconds is None else started + seconds - SERVING_SECONDS
    try:
        address = normalise(url)
    except FetchRefused as error:
        return CacheResult(outcome="pass", url=url, reason=error.reason)
    with span("cache_check", state.database.backend, url=address) as traced:
        rule = state.rules.of(address)
        budget = checked_budget(budget_tokens, rule.budget)
        if rule.action == "pass":
            result = CacheResult(outcome="pass", url=address, reason="a rule lets it pass")
        elif (page := await pages.stored(state, address, project)) is None:
            result = CacheResult(outcome="miss", url=address, reason="it is not stored")
        else:
            outcome, reason, page = await _current(
                state, page, project, revalidate_seconds, deadline
            )
            result = await _served(state, page, outcome, reason, prompt, project, budget)
        traced.set(outcome=result.outcome)
    result = replace(result, latency_ms=(time.perf_counter() - started) * 1000)
    note(state, "check", result.outcome, result, project)
    return result


async def _current(
    state: CacheState,
    page: StoredPage,
    project: str | None,
    seconds: float,
    deadline: float | None,
) -> tuple[Outcome, str, StoredPage]:
    """The page as it is served: fresh, or looked at again as far as time allows."""
    if page.expires_at is not None and datetime.now(UTC) < page.expires_at:
        return "hit", "", page
    rule = state.rules.of(page.url)
    collection = await pages.by_id(state, page.collection_id)
    left = None if deadline is None else max(deadline - time.perf_counter(), 0.0)
    try:
        spare(page.url, page)
        async with asyncio.timeout(left):
            async with asyncio.timeout(seconds):
                answer = await state.fetcher.get(page.url, rule, page, patient=False)
            readable = await state.fetcher.read(answer, page)
            fetched = await state.fetcher.store(
                collection, page.url, readable, rule, page, project=page.project
            )
    except TimeoutError:
        reason = "its server did not answer in time"
    except UnreadableSource as error:
        reason = error.reason
    else:
        current = await pages.find(state, collection, page.url, project) or page
        return ("verified" if fetched == "unchanged" else "changed"), "", current
    async with state.database.connection() as connection:
        await cache.queue_fetch(connection, page.collection_id, page.url, page.project)
    return "stale", reason, page


async def _served(
    state: CacheState,
    page: StoredPage,
    outcome: Outcome,
    reason: str,
    prompt: str | None,
    project: str | None,
    budget: int,
) -> CacheResult:
    text = page.text or ""
    changed = await _changed(state, page, project, budget)
    head = changed + "\n" if changed else ""
    left = budget - tokens(head) - tokens(serve.opening(page, outcome, reason, "")) - 10
    what, body = "The whole text", serve.whole(page, left)
    if body is None:
        what, body = "Passages", await _passages(state, page, prompt, left)
    opening = serve.opening(page, outcome, reason, what)
    served = f"{opening}\n\n{head}{body}"
    return CacheResult(
        outcome=outcome,
        url=page.url,
        text=served,
        tokens=tokens(served),
        tokens_native=tokens(text),
        reason=reason,
    )


async def _changed(state: CacheState, page: StoredPage, project: str | None, budget: int) -> str:
    """What is new to the project, and a note that it has now read the page."""
    digest, text = page.content_hash or "", page.text or ""
    if page.read_hash == digest:
        return ""
    name = project or ""
    async with state.database.connection() as connection:
        last = await cache.last_read(connection, page.id, name)
        marks = await asyncio.to_thread(changing.fingerprints, text)
        await cache.note_read(connection, page.id, name, digest, marks)
    if last is None:
        return ""
    return serve.changed_part(
        changing.changes(text, last.paragraphs), last.read_at.astimezone(UTC), budget
    )


async def _passages(state: CacheState, page: StoredPage, prompt: str | None, budget: int) -> str:
    chunks = await _chunks(state, page)
    asked = (prompt or "").strip()[:MAX_QUERY_CHARACTERS] or page.title or page.url
    similarity = await _similarity(state, page, asked)
    scores = await asyncio.to_thread(relevance, asked, chunks, similarity)
    if not (prompt or "").strip():  # nothing to choose by: the beginning
        scores = scores * 0 - [chunk.ordinal for chunk in chunks]
    spans: Sequence[Span] = locate(page.text or "", chunks)
    return await asyncio.to_thread(serve.passages, page, spans, scores, budget)


async def _chunks(state: CacheState, page: StoredPage) -> list[PageChunk]:
    if not page.needs_processing and page.document_id is not None:
        async with state.database.connection() as connection:
            stored = await cache.chunks(connection, page.document_id)
        if stored:
            return stored
    # New content that no worker has seen yet: split here, without vectors.
    document = Document(
        title=page.title or "", text=page.text or "", format="markdown", source_hash=""
    )
    made = await asyncio.to_thread(
        split,
        document,
        identity=page.url,
        policy=ChunkPolicy(max_tokens=512, overlap_tokens=64),
        tokenizer=WordTokenizer(),
    )
    return [
        PageChunk(id=None, text=chunk.text, heading_path=chunk.heading_path, ordinal=chunk.ordinal)
        for chunk in made
    ]


async def _similarity(state: CacheState, page: StoredPage, prompt: str) -> Mapping[ChunkId, float]:
    if page.needs_processing or page.document_id is None:
        return {}
    collection = await pages.by_id(state, page.collection_id, fresh=True)
    try:
        embedder = state.searchable_embedder(collection)
    except ModelUnavailable:
        return {}
    if embedder is None or collection.space_id is None:
        return {}
    vector = await embedder.embed_query(prompt)
    async with state.database.connection() as connection:
        return await pgvector.similarities(
            connection,
            space=collection.space_id,
            document=page.document_id,
            vector=vector,
        )
