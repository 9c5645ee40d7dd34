import asyncio
import random
from contextlib import suppress

import pytest

from vademecum.errors import DatabaseRefused, DatabaseUnavailable
from vademecum.store.db import Database


async def test_no_cancellation_is_lost_while_waiting_for_a_connection(database_url: str) -> None:
    async with Database(database_url, size=2) as database:

        async def take_connections() -> None:
            while True:
                async with database.connection():
                    pass
                await asyncio.sleep(0)

        for _ in range(200):
            tasks = [asyncio.create_task(take_connections()) for _ in range(6)]
            await asyncio.sleep(random.random() * 0.003)
            for task in tasks:
                task.cancel()
            _, going_on = await asyncio.wait(tasks, timeout=5)
            assert not going_on


async def test_a_lost_cancellation_is_made_good(database: Database) -> None:
    async def deaf() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        async with database.connection():
            pytest.fail("it went on")

    task = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SELECT pg_terminate_backend(pg_backend_pid())", DatabaseUnavailable),
        ("SELECT 1 / 0", DatabaseRefused),
        ("INSERT INTO schema_migrations VALUES (1, 'again')", DatabaseUnavailable),
        ("INSERT INTO schema_migrations VALUES (9999, NULL)", DatabaseRefused),
    ],
)
async def test_what_may_pass_is_told_from_what_is_refused(
    database: Database, statement: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as raised:
        async with database.connection() as connection:
            await connection.execute(statement)  # type: ignore[arg-type]
    assert type(raised.value) is kind


async def test_an_operation_is_tried_again_after_its_connection_was_lost(
    database: Database,
) -> None:
    tries = 0

    async def operation() -> int:
        nonlocal tries
        tries += 1
        async with database.connection() as connection:
            if tries < 3:
                await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            return tries

    assert await database.retry(operation) == 3


async def test_an_operation_that_is_refused_is_not_tried_again(database: Database) -> None:
    tries = 0

    async def operation() -> None:
        nonlocal tries
        tries += 1
        async with database.connection() as connection:
            await connection.execute("SELECT 1 / 0")

    with pytest.raises(DatabaseRefused, match="division by zero"):
        await database.retry(operation)
    assert tries == 1
