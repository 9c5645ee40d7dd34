"""On duty: what waits is worked off as it comes, for as long as the process lives."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from vademecum.errors import VadeError
from vademecum.store import jobs
from vademecum.store.db import Database
from vademecum.store.jobs import OpenJobs
from vademecum.worker import Worker

LOOK_SECONDS = 1.0
"""Between two looks at an empty queue; polled, since a transaction pooler passes no NOTIFY."""

LOST_SECONDS = 10.0
"""Between two looks for jobs whose worker died."""

LONGEST_PAUSE = 30.0

Look = Callable[[], Awaitable[object]]
"""Does what is due, if anything is."""


async def on_duty(*looks: Look, notice: Callable[[str], None]) -> None:
    """Look again and again, each look at its own pace, until cancelled."""
    async with asyncio.TaskGroup() as group:
        for look in looks:
            group.create_task(_repeat(look, notice))


def jobs_due(database: Database, new_worker: Callable[[], Worker]) -> Look:
    """A look at the queue of documents to process."""
    lost_looked_for = -LOST_SECONDS

    async def count() -> OpenJobs:
        async with database.connection() as connection:
            return await jobs.open_jobs(connection)

    async def look() -> None:
        nonlocal lost_looked_for
        # Tried again by `retry`, which also starts an embedded server that is gone.
        left = await database.retry(count, tries=2)
        lost_is_due = left.processing > 0 and time.monotonic() - lost_looked_for > LOST_SECONDS
        if lost_is_due or (left.pending and left.due_in is not None and left.due_in <= 0):
            lost_looked_for = time.monotonic()
            await new_worker().drain(wait=False)

    return look


async def _repeat(look: Look, notice: Callable[[str], None]) -> None:
    """Failures of the database are told once and waited out, ever longer up to LONGEST_PAUSE."""
    pause = LOOK_SECONDS
    while True:
        try:
            await look()
            pause = LOOK_SECONDS
        except VadeError as error:
            if pause == LOOK_SECONDS:
                notice(f"work waits: {error}")
            pause = min(2 * pause, LONGEST_PAUSE)
        await asyncio.sleep(pause)
