"""The cache of the web: pages and their other addresses, who read what, and every event."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import ChunkId, CollectionId, DocumentId

LEASE_SECONDS = 120.0
"""Longer than a fetch may take; then another process takes it up."""

MAX_DEATHS = 5
"""Processes that may die while reading a page, before it is left alone."""

Kind = Literal["check", "read", "store", "refresh", "search"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A page of the web, with its content where that is stored."""

    id: int
    collection_id: CollectionId
    url: str
    document_id: DocumentId | None
    etag: str | None
    last_modified: str | None
    tokens: int
    fetched_at: datetime | None
    verified_at: datetime | None
    expires_at: datetime | None
    error: str | None
    project: str | None
    deaths: int
    title: str | None
    text: str | None
    content_hash: str | None
    needs_processing: bool | None
    read_hash: str | None
    """Of the content that the project asked for last read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuePage:
    id: int
    collection_id: CollectionId
    url: str
    project: str | None
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageToRefresh:
    id: int
    collection_id: CollectionId
    url: str
    project: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChunk:
    """A passage of a page, as it is searched."""

    id: ChunkId | None
    text: str
    heading_path: Sequence[str]
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    kind: Kind
    outcome: str
    url: str
    project: str | None = None
    tokens_served: int = 0
    tokens_native: int = 0
    """What the page costs whoever reads it whole."""
    latency_ms: float = 0.0
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRead:
    paragraphs: list[int]
    read_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTotal:
    kind: str
    outcome: str
    warm: bool
    """Not the first event of its kind for the address."""
    events: int
    saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    kind: str
    p50: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    step: int
    checks: int
    hits: int
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    documents: int
    searchable: int
    queued: int
    pages: int
    doubles: int
    first_event: datetime | None


async def page(
    connection: Connection, collection: CollectionId, url: str, project: str = ""
) -> StoredPage | None:
    values = {"collection": collection, "url": url, "project": project}
    async with connection.cursor(row_factory=class_row(StoredPage)) as cursor:
        await cursor.execute(SQL["web_page"], values)
        return await cursor.fetchone()


async def queue_fetch(
    connection: Connection, collection: CollectionId, url: str, project: str | None
) -> None:
    values = {"collection": collection, "url": url, "project": project}
    await connection.execute(SQL["queue_fetch"], values)


async def take_due(connection: Connection, *, suspect: bool) -> DuePage | None:
    """A page whose fetch is due, taken for LEASE_SECONDS; of the `suspect` a process died on."""
    values = {"seconds": LEASE_SECONDS, "suspect": suspect}
    async with connection.cursor(row_factory=class_row(DuePage)) as cursor:
        await cursor.execute(SQL["take_due_page"], values)
        return await cursor.fetchone()


async def page_reading(connection: Connection, page: int) -> None:
    """Count a death beforehand; `page_survived` takes it back."""
    await connection.execute(SQL["page_reading"], {"page": page})


async def page_survived(connection: Connection, page: int) -> None:
    await connection.execute(SQL["page_survived"], {"page": page})


async def due(connection: Connection) -> tuple[int, float | None]:
    """How many fetches are to be done, and in how many seconds the first one is."""
    row = await (await connection.execute(SQL["due_pages"])).fetchone()
    assert row is not None
    return row[0], row[1]


async def page_stored(
    connection: Connection,
    *,
    collection: CollectionId,
    url: str,
    aliases: Sequence[str],
    document: DocumentId,
    etag: str | None,
    last_modified: str | None,
    tokens: int,
    now: datetime,
    expires_at: datetime,
    project: str | None,
) -> int:
    """Note a page's new content; call in the transaction that stores the document."""
    cursor = await connection.execute(
        SQL["page_stored"],
        {
            "collection": collection,
            "url": url,
            "document": document,
            "etag": etag,
            "last_modified": last_modified,
            "tokens": tokens,
            "now": now,
            "expires_at": expires_at,
            "project": project,
        },
    )
    row = await cursor.fetchone()
    assert row is not None
    for alias in aliases:
        values = {"collection": collection, "url": alias, "page": row[0]}
        await connection.execute(SQL["drop_moved_page"], values)
        await connection.execute(SQL["page_alias"], values)
    return int(row[0])


async def page_verified(
    connection: Connection, page: int, *, now: datetime, expires_at: datetime
) -> None:
    values = {"page": page, "now": now, "expires_at": expires_at}
    await connection.execute(SQL["page_verified"], values)


async def page_failed(
    connection: Connection, page: int, error: str, *, again_in: float | None
) -> None:
    """Keep what is stored, and try again in so many seconds, or not by itself."""
    values = {"page": page, "error": error, "seconds": again_in}
    await connection.execute(SQL["page_failed"], values)


async def page_put_off(connection: Connection, page: int, seconds: float) -> None:
    """Not tried, since its host asked to be left alone: no failure of the page."""
    await connection.execute(SQL["page_put_off"], {"page": page, "seconds": seconds})


async def host_busy(connection: Connection, host: str, seconds: float) -> None:
    await connection.execute(SQL["host_busy"], {"host": host, "seconds": seconds})


async def busy_seconds(connection: Connection, host: str) -> float:
    """How long the host is still to be left alone; 0 or less where it is not."""
    row = await (await connection.execute(SQL["busy_seconds"], {"host": host})).fetchone()
    return float(row[0]) if row else 0.0


async def to_refresh(connection: Connection, older_than: float) -> list[PageToRefresh]:
    """Pages not looked at for so many seconds."""
    async with connection.cursor(row_factory=class_row(PageToRefresh)) as cursor:
        await cursor.execute(SQL["pages_to_refresh"], {"seconds": older_than})
        return await cursor.fetchall()


async def chunks(connection: Connection, document: DocumentId) -> list[PageChunk]:
    async with connection.cursor(row_factory=class_row(PageChunk)) as cursor:
        await cursor.execute(SQL["page_chunks"], {"document": document})
        return await cursor.fetchall()


async def store_digest(
    connection: Connection,
    collection: CollectionId,
    *,
    url: str,
    prompt: str,
    result: str,
    derived: bool,
    project: str | None,
) -> None:
    await connection.execute(
        SQL["store_digest"],
        {
            "collection": collection,
            "url": url,
            "prompt": prompt,
            "result": result,
            "derived": derived,
            "project": project,
        },
    )


async def store_source(
    connection: Connection,
    collection: CollectionId,
    *,
    query: str,
    url: str,
    title: str,
    snippet: str,
    project: str | None,
) -> None:
    await connection.execute(
        SQL["store_web_source"],
        {
            "collection": collection,
            "query": query,
            "url": url,
            "title": title,
            "snippet": snippet,
            "project": project,
        },
    )


async def last_read(connection: Connection, page: int, project: str) -> LastRead | None:
    async with connection.cursor(row_factory=class_row(LastRead)) as cursor:
        await cursor.execute(SQL["last_read"], {"page": page, "project": project})
        return await cursor.fetchone()


async def note_read(
    connection: Connection, page: int, project: str, content_hash: str, paragraphs: list[int]
) -> None:
    await connection.execute(
        SQL["note_read"],
        {
            "page": page,
            "project": project,
            "content_hash": content_hash,
            "paragraphs": paragraphs,
        },
    )


async def note(connection: Connection, event: Event) -> None:
    await connection.execute(SQL["note_event"], asdict(event))


async def totals(connection: Connection, since: datetime, until: datetime) -> list[EventTotal]:
    async with connection.cursor(row_factory=class_row(EventTotal)) as cursor:
        await cursor.execute(SQL["event_totals"], {"since": since, "until": until})
        return await cursor.fetchall()


async def latencies(connection: Connection, since: datetime, until: datetime) -> dict[str, Latency]:
    async with connection.cursor(row_factory=class_row(Latency)) as cursor:
        await cursor.execute(SQL["event_latency"], {"since": since, "until": until})
        return {latency.kind: latency for latency in await cursor.fetchall()}


async def buckets(
    connection: Connection, since: datetime, until: datetime, steps: int
) -> list[Bucket]:
    async with connection.cursor(row_factory=class_row(Bucket)) as cursor:
        await cursor.execute(
            SQL["event_buckets"],
            {
                "since": since,
                "until": until,
                "from": since.timestamp(),
                "to": until.timestamp(),
                "steps": steps,
            },
        )
        return await cursor.fetchall()


async def state(connection: Connection) -> State:
    async with connection.cursor(row_factory=class_row(State)) as cursor:
        await cursor.execute(SQL["cache_state"])
        found = await cursor.fetchone()
    assert found is not None
    return found


async def collection_name(connection: Connection, collection: CollectionId) -> str:
    cursor = await connection.execute(SQL["collection_name_of"], {"collection": collection})
    row = await cursor.fetchone()
    return str(row[0]) if row else ""
