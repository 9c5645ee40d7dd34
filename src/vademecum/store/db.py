"""Connections to PostgreSQL: one pool, opened once, with pgvector's types known."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, TypeVar

import psycopg
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from vademecum.errors import DatabaseRefused, DatabaseTooOld, DatabaseUnavailable
from vademecum.store.migrate import migrate

Connection = AsyncConnection[TupleRow]
Result = TypeVar("Result")

MINIMUM_SERVER = 150000
MINIMUM_PGVECTOR = (0, 8)


def redacted(conninfo: str) -> str:
    """The connection string without its password, for people to read."""
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.Error:
        return "(connection string that cannot be read)"
    parts.pop("password", None)
    parts.pop("sslpassword", None)
    return make_conninfo("", **parts)


class Database:
    """The pool. `async with Database(conninfo) as database:` connects and migrates."""

    def __init__(
        self,
        conninfo: str,
        *,
        size: int = 6,
        revive: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`revive` starts a server that is ours to start, when it is gone."""
        self._revive = revive
        self.migrated: list[str] = []
        try:
            parts = conninfo_to_dict(conninfo)
        except psycopg.Error as error:
            raise DatabaseUnavailable(
                f"the connection string cannot be read: {type(error).__name__}",
                hint="It looks like postgresql://user:password@host/database.",
            ) from None
        self.conninfo = make_conninfo(
            conninfo, **({} if "connect_timeout" in parts else {"connect_timeout": 15})
        )
        pooled = "-pooler" in str(parts.get("host", ""))
        self._pool = AsyncConnectionPool[Connection](
            self.conninfo,
            min_size=1,
            max_size=size,
            open=False,
            timeout=30,
            configure=_configure,
            # A pooler in transaction mode may not keep prepared statements between transactions.
            kwargs={"application_name": "vademecum", "autocommit": True}
            | ({"prepare_threshold": None} if pooled else {}),
        )

    @property
    def shown(self) -> str:
        """The connection string without its password."""
        return redacted(self.conninfo)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect, and bring the schema up to date.

        Raises DatabaseUnavailable or DatabaseTooOld.
        """
        self.migrated = await self.retry(self._migrate, tries=6 if self._revive else 1)
        await self._pool.open()

    async def _migrate(self) -> list[str]:
        try:
            # A fresh cluster has no vector type yet, so the first connection is a plain one.
            async with await AsyncConnection.connect(self.conninfo, autocommit=True) as connection:
                await _check_server(connection)
                return await migrate(connection)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(
                f"cannot connect to {self.shown}: {_first_line(error)}"
            ) from None
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseUnavailable(
                f"{self.shown}: {_first_line(error)}",
                hint="The user must be allowed to create tables and the extension `vector`.",
            ) from None

    async def close(self) -> None:
        await self._pool.close()

    async def about(self) -> dict[str, str]:
        """Versions of the server and of pgvector, and the size of the database."""
        async with self.connection() as connection:
            cursor = await connection.execute(
                "SELECT current_setting('server_version'), extversion,"
                " pg_size_pretty(pg_database_size(current_database()))"
                " FROM pg_extension WHERE extname = 'vector'"
            )
            row = await cursor.fetchone()
        return dict(zip(("postgresql", "pgvector", "size"), row or (), strict=False))

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection in autocommit; raises DatabaseUnavailable when none can be had."""
        try:
            async with self._pool.connection() as connection:
                _heed_cancellation()
                yield connection
        except PoolTimeout:
            raise DatabaseUnavailable(f"no connection to {self.shown} within 30 s") from None
        except _NOT_OURS as error:
            kind = DatabaseUnavailable if _may_pass(error) else DatabaseRefused
            raise kind(f"{self.shown}: {_first_line(error)}") from error

    async def retry(self, operation: Callable[[], Awaitable[Result]], *, tries: int = 6) -> Result:
        """Do something that is safe to do again, through a restart of the server."""
        for attempt in range(tries - 1):
            try:
                return await operation()
            except DatabaseTooOld:
                raise
            except DatabaseUnavailable:
                await asyncio.sleep(0.1 * 2**attempt)
                if self._revive is not None:
                    await self._revive()
                await self._pool.check()
        return await operation()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside one transaction: all of it is stored, or nothing."""
        async with self.connection() as connection, connection.transaction():
            yield connection


def _heed_cancellation() -> None:
    """Before Python 3.12 `asyncio.wait_for`, with which the pool waits, may lose a cancellation."""
    task = asyncio.current_task()
    if sys.version_info < (3, 12) and task is not None and task.cancelling():
        raise asyncio.CancelledError


_NOT_OURS = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.DataError,
    psycopg.IntegrityError,
)
"""What the server, the data or another writer may cause; anything else is a mistake of ours."""


async def _configure(connection: Connection) -> None:
    await register_vector_async(connection)


async def _check_server(connection: Connection) -> None:
    if connection.info.server_version < MINIMUM_SERVER:
        raise DatabaseTooOld(f"the server is PostgreSQL {connection.info.server_version // 10000}")
    row = await (
        await connection.execute(
            "SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
            " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'))"
        )
    ).fetchone()
    version = row[0] if row else None
    if version is None:
        raise DatabaseTooOld("the server has no pgvector extension")
    if tuple(int(part) for part in version.split(".")[:2]) < MINIMUM_PGVECTOR:
        raise DatabaseTooOld(
            f"the server has pgvector {version}", hint="Run `ALTER EXTENSION vector UPDATE`."
        )


def _may_pass(error: psycopg.Error) -> bool:
    """Whether the same may well work later: a lost connection, a restart, a deadlock, or another
    writer who at that moment deleted what ours refers to, or made the same."""
    state = error.sqlstate
    return state is None or state.startswith(("08", "40", "57P", "533", "23503", "23505"))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__


def identifier(template: str, **names: str) -> sql.Composed:
    """A query with identifiers put in, quoted."""
    return sql.SQL(template).format(**{key: sql.Identifier(name) for key, name in names.items()})
