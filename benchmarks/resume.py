"""A knowledge base whose indexing is killed again and again, beside one that nobody disturbed.

    uv run benchmarks/resume.py [--pages 1000] [--kills 8] [--seed 1] [--embedder none]

The pages are those of acceptance.py. The command is killed (SIGKILL) at random moments, every
second time with its database server, and run again until it ends by itself. Then ledger, task list
and summaries have to be the same bytes but for the times, and so have the results of searches,
with all that each retriever says of them. Exits with 1 where something differs.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from acceptance import make, pages_of
from scratch import CACHE, remove
from vademecum.store.embedded import EmbeddedDatabase

VADE = Path(sys.executable).parent / "vade"
QUERIES = 10


class Side:
    """A root of knowledge bases, and a home of its own."""

    def __init__(self, folder: Path, pages: Path, embedder: str | None) -> None:
        self.root, self.home = folder / "root", folder / "home"
        shutil.copytree(pages, self.root)
        self.home.mkdir()
        (self.home / "models").symlink_to(CACHE / "models")
        kept = {key: value for key, value in os.environ.items() if not key.startswith("VADE_")}
        self.environment = kept | {"VADE_HOME": str(self.home)}
        if embedder:
            self.environment["VADE_EMBEDDER"] = embedder

    def start(self, *arguments: str | Path) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [VADE, *arguments, "--json"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def index(self) -> "subprocess.Popen[str]":
        return self.start("bulk-index", self.root, "--each-folder")

    def ask(self, *arguments: str) -> Any:
        command = self.start(*arguments)
        out, _ = command.communicate()
        if command.returncode != 0:
            raise SystemExit(f"vade {' '.join(arguments)} failed: {out}")
        return json.loads(out)

    def kill_server(self) -> None:
        pid = self.home / "database" / "cluster" / "postmaster.pid"
        try:
            os.kill(int(pid.read_text().split("\n", 1)[0]), signal.SIGKILL)
        except (OSError, ValueError):
            return

    def written(self) -> dict[str, str]:
        """What is kept beside the pages, without the times."""
        kept = {}
        for folder in sorted(path for path in self.root.iterdir() if path.is_dir()):
            files = [folder / "TASKS.md", *(p for p in (folder / ".kb").rglob("*") if p.is_file())]
            for path in files:
                text = path.read_text(encoding="utf-8")
                text = re.sub(r'("\w+_at": )"[^"]+"', r'\1"done"', text)
                kept[path.relative_to(self.root).as_posix()] = re.sub(r"- Updated: .*", "", text)
        return kept

    def found(self, queries: list[str]) -> dict[str, str]:
        results = {}
        for query in queries:
            asked = ("search", query, "-c", "packages", "-k", "20", "--explain", "--metadata")
            results[query] = json.dumps(self.ask(*asked)["results"], indent=1)
        return results


def killed(side: Side, seconds: float, kills: int, chance: random.Random) -> int:
    """Index, killed so often on the way; how often it was at work then."""
    at_work = 0
    for number in range(kills):
        command = side.index()
        time.sleep(chance.uniform(0.1, 1.2) * seconds / kills)
        at_work += command.poll() is None
        command.kill()
        if number % 2:
            side.kill_server()
        command.communicate()
    return at_work


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--embedder")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    folder = Path(tempfile.mkdtemp(prefix="vade-resume-"))
    make(folder / "pages", options.pages)
    left = Side(folder / "left", folder / "pages", options.embedder)
    right = Side(folder / "right", folder / "pages", options.embedder)
    try:
        began = time.monotonic()
        left.index().communicate()
        seconds = time.monotonic() - began
        at_work = killed(right, seconds, options.kills, chance)
        right.index().communicate()
        differ = compare(left, right, chance)
    finally:
        for side in (left, right):
            asyncio.run(EmbeddedDatabase(side.home).stop())
        asyncio.run(remove(folder))
    print(
        f"{options.pages} pages, seed {options.seed}: killed {options.kills} times, {at_work} of"
        f" them at work; undisturbed in {seconds:.0f} s"
    )
    for what, (same, of) in differ.items():
        print(f"{'ok    ' if same == of else 'FAILED'} {what}: {same} of {of} the same")
    sys.exit(any(same != of for same, of in differ.values()))


def compare(left: Side, right: Side, chance: random.Random) -> dict[str, tuple[int, int]]:
    """By what was looked at, how many are the same, of how many."""
    ours, theirs = left.written(), right.written()
    pages = pages_of(left.root / "packages")
    titles = [page.read_text(encoding="utf-8").split("\n", 1)[0].strip("# ") for page in pages]
    queries = chance.sample(sorted(set(titles)), min(QUERIES, len(set(titles))))
    one, other = left.found(queries), right.found(queries)
    summaries = [name for name in ours if name.endswith(".summary6.md")]
    rest = [name for name in ours if name not in summaries]
    return {
        "ledgers and task lists": _same(ours, theirs, rest),
        "summaries": _same(ours, theirs, summaries),
        "files in all": (len(ours), len(theirs)),
        "searches": _same(one, other, queries),
        "searches that find anything": (sum(text != "[]" for text in one.values()), len(queries)),
    }


def _same(ours: dict[str, str], theirs: dict[str, str], names: list[str]) -> tuple[int, int]:
    return sum(ours[name] == theirs.get(name) for name in names), len(names)


if __name__ == "__main__":
    main()
