"""Where searches read: a replica that keeps up, else the database that is written to.

A replica follows its primary on its own time, by streaming replication. A search may read from it
as long as it has, at each look, all that the look before saw written; so it is at most two looks
behind. One that is not there or too far behind costs no search anything but its help.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from vademecum.errors import DatabaseUnavailable, UnknownCollection, VadeError
from vademecum.store.db import Database, redacted

LOOK_SECONDS = 5.0
"""Between two looks at how far the replica is."""
PATIENCE_SECONDS = 3.0
"""What a replica may take to answer: one whose machine has gone says nothing at all."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """What the last look found; the connection string without its password."""

    replica: str
    reading: bool
    """Whether searches read from it."""
    reason: str
    """Why they do, or do not."""


class _PrimaryAway(Exception):
    """There is nothing to compare with."""


class Reads:
    """Reads from the replica that keeps up, or from the primary."""

    def __init__(
        self,
        primary: Database,
        replica_url: str | None,
        *,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`notice` is told when searches cannot read from the replica, and when they can again."""
        self.primary = primary
        self._replica_url = replica_url
        self._notice = notice
        self._replica: Database | None = None
        self._reading: bool | None = None
        """None before the first look, and where the last one was long ago."""
        self.alone = False
        """Whether the primary did not answer at the last look: how old the replica's state is
        cannot be told then."""
        self._seen = ("", -math.inf)
        """What was written at the last look, as a place in the log, and when that was."""
        self._looked = -math.inf
        self._looking: asyncio.Task[ReplicaState] | None = None

    async def read(self, operation: Callable[[Database], Awaitable[Result]]) -> Result:
        """What the operation finds; one that fails in the replica is done in the primary."""
        if (replica := self._keeping_up()) is not None:
            try:
                return await _within(PATIENCE_SECONDS, operation(replica))
            except UnknownCollection:  # it may be too new for the replica
                pass
            except TimeoutError:
                self._settle(reading=False, reason=f"no answer within {PATIENCE_SECONDS:.0f} s")
            except DatabaseUnavailable as error:
                self._settle(reading=False, reason=str(error))
        return await operation(self.primary)

    def _keeping_up(self) -> Database | None:
        """Looks at the replica go on beside, so that nobody waits for one that is away."""
        if self._replica_url is None:
            return None
        age = time.monotonic() - self._looked
        if age > LOOK_SECONDS and (self._looking is None or self._looking.done()):
            if self._reading and age > 2 * LOOK_SECONDS:
                self._reading = None  # that was long ago: it may have fallen behind since
            self._looking = asyncio.create_task(self.look())
        return self._replica if self._reading else None

    async def look(self) -> ReplicaState:
        """How far the replica is, from now on. Raises DatabaseUnavailable where none is set."""
        if self._replica_url is None:
            raise DatabaseUnavailable("no replica is set", hint="VADE_REPLICA_URL names one.")
        self._looked = time.monotonic()
        try:
            behind = await self._behind()
        except _PrimaryAway:  # what the replica has is all that can be had
            reading, reason = self._replica is not None, "the primary does not answer"
            return self._settle(reading=reading, reason=reason, alone=True)
        except (VadeError, psycopg.Error) as error:
            return self._settle(reading=False, reason=str(error))
        reason = f"{behind} bytes behind what is to be there" if behind else "it keeps up"
        return self._settle(reading=not behind, reason=reason)

    async def _behind(self) -> int:
        """How much of the log the replica lacks of what it is to have by now, in bytes."""
        try:
            written = await _scalar(self.primary, "SELECT pg_current_wal_lsn()::text")
        except DatabaseUnavailable:
            raise _PrimaryAway from None
        before, at = self._seen
        self._seen = (written, time.monotonic())
        # With nobody searching, looks lie far apart: what the last one saw says nothing then.
        wanted = before if self._seen[1] - at < 2 * LOOK_SECONDS else written
        behind = await _scalar(
            await self._opened(),
            "SELECT greatest(pg_wal_lsn_diff(%s, pg_last_wal_replay_lsn()), 0)::bigint",
            wanted,
        )
        return int(behind)

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._looking
        if self._replica is not None:
            await self._replica.close()

    def _settle(self, *, reading: bool, reason: str, alone: bool = False) -> ReplicaState:
        self.alone = alone
        state = ReplicaState(
            replica=redacted(self._replica_url or ""), reading=reading, reason=reason
        )
        before, self._reading = self._reading, reading
        if not reading and before is not False:
            self._notice(f"searches read from the primary: replica {state.replica}: {reason}")
        elif reading and before is False:
            self._notice(f"searches read from the replica {state.replica} again")
        return state

    async def _opened(self) -> Database:
        if self._replica is None:
            replica = Database(self._replica_url or "", prepare=check_replica)
            await replica.open(tries=1)
            self._replica = replica
        return self._replica


async def _within(seconds: float, awaitable: Awaitable[Result]) -> Result:
    """Raises TimeoutError. What is given up is not waited for: to cancel it, too, takes an answer
    of the server."""
    task = asyncio.ensure_future(awaitable)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result()
    task.cancel()
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    raise TimeoutError


async def check_replica(connection: AsyncConnection[TupleRow]) -> list[str]:
    """Nothing is migrated there. Raises DatabaseUnavailable for a server that follows no other."""
    row = await (await connection.execute("SELECT pg_is_in_recovery()")).fetchone()
    if row is None or not row[0]:
        raise DatabaseUnavailable(
            "the server of VADE_REPLICA_URL is no replica: it follows no other server",
            hint="Make one with pg_basebackup --write-recovery-conf, or leave the setting out.",
        )
    return []


async def _scalar(database: Database, statement: str, *values: str) -> str:
    async with database.connection() as connection:
        row = await (await connection.execute(statement, values)).fetchone()
    assert row is not None
    return str(row[0])
