"""Connections to PostgreSQL: one pool, opened once, with pgvector's types known."""

import asyncio
import json
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
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from vademecum.errors import (
    DatabaseLoginFailed,
    DatabaseRefused,
    DatabaseTooOld,
    DatabaseUnavailable,
)
from vademecum.store.migrate import migrate

Connection = AsyncConnection[TupleRow]
Result = TypeVar("Result")

CONNECT_TRIES = 7
"""Between them 6.3 s: a server restarts, or one scaled to zero wakes up, in less."""

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
        notice: Callable[[str], None] = lambda text: None,
        prepare: Callable[[Connection], Awaitable[list[str]]] = migrate,
    ) -> None:
        """`revive` starts a server that is ours to start, when it is gone; `notice` is told when
        a server is waited for; `prepare` is what is done at first, and answers what it changed."""
        self._revive = revive
        self._prepare = prepare
        self._notice = notice
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
        host = str(parts.get("host", ""))
        self.backend = "neon" if host.endswith((".neon.tech", ".neon.build")) else "postgresql"
        """What the spans of its work are named after."""
        self.pooled = False
        """Whether a pooler stands between; known once it is open."""
        self._pool = AsyncConnectionPool[Connection](
            self._reachable,
            min_size=1,
            max_size=size,
            open=False,
            timeout=30,
            configure=self._configure,
            kwargs={"application_name": "vademecum", "autocommit": True},
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

    async def open(self, *, tries: int = CONNECT_TRIES) -> None:
        """Connect, and bring the schema up to date; a server that is away is waited for, 6 s.

        Raises DatabaseUnavailable, DatabaseLoginFailed or DatabaseTooOld.
        """
        self.migrated = await self.retry(self._first, tries=tries)
        await self._pool.open()
        _heed_cancellation()

    async def _reachable(self) -> str:
        """How the pool connects: a server that is ours to start is started where it is gone, so
        that nobody waits for a connection that cannot come."""
        if self._revive is not None:
            await self._revive()
        return self.conninfo

    async def _configure(self, connection: Connection) -> None:
        if self.pooled:
            # In transaction mode the next transaction may be on a server connection that has not
            # got our prepared statements, or has another client's of the same name.
            connection.prepare_threshold = None
        await register_vector_async(connection)
        set_json_loads(_read_json, connection)

    async def _first(self) -> list[str]:
        try:
            # A fresh cluster has no vector type yet, so the first connection is a plain one.
            async with await AsyncConnection.connect(
                self.conninfo, autocommit=True, prepare_threshold=None
            ) as connection:
                self.pooled = await _check_server(connection)
                return await self._prepare(connection)
        except psycopg.OperationalError as error:
            message = f"cannot connect to {self.shown}: {_first_line(error)}"
            if isinstance(error, psycopg.errors.ConnectionTimeout) or any(
                words in str(error) for words in _IN_VAIN
            ):
                raise DatabaseLoginFailed(message) from None
            self._notice(f"{self.shown} does not answer; trying again for some seconds")
            self._notice = lambda text: None
            raise DatabaseUnavailable(message) from None
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
            except (DatabaseTooOld, DatabaseLoginFailed):
                raise
            except DatabaseUnavailable:
                await asyncio.sleep(0.1 * 2**attempt)
                if self._revive is not None:
                    await self._revive()
                if not self._pool.closed:
                    await self._pool.check()
        return await operation()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside one transaction: all of it is stored, or nothing."""
        async with self.connection() as connection, connection.transaction():
            yield connection


def _read_json(text: str | bytes) -> object:
    """Most of what is stored as JSON are facets, of which most documents have none."""
    return {} if text == b"{}" else json.loads(text)


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


_IN_VAIN = (
    "authentication failed",
    "no password supplied",
    "pg_hba.conf",
    "does not exist",
    "no such",
    "not permitted to log in",
    "Name or service not known",
    "does not support SSL",
    "certificate",
)
"""Why another try to connect will end as this one did; libpq has no code for it."""


async def _check_server(connection: Connection) -> bool:
    """Whether a pooler stands between. Raises DatabaseTooOld."""
    if connection.info.server_version < MINIMUM_SERVER:
        raise DatabaseTooOld(f"the server is PostgreSQL {connection.info.server_version // 10000}")
    row = await (
        await connection.execute(
            "SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
            " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')),"
            " pg_backend_pid()"
        )
    ).fetchone()
    version, backend = row or (None, None)
    if version is None:
        raise DatabaseTooOld("the server has no pgvector extension")
    if tuple(int(part) for part in version.split(".")[:2]) < MINIMUM_PGVECTOR:
        raise DatabaseTooOld(
            f"the server has pgvector {version}", hint="Run `ALTER EXTENSION vector UPDATE`."
        )
    # A pooler greets its clients itself, with a number of its own for the backend.
    return bool(backend != connection.info.backend_pid)


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
