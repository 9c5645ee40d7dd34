"""`vade memory forget` killed at random moments: run again, it completes, and nothing is left."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from conftest import Vade
from vademecum.app import App
from vademecum.settings import Settings

USER = "alice.n@forces.example"
TABLES = ("memory", "memory_passages", "memory_versions", "interactions", "users")
KILLS = 4
PASSAGES = 3
"""Sentences: one for each wish, since every version has another."""


async def remember(settings: Settings) -> None:
    async with App.open(settings) as app:
        for number in range(3):
            await app.memory.update(
                USER, message=f"I prefer {number * 'very '}short answers.", exchange=str(number)
            )
        assert await app.memory.search(USER, "answers")


async def test_a_killed_forget_is_completed_by_the_next(
    settings: Settings, vade: Vade, database_url: str
) -> None:
    seed = int(os.environ.get("KILL_SEED") or int.from_bytes(os.urandom(3)))
    print(f"KILL_SEED={seed}")
    chance, command = random.Random(seed), Path(sys.executable).parent / "vade"
    environment = dict(os.environ, VADE_HOME=str(settings.home), VADE_DATABASE_URL=database_url)
    await remember(settings)
    with psycopg.connect(database_url, autocommit=True) as connection:
        # Slow deletes, so that kills fall between the steps, too.
        connection.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(0.3); RETURN OLD; END $$"
        )
        for table in TABLES:
            connection.execute(
                f"CREATE TRIGGER slow BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION slow()"
            )
        for _ in range(KILLS):
            process = subprocess.Popen(
                [command, "memory", "forget", "--user", USER, "--yes"], env=environment
            )
            # From the first sign of work on, or at once where all was done before it.
            while process.poll() is None and not begun(connection):
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 1.2))
            process.send_signal(signal.SIGKILL)
            process.wait()
            if begun(connection):
                assert "short" not in vade("memory", "show", "--user", USER).stdout

        done = vade("memory", "forget", "--user", USER, "--yes")
        assert done.returncode == 0, done.stderr
        for table in TABLES:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    (receipt,) = json.loads(vade("memory", "receipts", "--json").stdout)
    assert receipt["completed_at"]
    assert receipt["probe_hash"]
    assert receipt["removed"] == {
        "users": 1,
        "memory": 1,
        "memory_passages": PASSAGES,
        "memory_versions": 3,
        "interactions": 3,
    }


def begun(connection: "psycopg.Connection[tuple[object, ...]]") -> bool:
    return connection.execute("SELECT FROM forget_receipts").fetchone() is not None
