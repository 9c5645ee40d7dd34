"""Kills the command, the worker and the server at random moments, and looks at what is left.

A round: the folder is edited, a command is started on it and something is killed while it runs.
What readers then see must be whole. At the end one undisturbed run must leave the same as
indexing the folder for the first time.
"""

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from whole import broken, everything, open_jobs, rows

from vademecum.store import runs
from vademecum.store.embedded import EmbeddedDatabase
from vademecum.surfaces.http.instance import find, is_served

VADE = Path(sys.executable).parent / "vade"
WORDS = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8").split()
ON_DUTY = ("vade worker", "vade serve")
"""Commands that work until they are stopped."""
KINDS = ("command", "terminate", "server", "both", "worker", "worker and server", *ON_DUTY)
LIMIT = 120.0
"""Seconds after which a command counts as stuck."""


class BrokenError(AssertionError):
    """Something is not as it must be."""


@dataclass
class Arena:
    """One home with its own server, one folder, and what was done to them so far."""

    home: Path
    folder: Path
    chance: random.Random
    embedder: str = "none"
    files: int = 80
    profile: str | None = None
    kinds: tuple[str, ...] = KINDS
    rounds: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)
    """Rounds in which what was killed was still at work."""
    survived: int = 0
    """Commands that reported success although the server was killed under them."""
    duration: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: 2.0))
    """About how long each command takes, so that kills fall into all of it."""

    # --- the folder ---------------------------------------------------------------------------

    def make_files(self) -> None:
        for number in range(self.files):
            self.write(f"part{number % 5}/page{number}.md")

    def write(self, name: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        sections = self.chance.randint(1, 6)
        path.write_text("".join(self.section(number) for number in range(sections)))

    def section(self, number: int) -> str:
        words = " ".join(self.chance.choices(WORDS, k=self.chance.randint(20, 150)))
        return f"## Section {number}\n\n{words}\n\n"

    def edit(self) -> None:
        """Change, add, remove and rename a few files."""
        for path in self.chance.sample(self.pages(), 8):
            path.write_text(path.read_text() + self.section(self.chance.randint(10, 99)))
        for path in self.chance.sample(self.pages(), 2):
            path.unlink()
        for path in self.chance.sample(self.pages(), 2):
            path.rename(path.with_name(f"renamed{self.chance.randint(0, 10**9)}.md"))
        while len(self.pages()) < self.files:
            self.write(f"new/page{self.chance.randint(0, 10**9)}.md")

    def pages(self) -> list[Path]:
        """Without what is written beside them."""
        return sorted(
            path
            for path in self.folder.rglob("*.md")
            if path.name != "TASKS.md" and ".kb" not in path.parts
        )

    # --- commands -----------------------------------------------------------------------------

    def start(self, *arguments: str, database: str | None = None) -> "subprocess.Popen[str]":
        environment = {k: v for k, v in os.environ.items() if not k.startswith("VADE_")}
        environment |= {"VADE_HOME": str(self.home), "VADE_EMBEDDER": self.embedder}
        if database is not None:
            environment["VADE_DATABASE_URL"] = database
        return subprocess.Popen(
            [VADE, *arguments, "--json"],
            env=environment,
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

    def index(self, *, database: str | None = None) -> dict[str, object]:
        """An undisturbed run."""
        code, out, err = self.finish(self.start("bulk-index", *self.target, database=database))
        if code != 0:
            raise BrokenError(f"an undisturbed run failed: {err}")
        report: dict[str, object] = json.loads(out)
        if report["failed"] or report["pending"]:
            raise BrokenError(f"an undisturbed run left something out: {out}")
        return report

    @property
    def target(self) -> tuple[str, ...]:
        profile = ("--profile", self.profile) if self.profile else ()
        return str(self.folder), "-c", "docs", *profile

    # --- a round ------------------------------------------------------------------------------

    def round(self) -> None:
        kind = self.chance.choice(self.kinds)
        self.rounds[kind] += 1
        self.edit()
        if kind in ON_DUTY:
            self.round_on_duty(kind)
            return
        if kind.startswith("worker"):
            self.finish(self.start("bulk-index", *self.target, "--no-wait"))
            name, command = "process-queue", self.start("process-queue")
        else:
            name, command = "bulk-index", self.start("bulk-index", *self.target)
        time.sleep(self.chance.uniform(0.1, 1) * self.duration[name])
        at_work = command.poll() is None
        self.duration[name] *= 1.05 if at_work else 0.85
        self.hit[kind] += at_work
        if kind == "terminate":
            command.terminate()
        if kind in ("server", "both", "worker and server"):
            self.kill_server()
        if kind in ("command", "both", "worker", "worker and server"):
            command.kill()
        code, _, _ = self.finish(command)
        self.survived += kind == "server" and at_work and code == 0
        self.look()

    def round_on_duty(self, kind: str) -> None:
        """Kill it, or stop it in good order, which also returns the jobs that it has in hand."""
        self.finish(self.start("bulk-index", *self.target, "--no-wait"))
        is_server = kind == "vade serve"
        command = self.start(*(("serve", "--port", "0") if is_server else ("worker",)))
        time.sleep(self.chance.uniform(0.1, 1) * self.duration[kind])
        if command.poll() is not None:
            raise BrokenError(f"{kind} ended by itself: {self.finish(command)}")
        stopped = self.chance.random() < 0.3
        command.send_signal(signal.SIGTERM if stopped else signal.SIGKILL)
        code, _, err = self.finish(command)
        if is_server and (is_served(self.home) or find(self.home)):
            raise BrokenError("a server that is gone holds its lock")
        left = asyncio.run(self._open_jobs())
        # A signal before its handler is there just ends the process.
        if stopped and code not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            raise BrokenError(f"{kind} did not stop in good order: {code}\n{err}")
        # Those of a worker killed in an earlier round may be in hand still: others look for them.
        if stopped and (kept := asyncio.run(self._in_hand(command.pid))):
            raise BrokenError(f"{kind} was stopped and kept {kept} of {len(left)} jobs in hand")
        self.duration[kind] *= 1.05 if left else 0.85
        self.hit[kind] += bool(left)
        self.look()

    async def _open_jobs(self) -> list[tuple[object, ...]]:
        async with await self._connect() as connection:
            return await open_jobs(connection)

    async def _in_hand(self, pid: int) -> int:
        async with await self._connect() as connection:
            held = await rows(
                connection, "SELECT worker FROM processing_queue WHERE status = 'processing'"
            )
        return sum(worker.rsplit("/", 3)[1] == str(pid) for (worker,) in held)

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

    def look(self) -> None:
        """Raises BrokenError where readers would see anything that is half done."""
        if wrong := asyncio.run(self._broken()):
            raise BrokenError(json.dumps(wrong, indent=1)[:4000])

    async def _broken(self) -> dict[str, list[str]]:
        async with await self._connect() as connection:
            cursor = await connection.execute("SELECT to_regclass('document_chunks')")
            if await cursor.fetchone() == (None,):
                return {}  # killed before there were tables
            await runs.end_lost(connection)
            running = await rows(
                connection, "SELECT id::text FROM ingestion_runs WHERE state = 'running'"
            )
            left = {"runs whose process is dead": [run for (run,) in running]} if running else {}
            return await broken(connection) | left

    async def _connect(self, name: str = "postgres") -> "AsyncConnection[tuple[object, ...]]":
        url = await EmbeddedDatabase(self.home).start()
        return await AsyncConnection.connect(make_conninfo(url, dbname=name), autocommit=True)

    # --- the end ------------------------------------------------------------------------------

    def compare(self) -> None:
        """One undisturbed run, and all is as if the folder had been indexed for the first time."""
        self.index()
        self.look()
        ours, jobs = asyncio.run(self._everything("postgres"))
        if jobs:
            raise BrokenError(f"jobs are left: {jobs}")
        again = self.index()
        if again["unchanged"] != len(self.pages()) or again["chunks"]:
            raise BrokenError(f"a second run found something to do: {again}")
        asyncio.run(self._make_database("fresh"))
        self.index(database=asyncio.run(self._url("fresh")))
        fresh, _ = asyncio.run(self._everything("fresh"))
        different = {key for key in ours.keys() | fresh.keys() if ours.get(key) != fresh.get(key)}
        if different:
            lines = [f"{key}\n  {ours.get(key)}\n  {fresh.get(key)}" for key in sorted(different)]
            raise BrokenError(f"{len(lines)} differences:\n" + "\n".join(lines)[:4000])

    async def _everything(self, database: str) -> tuple[dict[str, str], list[tuple[object, ...]]]:
        async with await self._connect(database) as connection:
            return await everything(connection), await open_jobs(connection)

    async def _url(self, database: str) -> str:
        return make_conninfo(await EmbeddedDatabase(self.home).start(), dbname=database)

    async def _make_database(self, name: str) -> None:
        async with await self._connect() as connection:
            await connection.execute(
                psycopg.sql.SQL("DROP DATABASE IF EXISTS {}").format(psycopg.sql.Identifier(name))
            )
            await connection.execute(
                psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name))
            )

    def close(self) -> None:
        asyncio.run(EmbeddedDatabase(self.home).stop())
        shutil.rmtree(self.home, ignore_errors=True)


def arena(root: Path, *, seed: int, embedder: str, models: Path | None) -> Arena:
    """A new arena under `root`; `models` has the embedder's graph, which takes long to make."""
    home, folder = root / "home", root / "docs"
    home.mkdir()
    folder.mkdir()
    if models is not None:
        (home / "models").symlink_to(models)
    return Arena(home=home, folder=folder, chance=random.Random(seed), embedder=embedder)
