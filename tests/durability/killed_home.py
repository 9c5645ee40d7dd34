"""A home with a database server of its own, what is run on it, and how that is killed."""

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo
from whole import broken, everything, open_jobs, rows

from vademecum.store import runs
from vademecum.store.embedded import EmbeddedDatabase

VADE = Path(sys.executable).parent / "vade"
LIMIT = 240.0
"""Seconds after which a command counts as stuck."""


class BrokenError(AssertionError):
    """Something is not as it must be."""


@dataclass(kw_only=True)
class KilledHome:
    """What was done to it is counted, and `look` says whether all is as it must be."""

    home: Path
    chance: random.Random
    embedder: str = "none"
    rounds: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)
    """Rounds in which what was killed was still at work."""

    # --- commands -----------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("VADE_")}
        return clean | {"VADE_HOME": str(self.home), "VADE_EMBEDDER": self.embedder}

    def start(self, *arguments: str, database: str | None = None) -> "subprocess.Popen[str]":
        other = {"VADE_DATABASE_URL": database} if database is not None else {}
        return subprocess.Popen(
            [VADE, *arguments, "--json"],
            env=self.environment | other,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, command: "subprocess.Popen[str]") -> tuple[int, str, str]:
        try:
            out, err = command.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            command.kill()
            out, err = command.communicate()
            raise BrokenError(f"a command was stuck: {command.args}\n{err}") from None
        if "Traceback" in err or "This is a bug" in err:
            raise BrokenError(f"a command broke down: {command.args}\n{err}")
        return command.returncode, out, err

    def stopped_well(self, code: int) -> bool:
        """After SIGTERM; a signal before its handler is there just ends the process."""
        return code in (0, -signal.SIGTERM, 128 + signal.SIGTERM)

    # --- the database's server ----------------------------------------------------------------

    def kill_server(self) -> None:
        """The postmaster, and at random its backends too."""
        pid_file = self.home / "database" / "cluster" / "postmaster.pid"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError, IndexError):
            pid = int(pid_file.read_text().split("\n", 1)[0])
            children = subprocess.run(
                ["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False
            ).stdout.split()
            os.kill(pid, signal.SIGKILL)
            for child in children if self.chance.random() < 0.5 else []:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)

    async def connect(self, name: str = "postgres") -> "AsyncConnection[tuple[object, ...]]":
        return await AsyncConnection.connect(await self.url_of(name), autocommit=True)

    async def url_of(self, database: str) -> str:
        return make_conninfo(await EmbeddedDatabase(self.home).start(), dbname=database)

    async def make_database(self, name: str) -> None:
        async with await self.connect() as connection:
            for statement in ("DROP DATABASE IF EXISTS {}", "CREATE DATABASE {}"):
                await connection.execute(sql.SQL(statement).format(sql.Identifier(name)))

    # --- what is left -------------------------------------------------------------------------

    def look(self) -> None:
        """Raises BrokenError where readers would see anything that is half done."""
        if wrong := asyncio.run(self.broken()):
            raise BrokenError(json.dumps(wrong, indent=1)[:4000])

    async def broken(self) -> dict[str, list[str]]:
        async with await self.connect() as connection:
            cursor = await connection.execute("SELECT to_regclass('document_chunks')")
            if await cursor.fetchone() == (None,):
                return {}  # killed before there were tables
            await runs.end_lost(connection)
            running = await rows(
                connection, "SELECT id::text FROM ingestion_runs WHERE state = 'running'"
            )
            left = {"runs whose process is dead": [run for (run,) in running]} if running else {}
            return await broken(connection) | left

    async def open_jobs(self) -> list[tuple[object, ...]]:
        async with await self.connect() as connection:
            return await open_jobs(connection)

    async def everything(self, database: str) -> tuple[dict[str, str], list[tuple[object, ...]]]:
        async with await self.connect(database) as connection:
            return await everything(connection), await open_jobs(connection)

    def close(self) -> None:
        asyncio.run(EmbeddedDatabase(self.home).stop())
        shutil.rmtree(self.home, ignore_errors=True)


def differences(ours: dict[str, str], fresh: dict[str, str]) -> None:
    """Raises BrokenError where two databases that must be alike are not."""
    different = {key for key in ours.keys() | fresh.keys() if ours.get(key) != fresh.get(key)}
    if different:
        lines = [f"{key}\n  {ours.get(key)}\n  {fresh.get(key)}" for key in sorted(different)]
        raise BrokenError(f"{len(lines)} differences:\n" + "\n".join(lines)[:4000])
