"""A folder indexed again with nothing changed: the whole command, against SHA-256 of its files.

    uv run benchmarks/unchanged.py FOLDER … [--files N] [--embedder E] [--repeats N] [--json]

The documents are copied to a folder of the benchmark's own and indexed, for their words only unless
an embedder is named. Then, in turn and some times over: `vade bulk-index` in a process of its own;
the same within a process that runs already; and every file read and hashed, nothing else.
"""

import argparse
import asyncio
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engines import corpus
from engines.memory import processors
from engines.processor import server_seconds
from scratch import scratch_app
from vademecum.app import App

COLLECTION = "benchmark"
BAR = 200.0
"""Megabytes a second, of the whole command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Medians over all repeats, in seconds."""

    wall: float
    processor: float
    """Of the command, or this process."""
    server: float
    """Processor time of the database server; 0 where it cannot be seen."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="documents")
    parser.add_argument("--files", type=int, metavar="N", help="only so many, chosen at random")
    parser.add_argument("--embedder", default="none", help="provider:model; default: words only")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    arguments = parser.parse_args()
    if absent := [str(folder) for folder in arguments.folders if not folder.is_dir()]:
        parser.error(f"there is no folder {', '.join(absent)}")
    with tempfile.TemporaryDirectory(prefix="vade-bench-docs-") as temporary:
        originals = corpus.find(arguments.folders)[: arguments.files]
        if not originals:
            parser.error("these folders hold no documents")
        files = corpus.copy(originals, Path(temporary, "corpus"))
        result = asyncio.run(
            run(Path(temporary, "corpus"), files, arguments.embedder, arguments.repeats)
        )
    print(json.dumps(result, indent=2) if arguments.json else report(result))


async def run(folder: Path, files: Sequence[Path], embedder: str, repeats: int) -> dict[str, Any]:
    async with scratch_app(embedder=embedder) as app:
        indexed = await app.ingest.bulk_index(folder, collection=COLLECTION)
        for failure in indexed.failed:
            print(f"not indexed: {failure.path}: {failure.error}", file=sys.stderr)
        ways: dict[str, Callable[[], Awaitable[None]]] = {
            "command": lambda: command(app, folder),
            "in_process": lambda: again(app, folder),
            "hashing": lambda: hashed(files),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in ways}
        for _ in range(repeats):
            for name, way in ways.items():
                costs[name].append(await measured(app, way))
    size = sum(file.stat().st_size for file in files)
    medians = {name: median(each) for name, each in costs.items()}
    return {
        "files": len(files),
        "bytes": size,
        "chunks": indexed.chunks,
        "embedder": embedder,
        "processors": processors(),
        **{
            name: asdict(cost) | {"megabytes_per_second": size / cost.wall / 1e6}
            for name, cost in medians.items()
        },
    }


async def command(app: App, folder: Path) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [Path(sys.executable).with_name("vade"), "bulk-index", folder, "-c", COLLECTION, "--json"],
        env=os.environ
        | {"VADE_HOME": str(app.settings.home), "VADE_DATABASE_URL": app.database.conninfo},
        stdout=subprocess.PIPE,
        check=True,
    )
    told = json.loads(done.stdout)
    if told["inserted"] or told["updated"] or told["deleted"] or told["chunks"]:
        raise SystemExit(f"nothing was changed, and yet: {told}")


async def again(app: App, folder: Path) -> None:
    told = await app.ingest.bulk_index(folder, collection=COLLECTION)
    if told.inserted or told.updated or told.deleted or told.chunks:
        raise SystemExit(f"nothing was changed, and yet: {told}")


async def hashed(files: Sequence[Path]) -> None:
    for file in files:
        with file.open("rb") as stream:
            hashlib.file_digest(stream, "sha256").hexdigest()


async def measured(app: App, way: Callable[[], Awaitable[None]]) -> Cost:
    server = await server_seconds(app.database.conninfo) or 0.0
    own, started = _seconds(), time.perf_counter()
    await way()
    wall, own = time.perf_counter() - started, _seconds() - own
    server = (await server_seconds(app.database.conninfo) or 0.0) - server
    return Cost(wall=wall, processor=own, server=server)


def median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        wall=statistics.median(cost.wall for cost in costs),
        processor=statistics.median(cost.processor for cost in costs),
        server=statistics.median(cost.server for cost in costs),
    )


def _seconds() -> float:
    """Processor time of this process and of the commands that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def report(result: dict[str, Any]) -> str:
    lines = [
        f"{result['files']} files, {result['bytes'] / 1e6:.1f} MB, {result['chunks']} chunks; "
        f"embedder {result['embedder']}; {result['processors']} processors"
    ]
    for name, said in (
        ("command", "vade bulk-index"),
        ("in_process", "in a process"),
        ("hashing", "SHA-256 only"),
    ):
        cost = result[name]
        lines.append(
            f"{said:16} {cost['wall']:7.3f} s  {cost['megabytes_per_second']:6.0f} MB/s"
            f"  (processor {cost['processor']:.2f} s, server {cost['server']:.2f} s)"
        )
    rate = result["command"]["megabytes_per_second"]
    lines.append(f"bar {BAR:.0f} MB/s of the whole command: {'held' if rate >= BAR else 'MISSED'}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
