"""Kills the command, the worker and the server at random moments, and looks at what is left.

A round: the folder is edited, a command is started on it and something is killed while it runs.
What readers then see must be whole. At the end one undisturbed run must leave the same as
indexing the folder for the first time.
"""

import asyncio
import json
import random
import signal
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from killed_home import BrokenError, KilledHome, differences
from whole import rows

from vademecum.surfaces.http.instance import find, is_served

WORDS = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8").split()
ON_DUTY = ("vade worker", "vade serve")
"""Commands that work until they are stopped."""
KINDS = ("command", "terminate", "server", "both", "worker", "worker and server", *ON_DUTY)


@dataclass(kw_only=True)
class Arena(KilledHome):
    """A home and one folder that is indexed into it."""

    folder: Path
    files: int = 80
    profile: str | None = None
    kinds: tuple[str, ...] = KINDS
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
        left = asyncio.run(self.open_jobs())
        if stopped and not self.stopped_well(code):
            raise BrokenError(f"{kind} did not stop in good order: {code}\n{err}")
        # Those of a worker killed in an earlier round may be in hand still: others look for them.
        if stopped and (kept := asyncio.run(self._in_hand(command.pid))):
            raise BrokenError(f"{kind} was stopped and kept {kept} of {len(left)} jobs in hand")
        self.duration[kind] *= 1.05 if left else 0.85
        self.hit[kind] += bool(left)
        self.look()

    async def _in_hand(self, pid: int) -> int:
        async with await self.connect() as connection:
            held = await rows(
                connection, "SELECT worker FROM processing_queue WHERE status = 'processing'"
            )
        return sum(worker.rsplit("/", 3)[1] == str(pid) for (worker,) in held)

    # --- the end ------------------------------------------------------------------------------

    def compare(self) -> None:
        """One undisturbed run, and all is as if the folder had been indexed for the first time."""
        self.index()
        self.look()
        ours, jobs = asyncio.run(self.everything("postgres"))
        if jobs:
            raise BrokenError(f"jobs are left: {jobs}")
        again = self.index()
        if again["unchanged"] != len(self.pages()) or again["chunks"]:
            raise BrokenError(f"a second run found something to do: {again}")
        asyncio.run(self.make_database("fresh"))
        self.index(database=asyncio.run(self.url_of("fresh")))
        fresh, _ = asyncio.run(self.everything("fresh"))
        differences(ours, fresh)


def arena(root: Path, *, seed: int, embedder: str, models: Path | None) -> Arena:
    """A new arena under `root`; `models` has the embedder's graph, which takes long to make."""
    home, folder = root / "home", root / "docs"
    home.mkdir()
    folder.mkdir()
    if models is not None:
        (home / "models").symlink_to(models)
    return Arena(home=home, folder=folder, chance=random.Random(seed), embedder=embedder)
