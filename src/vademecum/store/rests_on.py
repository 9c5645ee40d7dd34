"""What notes, summaries and relations rest on, and which of it has changed since."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import EntityId, RelationId


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk as it was read: where it stands, and the SHA-256 of its text."""

    collection: str
    path: str
    section_id: str
    chunk_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleNote:
    id: UUID
    type: str
    project: str
    title: str
    why: list[str]
    collections: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleSummary:
    collection: str
    path: str
    title: str
    error: str | None
    """Why there is no newer one, where making it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestingRelation:
    """A relation, and the knowledge it rests on as that is now; None where it is gone."""

    id: RelationId
    kind: str
    project: str
    start_name: str
    end_name: str
    properties: dict[str, Any]
    knowledge_kind: str | None
    knowledge_name: str | None
    knowledge: dict[str, Any] | None


async def passages_at(
    connection: Connection, references: Sequence[tuple[str, str, str]]
) -> list[Passage]:
    """What references (collection, path, section) name now; '' is every section."""
    async with connection.cursor(row_factory=class_row(Passage)) as cursor:
        await cursor.execute(
            SQL["passages_at"],
            {
                "collections": [one[0] for one in references],
                "paths": [one[1] for one in references],
                "sections": [one[2] for one in references],
            },
        )
        return await cursor.fetchall()


async def rest(connection: Connection, note: UUID, passages: Collection[Passage]) -> None:
    """Note what a note rests on, instead of what it rested on before in the same sections."""
    places = {
        "note": note,
        "collections": [one.collection for one in passages],
        "paths": [one.path for one in passages],
        "sections": [one.section_id for one in passages],
    }
    await connection.execute(SQL["rest_anew"], places)
    hashes = [one.chunk_hash for one in passages]
    await connection.execute(SQL["rest_on"], places | {"hashes": hashes})


async def rest_no_longer(connection: Connection, note: UUID) -> None:
    await connection.execute(SQL["rest_no_longer"], {"note": note})


async def references_of(connection: Connection, note: UUID) -> list[tuple[str, str, str]]:
    """Collection, path and section of what a note rests on."""
    cursor = await connection.execute(SQL["references_of_note"], {"note": note})
    return [(row[0], row[1], row[2]) for row in await cursor.fetchall()]


async def stale_notes(connection: Connection, collection: str | None) -> list[StaleNote]:
    async with connection.cursor(row_factory=class_row(StaleNote)) as cursor:
        await cursor.execute(SQL["stale_notes"], {"collection": collection})
        return await cursor.fetchall()


async def stale_summaries(connection: Connection, collection: str | None) -> list[StaleSummary]:
    async with connection.cursor(row_factory=class_row(StaleSummary)) as cursor:
        await cursor.execute(SQL["stale_summaries"], {"collection": collection})
        return await cursor.fetchall()


async def resting_relations(connection: Connection) -> list[RestingRelation]:
    async with connection.cursor(row_factory=class_row(RestingRelation)) as cursor:
        await cursor.execute(SQL["resting_relations"])
        return await cursor.fetchall()


async def resting_on(connection: Connection, knowledge: EntityId) -> list[tuple[RelationId, str]]:
    """Relations that rest on a piece of knowledge, each with the sentence it gives as evidence."""
    cursor = await connection.execute(SQL["relations_resting_on"], {"knowledge": str(knowledge)})
    return [(row[0], str(row[1].get("evidence", ""))) for row in await cursor.fetchall()]


async def still_stand(connection: Connection, ids: Sequence[RelationId], digest: str) -> None:
    """Relations that were looked at again, against knowledge of this digest."""
    await connection.execute(SQL["relations_still_stand"], {"ids": list(ids), "digest": digest})
