"""A collection in memory: how much of what is nearest it finds, and how fast, beside the database.

    uv run benchmarks/kept.py DIR/CHUNKS [--chunks 100] [--json]

DIR is one that `benchmarks/latency.py --keep DIR --chunks CHUNKS` has filled; its questions are
asked. The truth is every vector compared; recall is the share of the chunks that are truly nearest
that were found, of as many as are wanted and of the first ten. Times are of the ranking alone, one
question after the other.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np

from engines.handover import COLLECTION, Handover
from engines.prepare import opened
from vademecum.app import App
from vademecum.ranking import scored
from vademecum.store.collections import Collection
from vademecum.types import ChunkId, Vector
from vademecum.vectors.kept import KeptChunks
from vademecum.vectors.pgvector import PgvectorIndex
from vademecum.vectors.view import View

EVERYTHING = 1 << 40
FIRST = 10
MOMENT_SECONDS = 0.01
Ask = Callable[[Vector], Awaitable[list[ChunkId]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, metavar="DIR/CHUNKS")
    parser.add_argument("--chunks", type=int, default=100, help="wanted of each question")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    arguments = parser.parse_args()
    if not (arguments.folder / "handover").is_dir():
        parser.error(f"{arguments.folder} was not made by benchmarks/latency.py --keep")
    result = asyncio.run(measure(arguments.folder.resolve(), arguments.chunks))
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        report(result, arguments.chunks)


async def measure(folder: Path, wanted: int) -> dict[str, dict[str, float]]:
    """By who was asked: recall, and milliseconds."""
    warm_up, questions = Handover(folder / "handover").questions
    async with opened(folder, None) as app:
        collection = await app.collection(COLLECTION)
        embedder = app.embedders.searching(collection)
        assert embedder is not None
        assert collection.space_id is not None
        vectors = [await embedder.embed_query(one.text) for one in [*warm_up, *questions]]
        index = PgvectorIndex(app.database, space=collection.space_id, collection=collection.id)
        view = await in_memory(app, collection)

        async def exact(vector: Vector) -> list[ChunkId]:
            return [one.chunk_id for one in await index.exact(vector, limit=wanted)]

        async def memory(vector: Vector) -> list[ChunkId]:
            return [one.chunk_id for one in scored(view.nearest(vector, limit=wanted))]

        async def database(vector: Vector) -> list[ChunkId]:
            return [one.chunk_id for one in await index.nearest(vector, limit=wanted)]

        asks: dict[str, Ask] = {"every vector": exact, "in memory": memory, "pgvector": database}
        asked = {name: await timed(ask, vectors) for name, ask in asks.items()}
    truth, _ = asked["every vector"]
    first = len(warm_up)
    return {
        name: {
            "recall": recall(found, truth, wanted),
            "recall_first": recall(found, truth, FIRST),
            "p50": float(np.percentile(times[first:], 50)),
            "p95": float(np.percentile(times[first:], 95)),
        }
        for name, (found, times) in asked.items()
    }


async def in_memory(app: App, collection: Collection) -> View:
    kept = KeptChunks(most=EVERYTHING, often=1, worth=1)
    while True:
        if not kept.worth(collection):
            raise SystemExit("the collection cannot be kept in memory")
        if (view := await kept.view(app.database, collection)) is not None:
            return view
        await asyncio.sleep(MOMENT_SECONDS)


async def timed(ask: Ask, vectors: Sequence[Vector]) -> tuple[list[list[ChunkId]], list[float]]:
    """What was found for each, and in how many milliseconds."""
    found, times = [], []
    for vector in vectors:
        started = time.perf_counter()
        found.append(await ask(vector))
        times.append((time.perf_counter() - started) * 1000)
    return found, times


def recall(
    found: Sequence[Sequence[ChunkId]], truth: Sequence[Sequence[ChunkId]], first: int
) -> float:
    """The mean share of the first of the truth that were found among as many."""
    shares = [
        len({*a[:first]} & {*b[:first]}) / len(b[:first])
        for a, b in zip(found, truth, strict=True)
        if b
    ]
    return float(np.mean(shares))


def report(result: dict[str, dict[str, float]], wanted: int) -> None:
    print(f"{'':14} {f'of {wanted}':>8} {f'of {FIRST}':>8} {'p50 ms':>8} {'p95 ms':>8}")
    for name, one in result.items():
        print(
            f"{name:14} {one['recall']:8.3f} {one['recall_first']:8.3f}"
            f" {one['p50']:8.2f} {one['p95']:8.2f}"
        )


if __name__ == "__main__":
    main()
