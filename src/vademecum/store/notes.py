"""Rows of notes. Every call names the project."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import CollectionId, DocumentId


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing that is known about a project."""

    id: UUID
    project: str
    type: str
    title: str
    content: str
    tags: list[str]
    importance: int
    """1 to 10; from 5 on agents are told of it by themselves."""
    evidence: list[str]
    """What it rests on: files with lines, commits, addresses."""
    agent: str
    replaced_by: UUID | None
    replaced_why: str
    created_at: datetime
    updated_at: datetime
    stale: list[str]
    """Which of the passages it rests on have changed or are gone."""


async def lock(connection: Connection, project: str) -> None:
    """Writers of one project wait for each other, to the end of the transaction."""
    await connection.execute(SQL["lock_notes"], {"project": project})


async def in_force(
    connection: Connection,
    project: str,
    *,
    type: str | None = None,  # noqa: A002 - the word for it everywhere
    tags: Sequence[str] = (),
    importance: int = 1,
    limit: int = 2000,
) -> list[Note]:
    """Notes that hold, the most important and newest first."""
    values = {
        "project": project,
        "type": type,
        "tags": list(tags),
        "importance": importance,
        "limit": limit,
    }
    return await _read(connection, SQL["notes_in_force"], values)


async def by_id(connection: Connection, project: str, ids: Collection[UUID]) -> dict[UUID, Note]:
    """Notes of the project, replaced ones too."""
    found = await _read(connection, SQL["notes_by_id"], {"project": project, "ids": list(ids)})
    return {note.id: note for note in found}


async def replaced_by(connection: Connection, project: str, note: UUID) -> list[Note]:
    """What a note replaced."""
    return await _read(connection, SQL["notes_replaced_by"], {"project": project, "id": note})


async def insert(connection: Connection, **values: Any) -> UUID:
    cursor = await connection.execute(SQL["insert_note"], values)
    row = await cursor.fetchone()
    assert row is not None
    number: UUID = row[0]
    return number


async def confirm(
    connection: Connection,
    project: str,
    note: UUID,
    *,
    importance: int,
    tags: Sequence[str],
    evidence: Sequence[str],
) -> None:
    """Keep a note that was said again, with what that adds to it."""
    values = {
        "project": project,
        "id": note,
        "importance": importance,
        "tags": list(tags),
        "evidence": list(evidence),
    }
    await connection.execute(SQL["confirm_note"], values)


async def set_evidence(
    connection: Connection, project: str, note: UUID, evidence: Sequence[str]
) -> None:
    values = {"project": project, "id": note, "evidence": list(evidence)}
    await connection.execute(SQL["set_evidence"], values)


async def replace(connection: Connection, project: str, note: UUID, *, by: UUID, why: str) -> None:
    await connection.execute(
        SQL["replace_note"], {"project": project, "id": note, "by": by, "why": why}
    )


async def restore(connection: Connection, project: str, note: UUID) -> None:
    await connection.execute(SQL["restore_note"], {"project": project, "id": note})


async def remove(connection: Connection, project: str, note: UUID) -> None:
    await connection.execute(SQL["remove_note"], {"project": project, "id": note})


async def documents_at(
    connection: Connection, collection: CollectionId, urls: Sequence[str]
) -> list[DocumentId]:
    """The documents in which notes are searched."""
    values = {"collection": collection, "urls": list(urls)}
    rows = await (await connection.execute(SQL["documents_at"], values)).fetchall()
    return [row[0] for row in rows]


async def projects(connection: Connection) -> list[tuple[str, int]]:
    """Projects that have notes, with how many hold."""
    rows = await (await connection.execute(SQL["note_projects"])).fetchall()
    return [(row[0], row[1]) for row in rows]


async def _read(connection: Connection, query: str, values: dict[str, Any]) -> list[Note]:
    async with connection.cursor(row_factory=class_row(Note)) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()
