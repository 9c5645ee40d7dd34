"""One host at a time, with a pause between, and as long as it asks to be left alone."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from vademecum.cache.address import host_of
from vademecum.errors import HostBusy
from vademecum.store import cache
from vademecum.store.db import Database

PAUSE_SECONDS = 0.5
"""Between two fetches of one host by the queue of one process."""
BUSY_SECONDS = 60.0
"""How long a host that is busy and does not say for how long is left alone."""


class Politeness:
    """Turns are of one process; who asked to be left alone is known to all of a database."""

    def __init__(self, database: Database, pause: float = PAUSE_SECONDS) -> None:
        self._database = database
        self._pause = pause
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._next: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, url: str, *, patient: bool) -> AsyncIterator[None]:
        """Whoever is not `patient` has an agent waiting and asks for one page only: no pause.

        Raises HostBusy while the host has asked to be left alone.
        """
        host = host_of(url)
        if not patient:
            async with self._noting(url, host):
                yield
            return
        async with self._turns[host]:
            await asyncio.sleep(max(0.0, self._next.get(host, 0.0) - time.monotonic()))
            async with self._noting(url, host):
                yield

    @asynccontextmanager
    async def _noting(self, url: str, host: str) -> AsyncIterator[None]:
        async with self._database.connection() as connection:
            left = await cache.busy_seconds(connection, host)
        if left > 0:
            raise HostBusy(url, None, left)
        try:
            yield
        except HostBusy as error:
            await self.leave_alone(
                url, BUSY_SECONDS if error.retry_after is None else error.retry_after
            )
            raise
        finally:
            self._next[host] = time.monotonic() + self._pause

    async def leave_alone(self, url: str, seconds: float) -> None:
        """Ask nothing of a host for so long."""
        async with self._database.connection() as connection:
            await cache.host_busy(connection, host_of(url), seconds)
