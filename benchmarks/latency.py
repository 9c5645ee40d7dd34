"""Search latency and memory: hybrid search, from the words of a question to eight texts.

    uv run --group bench benchmarks/latency.py [FOLDER …] [--chunks N …] [--queries 200]
        [--engines vademecum,lancedb,qdrant-edge] [--rounds 3]
        [--database URL | --keep DIR] [--json]

Real documents are indexed by `App.bulk_index`, in a fixed random order, until there are as many
chunks as wished. The other engines get the same chunks, each with its text and one vector, that
of its first window, which is all they would embed of it; ours has a vector for every window. Each
engine is built in one process and asked in another, with the same embedder inside, and the
rounds of all engines take turns. A question is 6 to 10 words in a row from a random chunk;
"found" is the share of questions whose own chunk is among the hits.

Without a folder it takes the documentation that Debian packages install. --keep saves the indexes
in DIR and uses them again as long as the folders, the number of chunks and the schema stay.
"""

import argparse
import asyncio
import importlib.util
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engines.engine import ENGINES, LIMIT, PACKAGES
from engines.handover import WORDS, Handover
from engines.memory import megabytes, processors
from engines.prepare import forget_other, opened, prepare, say, signature

DOCUMENTATION = Path("/usr/share/doc")
DEBIAN = {
    "python3-doc": "python3.11/html",
    "postgresql-doc-15": "postgresql-doc-15/html",
    "linux-doc-6.1": "linux-doc-6.1/html",
    "python-django-doc": "python-django-doc/html",
}
"""The folder of each package."""
SIZES = (10_000, 50_000)
BAR_CHUNKS, BAR_P95 = 50_000, 10.0
"""The bar: milliseconds at that many chunks, and ahead of LanceDB."""
OURS = "vademecum"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure, and where."""

    folders: Sequence[Path]
    engines: Sequence[str]
    queries: int
    rounds: int
    server: str | None
    keep: Path | None


def main() -> None:
    arguments = parsed()
    folders = [folder.resolve() for folder in arguments.folders] or debian_documentation()
    if not folders:
        return
    plan = Plan(
        folders=folders,
        engines=[name for name in arguments.engines if installed(name)],
        queries=arguments.queries,
        rounds=arguments.rounds,
        server=arguments.database,
        keep=arguments.keep.resolve() if arguments.keep else None,
    )
    results = []
    for chunks in sorted(arguments.chunks or SIZES):
        results.append(asyncio.run(measure(plan, chunks)))
        if not arguments.json:
            report(results[-1])
    if arguments.json:
        print(json.dumps(results, indent=2))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="documents")
    parser.add_argument("--chunks", type=positive, action="append", metavar="N", help="repeatable")
    parser.add_argument("--queries", type=positive, default=200, metavar="N")
    parser.add_argument("--rounds", type=positive, default=3, metavar="N")
    parser.add_argument(
        "--engines", type=lambda text: text.split(","), default=list(ENGINES), metavar="NAME,…"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--database", metavar="URL", help="a server to make a database on")
    where.add_argument("--keep", type=Path, metavar="DIR", help="save the indexes there")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.engines if name not in ENGINES]:
        parser.error(f"there is no engine {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    if absent := [str(folder) for folder in arguments.folders if not folder.is_dir()]:
        parser.error(f"there is no folder {', '.join(absent)}")
    return arguments


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def debian_documentation() -> list[Path]:
    """What of it is installed; says how to get the rest."""
    folders = {package: DOCUMENTATION / folder for package, folder in DEBIAN.items()}
    lacking = [package for package, folder in folders.items() if not folder.is_dir()]
    if len(lacking) == len(folders):
        say("Nothing measured: name a folder of documents, or install some:")
    elif lacking:
        say("For more documents:")
    if lacking:
        say(f"  apt-get install {' '.join(lacking)}")
    return [folder for folder in folders.values() if folder.is_dir()]


def installed(engine: str) -> bool:
    package = PACKAGES.get(engine)
    if package is None or importlib.util.find_spec(package):
        return True
    say(f"{engine} is left out, since it is not installed: `uv sync --group bench`")
    return False


async def measure(plan: Plan, chunks: int) -> dict[str, Any]:
    """One size: index, hand over, build, ask."""
    kept = plan.keep / str(chunks) if plan.keep is not None else None
    if kept is not None:
        await forget_other(kept, signature(plan.folders, chunks))
    with _folder(kept) as place:
        async with opened(kept, plan.server) as app:
            handover = await prepare(app, plan.folders, chunks, Path(place))
            handover.write_questions(plan.queries)
            measured = len(handover.questions[1])
            if not measured:
                raise SystemExit("too few chunks hold prose to make questions from")
            # Its idle connections would count as memory that searching needs.
            await app.database.close()
            built = await build_all(plan.engines, handover)
            asked = await ask_all(list(built), plan.rounds, handover)
        about = handover.about
    embedding = [one["embedding"] for rounds in asked.values() for one in rounds]
    return {
        "chunks": about["chunks"],
        "windows": about["windows"],
        "documents": about["documents"],
        "bytes": about["bytes"],
        "queries": measured,
        "rounds": plan.rounds,
        "processors": processors(),
        "indexed_seconds": about["seconds"],
        "embedding": quantiles(embedding),
        "engines": {
            name: summary(rounds) | {"built": built[name]} for name, rounds in asked.items()
        },
    }


def _folder(kept: Path | None) -> AbstractContextManager[str]:
    if kept is not None:
        return nullcontext(str(kept))
    return tempfile.TemporaryDirectory(prefix="vade-bench-latency-")


async def build_all(engines: Sequence[str], handover: Handover) -> dict[str, Any]:
    """What building cost, by engine; what is built already is used again."""
    built: dict[str, Any] = {}
    for engine in engines:
        note = handover.folder / f"{engine}.json"
        if not note.is_file():
            if engine != OURS:
                say(f"building {engine}")
            cost = await step("build", engine, handover)
            if cost is None:
                continue
            note.write_text(json.dumps(cost))
        built[engine] = json.loads(note.read_text())
    return built


async def ask_all(
    engines: Sequence[str], rounds: int, handover: Handover
) -> dict[str, list[dict[str, Any]]]:
    """What each round of each engine gave; an engine that fails is left out from then on."""
    asked: dict[str, list[dict[str, Any]]] = {engine: [] for engine in engines}
    for number in range(rounds):
        for engine in list(asked):
            say(f"asking {engine}, round {number + 1} of {rounds}")
            answer = await step("search", engine, handover)
            if answer is None:
                del asked[engine]
            else:
                asked[engine].append(answer)
    return asked


async def step(name: str, engine: str, handover: Handover) -> dict[str, Any] | None:
    """One step of one engine in a process of its own; None, and a word about it, if it fails."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "engines", name, engine, str(handover.folder)),
        cwd=Path(__file__).resolve().parent,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    if process.returncode:
        say(f"{engine} is left out: its {name} failed ({process.returncode}), see above")
        return None
    answer: dict[str, Any] = json.loads(output)
    return answer


def summary(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All rounds as one."""
    server = [one["server_bytes"] for one in rounds]
    return {
        "modes": {
            mode: quantiles([one["modes"][mode]["milliseconds"] for one in rounds])
            | {"found": rounds[-1]["modes"][mode]["found"]}
            for mode in rounds[0]["modes"]
        },
        "peak_bytes": max(one["peak_bytes"] for one in rounds),
        "server_bytes": None if None in server else max(server),
    }


def quantiles(rounds: Sequence[Sequence[float]]) -> dict[str, float]:
    times = [one for milliseconds in rounds for one in milliseconds]
    if not times:
        return {}
    return {name: float(np.percentile(times, p)) for name, p in (("p50", 50), ("p95", 95))}


def report(result: dict[str, Any]) -> None:
    print(
        f"{result['chunks']} chunks of {result['documents']} documents "
        f"({result['bytes'] / 1e6:.0f} MB), {result['windows']} windows; "
        f"{result['queries']} questions of {WORDS[0]}-{WORDS[1]} words, {LIMIT} hits, "
        f"{result['rounds']} rounds; {result['processors']} processors"
    )
    print(f"  {'':22} {'p50 ms':>7} {'p95 ms':>7} {'found':>6}  memory")
    if not result["engines"]:
        print("  no engine could be measured\n")
        return
    embedding = result["embedding"]
    print(f"  {'query embedding alone':22} {embedding['p50']:7.2f} {embedding['p95']:7.2f}")
    for name, engine in result["engines"].items():
        for mode, times in engine["modes"].items():
            line = f"  {f'{name} {mode}':22} {times['p50']:7.2f} {times['p95']:7.2f}"
            line += f" {times['found']:6.2f}"
            print(line + (f"  {_memory(engine)}" if mode == "hybrid" else ""))
    for name, engine in result["engines"].items():
        _report_building(name, engine["built"], result["indexed_seconds"])
    _compare(result)
    print(flush=True)


def _memory(engine: dict[str, Any]) -> str:
    own = megabytes(engine["peak_bytes"])
    if engine["server_bytes"] == 0:
        return own
    return f"{own}, and {megabytes(engine['server_bytes'])} of the server"


def _report_building(name: str, built: dict[str, Any], indexed: float | None) -> None:
    if name != OURS:
        print(f"  {name} built in {built['seconds']:.1f} s with {megabytes(built['peak_bytes'])}")
    elif indexed is not None:
        print(f"  {name} indexed in {indexed:.1f} s, reading and embedding included")


def _compare(result: dict[str, Any]) -> None:
    engines = result["engines"]
    if OURS not in engines:
        return
    ours = engines[OURS]["modes"]["hybrid"]
    ahead = True
    for name, engine in engines.items():
        if name == OURS:
            continue
        theirs = engine["modes"]["hybrid"]
        ratios = {p: ours[p] / theirs[p] for p in ("p50", "p95")}
        print(f"  ours / {name}: p50 {ratios['p50']:.2f}, p95 {ratios['p95']:.2f}")
        if name == "lancedb":
            ahead = max(ratios.values()) < 1
    if result["chunks"] >= BAR_CHUNKS:
        held = ours["p95"] <= BAR_P95 and ahead
        others = " and ahead of LanceDB" if "lancedb" in engines else ", LanceDB not measured"
        print(f"  bar p95 <= {BAR_P95:g} ms{others}: {'held' if held else 'MISSED'}")


if __name__ == "__main__":
    main()
