"""Rows of what is learned of knowledge: use and outcomes, scores, top lists, the change log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row, dict_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import EntityId

TOP = 20
"""Documents of a top list."""
FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """What the score of a document depends on."""

    entity_id: EntityId
    kind: str
    source: str
    category: str
    language: str
    last_updated: datetime
    access_count: int = 0
    last_accessed: datetime | None = None
    successes: int = 0
    failures: int = 0
    misled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUse:
    entity_id: EntityId
    source: str
    last_updated: datetime
    access_count: int
    last_accessed: datetime | None
    successes: int
    failures: int
    misled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewScore:
    entity_id: EntityId
    credibility: float
    freshness: float
    usage: float
    helpfulness: float
    relevance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChangelog:
    """A document that tells how a package changed; its text is in a file."""

    id: EntityId
    ecosystem: str
    package: str
    title: str
    url: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeChange:
    entity_id: EntityId
    name: str
    change: str
    detail: str
    changed_at: datetime


async def note_documents(connection: Connection, rows: Sequence[Scoring]) -> None:
    """Only what is stated; counts stay."""
    values = {
        "ids": [row.entity_id for row in rows],
        "kinds": [row.kind for row in rows],
        "sources": [row.source for row in rows],
        "categories": [row.category for row in rows],
        "languages": [row.language for row in rows],
        "last_updated": [row.last_updated for row in rows],
    }
    await connection.execute(SQL["note_documents"], values)


async def hold(connection: Connection, ids: Collection[EntityId]) -> list[Scoring]:
    """Rows of these documents, held until the transaction ends."""
    async with connection.cursor(row_factory=class_row(Scoring)) as cursor:
        await cursor.execute(SQL["hold_scores"], {"ids": list(ids)})
        return await cursor.fetchall()


async def after(connection: Connection, last: UUID, limit: int) -> list[Scoring]:
    """The next rows by id, held until the transaction ends."""
    async with connection.cursor(row_factory=class_row(Scoring)) as cursor:
        await cursor.execute(SQL["scores_after"], {"after": last, "limit": limit})
        return await cursor.fetchall()


async def write_scores(connection: Connection, rows: Sequence[NewScore], now: datetime) -> int:
    """How many differ from before."""
    values = {
        "now": now,
        "ids": [row.entity_id for row in rows],
        "credibility": [row.credibility for row in rows],
        "freshness": [row.freshness for row in rows],
        "usage": [row.usage for row in rows],
        "helpfulness": [row.helpfulness for row in rows],
        "relevance": [row.relevance for row in rows],
    }
    return (await connection.execute(SQL["write_scores"], values)).rowcount


async def count_use(
    connection: Connection,
    number: EntityId,
    *,
    uses: int,
    successes: int,
    failures: int,
    misled: int,
    now: datetime,
) -> None:
    values = {
        "id": number,
        "uses": uses,
        "successes": successes,
        "failures": failures,
        "misled": misled,
        "now": now,
    }
    await connection.execute(SQL["count_use"], values)


async def usage_outcome(connection: Connection, usage: EntityId) -> str | None:
    """The outcome of a use that is recorded already."""
    row = await (await connection.execute(SQL["usage_outcome"], {"id": usage})).fetchone()
    return str(row[0]) if row else None


async def make_top(connection: Connection, category: str, language: str) -> None:
    """Make the list of a category and language anew; other writers of it wait."""
    values = {"category": category, "language": language, "limit": TOP}
    await connection.execute(SQL["lock_top"], values)
    await connection.execute(SQL["clear_top"], values)
    await connection.execute(SQL["make_top"], values)


async def top_groups(connection: Connection) -> list[tuple[str, str]]:
    cursor = await connection.execute(SQL["top_groups"])
    return [(category, language) for category, language in await cursor.fetchall()]


async def uses_of(connection: Connection, ids: Collection[EntityId]) -> dict[EntityId, StoredUse]:
    async with connection.cursor(row_factory=class_row(StoredUse)) as cursor:
        await cursor.execute(SQL["scores_of"], {"ids": list(ids)})
        return {row.entity_id: row for row in await cursor.fetchall()}


async def note_change(
    connection: Connection, number: EntityId, name: str, change: str, detail: str = ""
) -> None:
    values = {"id": number, "name": name[:500], "change": change, "detail": detail[:2000]}
    await connection.execute(SQL["note_change"], values)


async def changes(
    connection: Connection, *, number: EntityId | None, since: datetime | None, limit: int
) -> list[KnowledgeChange]:
    """The newest first."""
    values = {"id": number, "since": since, "limit": limit}
    async with connection.cursor(row_factory=class_row(KnowledgeChange)) as cursor:
        await cursor.execute(SQL["knowledge_changes"], values)
        return await cursor.fetchall()


# --- upkeep ---------------------------------------------------------------------------------


async def stale(
    connection: Connection,
    *,
    stale_before: Mapping[str, datetime],
    otherwise: datetime,
    share: float,
    used_after: datetime,
    failed_after: datetime,
    limit: int,
) -> list[EntityId]:
    """Documents that are stale by their source, and valued; the most used first."""
    values = {
        "sources": list(stale_before),
        "befores": list(stale_before.values()),
        "otherwise": otherwise,
        "share": share,
        "used_after": used_after,
        "failed_after": failed_after,
        "limit": limit,
    }
    cursor = await connection.execute(SQL["stale_documents"], values)
    return [row[0] for row in await cursor.fetchall()]


async def changelogs(connection: Connection) -> list[StoredChangelog]:
    """Of every package, the newest first."""
    async with connection.cursor(row_factory=class_row(StoredChangelog)) as cursor:
        await cursor.execute(SQL["changelogs"])
        return await cursor.fetchall()


async def most_used(connection: Connection, limit: int) -> list[dict[str, Any]]:
    return await _dicts(connection, SQL["most_used"], {"limit": limit})


async def never_used(
    connection: Connection, *, before: datetime, limit: int
) -> list[dict[str, Any]]:
    """The oldest first."""
    return await _dicts(connection, SQL["never_used"], {"before": before, "limit": limit})


async def gaps(connection: Connection, limit: int) -> list[dict[str, Any]]:
    return await _dicts(connection, SQL["knowledge_gaps"], {"limit": limit})


async def used_since(
    connection: Connection, ids: Collection[EntityId], since: datetime
) -> set[EntityId]:
    cursor = await connection.execute(SQL["used_since"], {"ids": list(ids), "since": since})
    return {row[0] for row in await cursor.fetchall()}


async def take_turn(connection: Connection, task: str, *, now: datetime, before: datetime) -> bool:
    """Whether the task was not begun since `before`; then it is noted as begun."""
    await connection.execute(SQL["lock_turn"], {"task": task})
    cursor = await connection.execute(
        SQL["take_turn"], {"task": task, "now": now, "before": before}
    )
    return await cursor.fetchone() is not None


async def _dicts(
    connection: Connection, query: str, values: dict[str, Any]
) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()
