"""Ingestion runs: begun, held while they are worked on, followed, cancelled, resumed.

    queued --take--> running --end--> completed | failed | cancelled
       ^                                             |
       └------------------ resume -------------------┘

A run is a row that its process keeps alive; see `store.runs`. Cancelled, its process stops at the
next beat and what it had queued is held; resumed, it goes on from what is stored.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from vademecum.access import require
from vademecum.errors import DatabaseUnavailable, RunCancelled, VadeError
from vademecum.store import collections, runs
from vademecum.store.db import Connection, Database
from vademecum.store.runs import Run, RunFailure, RunMode, RunState
from vademecum.types import CollectionId

Result = TypeVar("Result")
Taken = TypeVar("Taken", int, int | None)

BEAT_SECONDS = 1.0
"""Between two signs of life, which is also how soon a cancelled run stops."""

LOOK_SECONDS = 0.5
"""Between two looks of who follows; polled, since a transaction pooler passes no NOTIFY."""


class Held(NamedTuple):
    """A run that this process works on."""

    run: int
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    run: Run
    failures: list[RunFailure]
    """The first 1000 sources that it could not take, by name."""


class Runs:
    """The runs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.holding = 0
        """Runs that this process works on."""

    # --- looking ----------------------------------------------------------------------------

    async def listed(self, collection: str | None = None, *, limit: int = 50) -> list[Run]:
        """The newest first, of one collection or of all. Raises BadInput, UnknownCollection."""
        require("read", collection)

        async def look() -> list[Run]:
            async with self._database.connection() as connection:
                found = await collections.find(connection, collection) if collection else None
                await runs.end_lost(connection)
                return await runs.listed(connection, found.id if found else None, limit=limit)

        return await self._database.retry(look, tries=2)

    async def one(self, run: int) -> Run:
        """Raises UnknownRun."""
        require("read")

        async def look() -> Run:
            async with self._database.connection() as connection:
                await runs.end_lost(connection)
                return await runs.one(connection, run)

        return await self._database.retry(look, tries=2)

    async def details(self, run: int) -> RunDetails:
        """A run, and what it could not take. Raises UnknownRun."""
        found = await self.one(run)
        async with self._database.connection() as connection:
            return RunDetails(run=found, failures=await runs.failures(connection, run))

    async def follow(self, run: int) -> AsyncIterator[Run]:
        """The run whenever it has changed, until it has ended. Raises UnknownRun."""
        seen = None
        while True:
            found = await self.one(run)
            if _without_time(found) != seen:
                seen = _without_time(found)
                yield found
            if found.ended:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def follow_all(self, collection: str | None = None) -> AsyncIterator[Run]:
        """Every run, of one collection or of all, whenever it has changed; without an end."""
        known = {run.id: _without_time(run) for run in await self.listed(collection)}
        for run in [run for run in known.values() if not run.ended]:
            yield run
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for run in reversed(await self.listed(collection)):
                if known.get(run.id) != _without_time(run):
                    known[run.id] = _without_time(run)
                    yield run

    # --- asking -----------------------------------------------------------------------------

    async def queue(self, collection: CollectionId, folder: str | None, mode: RunMode) -> Run:
        """A run for whoever works off the queue."""
        async with self._database.connection() as connection:
            return await runs.one(
                connection, await runs.queue(connection, collection, folder=folder, mode=mode)
            )

    async def cancel(self, run: int) -> Run:
        """Stop a run; one that is worked on stops within seconds. Raises UnknownRun, RunNotOpen."""
        await self._may_change(run)
        async with self._database.connection() as connection:
            await runs.cancel(connection, run)
            return await runs.one(connection, run)

    async def requeue(self, run: int) -> Run:
        """Let whoever works off the queue go on with a failed or cancelled run.

        Raises UnknownRun, RunNotOpen.
        """
        await self._may_change(run)
        async with self._database.connection() as connection:
            async with connection.transaction():
                await runs.requeue(connection, run)
            return await runs.one(connection, run)

    async def _may_change(self, run: int) -> None:
        require("write", (await self.one(run)).collection)

    # --- doing ------------------------------------------------------------------------------

    async def begin(self, collection: CollectionId, folder: str | None, mode: RunMode) -> Held:
        """A run that is worked on from now; `hold` must follow at once."""

        async def make(connection: Connection, holder: str) -> int:
            return await runs.begin(connection, collection, folder=folder, mode=mode, holder=holder)

        return Held(*await self._taken(make, tries=6))

    async def take(self, run: int) -> Held:
        """Go on with a failed, cancelled or waiting run; `hold` must follow at once.

        Raises UnknownRun, RunNotOpen.
        """

        async def again(connection: Connection, holder: str) -> int:
            await runs.end_lost(connection)
            await runs.take_again(connection, run, holder)
            return run

        return Held(*await self._taken(again))

    async def take_next(self) -> Held | None:
        """The run that waits longest, where one does; `hold` must follow at once."""

        async def following(connection: Connection, holder: str) -> int | None:
            await runs.end_lost(connection)
            return await runs.take_next(connection, holder)

        run, holder = await self._taken(following, put_back=True)
        return None if run is None else Held(run, holder)

    async def _taken(
        self,
        take: Callable[[Connection, str], Awaitable[Taken]],
        *,
        tries: int = 1,
        put_back: bool = False,
    ) -> tuple[Taken, str]:
        """What was taken, and by whom; whoever is stopped meanwhile leaves nothing taken."""
        holder = runs.new_holder()

        async def within() -> Taken:
            async with self._database.transaction() as connection:
                return await take(connection, holder)

        taking = asyncio.ensure_future(self._database.retry(within, tries=tries))
        try:
            return await asyncio.shield(taking), holder
        except asyncio.CancelledError:
            with contextlib.suppress(VadeError):
                if (run := await taking) is not None:
                    held = Held(run, holder)
                    await self._end(held, None if put_back else "cancelled", "interrupted")
            raise

    async def hold(
        self,
        held: Held,
        work: Callable[[], Awaitable[Result]],
        *,
        hand_over: bool = False,
        put_back: bool = False,
    ) -> Result:
        """Do the work of a run, keep it alive meanwhile, and say in its row how it ended.

        With `hand_over` its jobs are left to others in the end; with `put_back` it waits in the
        queue again where this process is stopped. Raises RunCancelled, and what the work raises.
        """
        self.holding += 1
        try:
            return await self._held(held, work, hand_over=hand_over, put_back=put_back)
        finally:
            self.holding -= 1

    async def _held(
        self,
        held: Held,
        work: Callable[[], Awaitable[Result]],
        *,
        hand_over: bool,
        put_back: bool,
    ) -> Result:
        working = asyncio.ensure_future(work())
        beating = asyncio.create_task(self._beat(held))
        try:
            await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
            if stop := not working.done():
                await _stopped(working)
        except asyncio.CancelledError:
            await _stopped(working, beating)
            await self._end(held, None if put_back else "cancelled", "interrupted")
            raise
        # From here on the end is what is waited for first: who is stopped meanwhile has noted it.
        if stop:
            if beating.exception() is not None or not beating.result():
                raise RunCancelled(held.run, "given up: it gave no sign of life for too long")
            await self._end(held, "cancelled")
            raise RunCancelled(held.run)
        beating.cancel()
        if (error := working.exception()) is not None:
            await self._end(held, "failed", _told(error))
        elif hand_over:
            await self._shielded(held, runs.hand_over)
        else:
            await self._end(held, "completed")
        return working.result()

    async def _beat(self, held: Held) -> bool:
        """Returns True once the run is to be cancelled, False once it is not ours any more."""
        while True:
            with contextlib.suppress(DatabaseUnavailable):  # the next beat comes in time
                async with self._database.connection() as connection:
                    asked = await runs.beat(connection, held.run, held.holder)
                if asked is None or asked:
                    return asked is True
            await asyncio.sleep(BEAT_SECONDS)

    async def _end(self, held: Held, state: RunState | None, error: str | None = None) -> None:
        if state is None:
            await self._shielded(held, runs.put_back)
        else:
            await self._shielded(
                held,
                lambda connection, run, holder: runs.end(connection, run, holder, state, error),
            )

    async def _shielded(
        self, held: Held, note: Callable[[Connection, int, str], Awaitable[None]]
    ) -> None:
        """What a run ended with is written also by who is cancelled; where the database is gone,
        the lease runs out."""

        async def write() -> None:
            async with self._database.connection() as connection:
                await note(connection, held.run, held.holder)

        writing = asyncio.ensure_future(self._database.retry(write, tries=3))
        try:
            with contextlib.suppress(VadeError):
                await asyncio.shield(writing)
        except asyncio.CancelledError:
            with contextlib.suppress(VadeError):
                await writing
            raise


async def _stopped(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _without_time(run: Run) -> Run:
    """The run as far as it tells something new: time passes anyway."""
    return run if run.ended else replace(run, duration_seconds=None)


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, VadeError) else f"{type(error).__name__}: {error}"
