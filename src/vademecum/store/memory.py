"""Rows of users and their memory. Every call names one user, and sees rows of no other."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.errors import ForeignKeyViolation
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from vademecum.errors import BadInput, UserForgotten
from vademecum.store.db import Connection, Database, identifier
from vademecum.store.sql import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class _Narrative:
    content: str
    facts: dict[str, Any]
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory(_Narrative):
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVersion(_Narrative):
    reason: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPassage:
    """A sentence as search knows it; `embedding` is of the embedding space with the key `space`."""

    text: str
    section: str
    version: int
    terms: list[str]
    space: str | None
    embedding: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    project: str
    agent: str
    outcome: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was removed of a user; says nothing of who it was."""

    id: UUID
    removed: dict[str, int]
    probe_hash: str | None
    started_at: datetime
    completed_at: datetime | None


def user_key(user: str, key: str | None) -> str:
    """The hash a user is known by: of the lower-cased part before the @.

    SHA-256, or HMAC-SHA-256 with the installation's key. Raises BadInput where no user is named.
    """
    name = user.strip().lower().split("@")[0]
    if not name or "\0" in name or len(name) > 320:
        raise BadInput("no user was named", hint="Name one with --user someone@example.org.")
    data = name.encode("utf-8", "surrogatepass")
    if key:
        return hmac.new(key.encode(), data, hashlib.sha256).hexdigest()
    return hashlib.sha256(data).hexdigest()


@asynccontextmanager
async def as_user(database: Database, user: UUID) -> AsyncIterator[Connection]:
    """A transaction that sees the memory of this user only, by row-level security.

    Raises UserForgotten where the user goes before the transaction ends.
    """
    async with database.transaction() as connection:
        role = await (await connection.execute(SQL["memory_role"])).fetchone()
        if role and role[0]:
            await connection.execute("SET LOCAL ROLE vademecum_memory")
        await connection.execute(SQL["as_user"], {"id": str(user)})
        try:
            yield connection
        except ForeignKeyViolation:
            raise UserForgotten(
                "this user was forgotten meanwhile; nothing was stored",
                hint="Send it again if the user is to come back.",
            ) from None


async def find_user(database: Database, key: str) -> UUID | None:
    async with database.connection() as connection:
        row = await (await connection.execute(SQL["find_user"], {"user": key})).fetchone()
    return row[0] if row else None


async def make_user(database: Database, key: str) -> UUID:
    """The user's id, made where new. Raises UserForgotten while that is under way."""
    async with database.connection() as connection:
        row = await (await connection.execute(SQL["make_user"], {"user": key})).fetchone()
    assert row is not None
    if row[1] is not None:
        raise UserForgotten(
            "this user is being forgotten",
            hint="Run `vade memory forget` again to complete it; then the user can come back.",
        )
    user: UUID = row[0]
    return user


async def lock(connection: Connection, user: UUID, project: str) -> StoredMemory:
    """The memory, held against other writers until the transaction ends; made where new."""
    values = {"id": user, "project": project}
    await connection.execute(SQL["make_memory"], values)
    async with connection.cursor(row_factory=class_row(StoredMemory)) as cursor:
        await cursor.execute(SQL["lock_memory"], values)
        found = await cursor.fetchone()
    assert found is not None
    return found


async def read(connection: Connection, user: UUID, project: str) -> StoredMemory | None:
    async with connection.cursor(row_factory=class_row(StoredMemory)) as cursor:
        await cursor.execute(SQL["read_memory"], {"id": user, "project": project})
        return await cursor.fetchone()


async def projects(connection: Connection, user: UUID) -> list[str]:
    cursor = await connection.execute(SQL["memory_projects"], {"id": user})
    return [row[0] for row in await cursor.fetchall()]


async def write(
    connection: Connection,
    user: UUID,
    project: str,
    *,
    content: str,
    facts: dict[str, Any],
    reason: str,
) -> int:
    """Store a new version; its number. The text must have passed the gate."""
    cursor = await connection.execute(
        SQL["write_memory"],
        {
            "id": user,
            "project": project,
            "content": content,
            "facts": Jsonb(facts),
            "reason": reason,
        },
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def versions(
    connection: Connection, user: UUID, project: str, *, since: int = 0
) -> list[MemoryVersion]:
    """The versions after `since`, oldest first."""
    async with connection.cursor(row_factory=class_row(MemoryVersion)) as cursor:
        await cursor.execute(
            SQL["memory_versions_since"], {"id": user, "project": project, "since": since}
        )
        return await cursor.fetchall()


async def passages(connection: Connection, user: UUID, project: str) -> list[StoredPassage]:
    """The newest first."""
    async with connection.cursor(row_factory=class_row(StoredPassage)) as cursor:
        await cursor.execute(SQL["memory_passages"], {"id": user, "project": project})
        return await cursor.fetchall()


async def store_passages(
    connection: Connection, user: UUID, project: str, found: Iterable[StoredPassage]
) -> None:
    of = {"id": user, "project": project}
    async with connection.cursor() as cursor:
        await cursor.executemany(SQL["store_passage"], [of | asdict(one) for one in found])


async def seen(connection: Connection, user: UUID, exchange: str) -> bool:
    """Whether the exchange was noted before."""
    values = {"id": user, "exchange": _exchange_hash(user, exchange)}
    cursor = await connection.execute(SQL["seen_interaction"], values)
    return await cursor.fetchone() is not None


def _exchange_hash(user: UUID, exchange: str) -> str:
    return hashlib.sha256(f"{user}\n{exchange}".encode()).hexdigest()


async def log(
    connection: Connection, user: UUID, *, exchange: str, project: str, agent: str, outcome: str
) -> bool:
    """Note an interaction; False where the exchange was there before."""
    cursor = await connection.execute(
        SQL["log_interaction"],
        {
            "id": user,
            "exchange": _exchange_hash(user, exchange),
            "project": project,
            "agent": agent,
            "outcome": outcome,
        },
    )
    return await cursor.fetchone() is not None


async def interactions(connection: Connection, user: UUID) -> list[Interaction]:
    async with connection.cursor(row_factory=class_row(Interaction)) as cursor:
        await cursor.execute(SQL["read_interactions"], {"id": user})
        return await cursor.fetchall()


async def forget(database: Database, key: str) -> Receipt | None:
    """Remove a user from every table that refers to users, a table a transaction, and prove it.

    Stopped anywhere it goes on where it was when called again. None where nothing is held.
    """
    async with database.transaction() as connection:
        await connection.execute(SQL["begin_forget"], {"user": key})
    async with database.connection() as connection:
        row = await (await connection.execute(SQL["open_receipts"], {"user": key})).fetchone()
        tables = await (await connection.execute(SQL["tables_of_users"])).fetchall()
    if row is None:
        return None
    receipt, _, user, _ = row
    for table, column in tables:
        async with database.transaction() as connection:
            await _clear(connection, receipt, user, table, column)
    async with database.transaction() as connection:
        # The user's row stays, hidden, until the receipt is complete: nobody comes back between.
        await connection.execute(SQL["lock_user"], {"id": user})
        for table, column in [*tables, ("users", "id")]:
            await _clear(connection, receipt, user, table, column)
        return await _prove(connection, receipt, user, key, tables)


async def receipts(database: Database, *, limit: int = 100) -> list[Receipt]:
    """Incomplete ones first, then the newest. `completed_at` of an incomplete one is None."""
    async with (
        database.connection() as connection,
        connection.cursor(row_factory=class_row(Receipt)) as cursor,
    ):
        await cursor.execute(SQL["all_receipts"], {"limit": limit})
        return await cursor.fetchall()


async def _clear(
    connection: Connection, receipt: UUID, user: UUID, table: str, column: str
) -> None:
    """Delete a user's rows of a table and count them on the receipt."""
    await connection.execute(SQL["as_user"], {"id": str(user)})
    cursor = await connection.execute(
        identifier("DELETE FROM {table} WHERE {column} = %(id)s", table=table, column=column),
        {"id": user},
    )
    await connection.execute(
        SQL["add_removed"], {"receipt": receipt, "table": table, "count": cursor.rowcount}
    )


async def _prove(
    connection: Connection, receipt: UUID, user: UUID, key: str, tables: list[Any]
) -> Receipt:
    """Probe every table; only what is empty completes the receipt."""
    found: list[str] = []
    for table, column in [*tables, ("users", "id")]:
        cursor = await connection.execute(
            identifier(
                "SELECT count(*) FROM {table} WHERE {column} = %(id)s", table=table, column=column
            ),
            {"id": user},
        )
        row = await cursor.fetchone()
        found.append(f"{table}={row[0] if row else '?'}")
    cursor = await connection.execute(SQL["find_user"], {"user": key})
    found.append(f"lookup={len(await cursor.fetchall())}")
    if not all(probe.endswith("=0") for probe in found):
        raise BadInput("rows of this user were written meanwhile", hint="Run it again.")
    async with connection.cursor(row_factory=class_row(Receipt)) as done:
        await done.execute(
            SQL["complete_receipt"],
            {"receipt": receipt, "probes": hashlib.sha256("\n".join(found).encode()).hexdigest()},
        )
        complete = await done.fetchone()
    assert complete is not None
    return complete
