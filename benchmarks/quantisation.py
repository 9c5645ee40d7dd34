"""What an index over one bit a number costs in recall and saves in size, beside half precision.

    uv run benchmarks/quantisation.py FOLDER [--set NAME] [--chunks N] [--queries 200]
    uv run --group bench benchmarks/quantisation.py HANDOVER [--chunks N] [--queries 200]

FOLDER is as for benchmarks/retrieval.py: the documents of a set are split and embedded as
`vade bulk-index` does it. HANDOVER is the folder `SIZE/handover` that `benchmarks/latency.py
--keep` made: real passages with the vectors of their first windows, and questions made of their
words. Then pgvector builds HNSW (m 16, ef_construction 64) over the halfvecs, and over their signs
with Hamming distance; of the latter so many times as many windows as wanted are looked at again
with their halfvecs. recall@10 is against a look at every window, in the same table.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

from pgvector import HalfVector

from engines.handover import Handover, sample
from retrieval import FILES, read_set
from scratch import scratch_app
from vademecum.store.db import Connection
from vademecum.types import Vector

TOP = 10
TIMES = (1, 4, 10, 20, 40)
EF_SEARCH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder of the sets")
    parser.add_argument("--set", dest="name", default="k8s-docs")
    parser.add_argument("--chunks", type=int, default=100_000, help="at most")
    parser.add_argument("--queries", type=int, default=200, help="at most")
    arguments = parser.parse_args()
    if (arguments.folder / "about.json").is_file():
        asyncio.run(measure_handover(arguments.folder, arguments.chunks, arguments.queries))
        return
    folder = arguments.folder / arguments.name
    if absent := [file for file in FILES if not (folder / file).is_file()]:
        parser.error(f"{folder} has no {', '.join(absent)}")
    asyncio.run(measure(folder, arguments.chunks, arguments.queries))


async def measure(folder: Path, chunks: int, queries: int) -> None:
    found = read_set(folder)
    texts = [
        f"# {one.get('title') or 'Untitled'}\n\n{one['text']}"
        for corpus in found.corpora.values()
        for one in corpus
    ]
    async with scratch_app() as app:
        with tempfile.TemporaryDirectory() as place:
            for number, text in enumerate(texts):
                (Path(place) / f"{number}.md").write_text(text, encoding="utf-8")
            await app.ingest.bulk_index(Path(place), collection="measured")
        target = await app.collection("measured")
        embedder = app.embedders.named(target.embedder)
        assert embedder is not None
        asked = [str(one["text"]) for one in found.questions][:queries]
        vectors = [await embedder.embed_query(text) for text in asked]
        async with app.database.connection() as connection:
            windows = await prepare(connection, int(target.space_id or 0), chunks)
            size = len(vectors[0])
            print(f"{windows} windows of {size} numbers, {len(vectors)} queries, {folder.name}")
            await report(connection, vectors, size)


async def measure_handover(folder: Path, chunks: int, queries: int) -> None:
    handover = Handover(folder)
    held = handover.vectors[:chunks]
    async with scratch_app() as app:
        embedder = app.embedders.named(app.settings.embedder)
        assert embedder is not None
        asked = sample(list(handover.passages())[:chunks], queries)
        vectors = [await embedder.embed_query(one.text) for one in asked]
        async with app.database.connection() as connection:
            size = len(vectors[0])
            await connection.execute(
                f"CREATE TABLE measured (id integer PRIMARY KEY, embedding halfvec({size}))"
            )
            async with (
                connection.cursor() as cursor,
                cursor.copy("COPY measured FROM STDIN (FORMAT binary)") as copy,
            ):
                copy.set_types(["int4", "halfvec"])
                for number, vector in enumerate(held):
                    await copy.write_row((number, HalfVector(vector)))
            await connection.execute("ANALYZE measured")
            print(f"{len(held)} windows of {size} numbers, {len(vectors)} queries, {folder}")
            await report(connection, vectors, size)


async def prepare(connection: Connection, space: int, chunks: int) -> int:
    await connection.execute(
        f"CREATE TABLE measured AS SELECT row_number() OVER () AS id, embedding"
        f" FROM embeddings_{space} LIMIT {int(chunks)}"
    )
    await connection.execute("ALTER TABLE measured ADD PRIMARY KEY (id)")
    await connection.execute("ANALYZE measured")
    return (await rows(connection, "SELECT count(*) FROM measured"))[0][0]


async def report(connection: Connection, vectors: Sequence[Vector], size: int) -> None:
    truth = [await ids(connection, EXACT, vector, 0, size) for vector in vectors]
    kinds = {
        "halfvec": "USING hnsw (embedding halfvec_cosine_ops)",
        "bit": f"USING hnsw ((binary_quantize(embedding)::bit({size})) bit_hamming_ops)",
    }
    print(f"{'index':12}{'MB':>8}{'build s':>9}{'recall@10':>11}{'p50 ms':>8}{'p95 ms':>8}")
    table = (await rows(connection, "SELECT pg_relation_size('measured')"))[0][0]
    print(f"{'table':12}{table / 1e6:8.1f}")
    for kind, method in kinds.items():
        started = time.perf_counter()
        await connection.execute(
            f"CREATE INDEX measured_hnsw ON measured {method} WITH (m = 16, ef_construction = 64)"
        )
        built = time.perf_counter() - started
        held = (await rows(connection, "SELECT pg_relation_size('measured_hnsw')"))[0][0]
        for times in (1,) if kind == "halfvec" else TIMES:
            recall, took = await ask(connection, kind, vectors, truth, times, size)
            cuts = quantiles(took, n=20)
            name = kind if kind == "halfvec" else f"bit x{times}"
            print(
                f"{name:12}{held / 1e6:8.1f}{built:9.1f}{recall:11.3f}"
                f"{cuts[9] * 1000:8.2f}{cuts[18] * 1000:8.2f}"
            )
        await connection.execute("DROP INDEX measured_hnsw")


HALFVEC = "SELECT id FROM measured ORDER BY embedding <=> %(vector)s LIMIT %(limit)s"
EXACT = "SELECT id FROM measured ORDER BY (embedding <=> %(vector)s) + 0 LIMIT %(limit)s"
BIT = """
SELECT id FROM (
    SELECT id, embedding FROM measured
     ORDER BY binary_quantize(embedding)::bit({size})
              <~> binary_quantize(%(vector)s::halfvec({size})) LIMIT %(wide)s
) near ORDER BY embedding <=> %(vector)s LIMIT %(limit)s
"""


async def ask(
    connection: Connection,
    kind: str,
    vectors: Sequence[Vector],
    truth: Sequence[list[int]],
    times: int,
    size: int,
) -> tuple[float, list[float]]:
    query = HALFVEC if kind == "halfvec" else BIT.format(size=size)
    recalls, took = [], []
    async with connection.transaction():
        await connection.execute(f"SET LOCAL hnsw.ef_search = {max(EF_SEARCH, TOP * times)}")
        await connection.execute("SET LOCAL enable_seqscan = off")
        plan = await rows(
            connection,
            "EXPLAIN (FORMAT JSON) " + query,
            {"vector": HalfVector(vectors[0]), "limit": TOP, "wide": TOP * times},
        )
        assert "measured_hnsw" in json.dumps(plan), "the index is not used"
        for vector, true in zip(vectors, truth, strict=True):
            started = time.perf_counter()
            found = await ids(connection, query, vector, times, size)
            took.append(time.perf_counter() - started)
            recalls.append(len(set(found) & set(true)) / len(true))
    return fmean(recalls), took


async def ids(
    connection: Connection, query: str, vector: Vector, times: int, size: int
) -> list[int]:
    values = {"vector": HalfVector(vector), "limit": TOP, "wide": TOP * times}
    return [row[0] for row in await rows(connection, query, values)]


async def rows(connection: Connection, query: str, values: Any = None) -> list[Any]:
    cursor = await connection.execute(query, values)  # type: ignore[arg-type]
    return list(await cursor.fetchall())


if __name__ == "__main__":
    main()
