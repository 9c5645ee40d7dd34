"""How loading, size and search grow with the number of chunks, beside LanceDB in the same run.

    uv run --group bench benchmarks/scale.py POOL --keep DIR [--chunks N …] [--queries 200]
        [--load-only] [--json FILE]

POOL is the folder `SIZE/handover` that `benchmarks/latency.py --keep` made: real passages of
Debian's documentation with their real vectors. Up to their number each chunk is one of them. Beyond
it a chunk is three paragraphs of random passages, and its vector lies between those of two of them:
a real distribution, made denser. Every window after a chunk's first has such a vector, too.

Documents of twenty sections are written as files and indexed by `App.bulk_index` with everything
but the model, whose speed `benchmarks/embedder.py` measures: vectors are looked up. Each document
has a facet `part` from 0 to 999, so that `part<10` lets through one in a hundred. Questions are 6
to 10 words in a row of a passage, others for each mode and filter, embedded by the real model;
"found" is the share of them whose own passage is among the eight hits. LanceDB has the same chunks,
each with the vector of its first window, and answers the same block of questions right after us,
with the filter pushed down.
DIR keeps what was loaded, and what is there is not loaded again.
"""

import argparse
import asyncio
import json
import os
import shutil
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from engines.memory import own_peak, server_now
from engines.prepare import count, opened, say
from scaling.corpus import COLLECTION, EMBEDDER, Pool, PoolEmbedder, write_documents
from scaling.lance import Lance, build_lance
from vademecum.app import App
from vademecum.store import embeddings
from vademecum.types import Query

SIZES = (10_000, 100_000)
LIMIT = 8
MODES = ("lexical", "dense", "hybrid")
FILTERS = {"all": None, "1/2": 500, "1/10": 100, "1/100": 10, "1/1000": 1}
"""Parts below this are let through."""
WARM_UP = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--keep", type=Path, required=True, metavar="DIR")
    parser.add_argument("--chunks", type=int, action="append", metavar="N")
    parser.add_argument("--queries", type=int, default=200, metavar="N")
    parser.add_argument("--load-only", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    pool = Pool(arguments.pool)
    results = []
    for chunks in sorted(arguments.chunks or SIZES):
        place = arguments.keep.resolve() / str(chunks)
        place.mkdir(parents=True, exist_ok=True)
        results.append(asyncio.run(measure(pool, place, chunks, arguments)))
        if not arguments.load_only:
            report(results[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


async def measure(
    pool: Pool, place: Path, chunks: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    async with opened(place, None) as app:
        app.embedders.opened[EMBEDDER] = PoolEmbedder(app, pool)
        note = place / "load.json"
        if not note.is_file():
            loaded = await load(app, pool, place, chunks)
            note.write_text(json.dumps(loaded))
        result: dict[str, Any] = json.loads(note.read_text())
        if not arguments.load_only:
            result["asked"] = await ask(app, pool, place, chunks, arguments.queries)
            result["server_bytes"] = await server_now(app.database.conninfo)
            result["own_peak_bytes"] = own_peak()
    return result


async def load(app: App, pool: Pool, place: Path, chunks: int) -> dict[str, Any]:
    folder = place / "corpus"
    shutil.rmtree(folder, ignore_errors=True)
    size, profile = write_documents(pool, folder, chunks)
    say(f"{chunks}: loading {size / 1e6:.0f} MB")
    started = time.perf_counter()
    done = await app.ingest.bulk_index(
        folder, collection=COLLECTION, profile=str(profile), embedder=EMBEDDER
    )
    seconds = time.perf_counter() - started
    assert not done.failed, done.failed[:3]
    target = await app.collection(COLLECTION)
    assert target.space_id is not None
    async with app.database.connection() as connection:
        await embeddings.drop_index(connection, target.space_id)
        started = time.perf_counter()
        await embeddings.build_index(connection, target.space_id)
        built = time.perf_counter() - started
        await connection.execute("VACUUM ANALYZE")
        cursor = await connection.execute(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
            " WHERE relkind = 'r' AND pg_total_relation_size(oid) > 1000000"
            " AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC"
        )
        tables = dict(await cursor.fetchall())
        cursor = await connection.execute(
            "SELECT pg_relation_size(%s)", [embeddings.index(target.space_id)]
        )
        row = await cursor.fetchone()
        cursor = await connection.execute("SELECT pg_database_size(current_database())")
        whole = await cursor.fetchone()
    say(f"{chunks}: loading LanceDB")
    lance = build_lance(pool, place / "lance", chunks)
    shutil.rmtree(folder)
    return {
        "chunks": await count(app),
        "windows": await count(app, embeddings.table(target.space_id)),
        "documents": done.inserted,
        "text_bytes": size,
        "load_seconds": seconds,
        "machine_load": os.getloadavg()[0],
        "index_seconds": built,
        "index_bytes": row[0] if row else 0,
        "database_bytes": whole[0] if whole else 0,
        "tables": tables,
        "lance": lance,
    }


async def ask(app: App, pool: Pool, place: Path, chunks: int, queries: int) -> dict[str, Any]:
    """Milliseconds by mode and filter, a block of questions ours and then LanceDB's."""
    each = WARM_UP + queries
    questions = iter(pool.questions(min(chunks, len(pool)), each * len(MODES) * len(FILTERS)))
    lance = await Lance.open(place / "lance", pool.embedder(app))
    asked: dict[str, Any] = {}
    for mode in MODES:
        for name, below in FILTERS.items():
            ours, theirs, found, hits = [], [], 0, 0
            filters = () if below is None else (f"part<{below}",)
            block = list(islice(questions, each))
            for turn, question in enumerate(block):
                query = Query(
                    text=question.text,
                    collection=COLLECTION,
                    mode=mode,  # type: ignore[arg-type]
                    limit=LIMIT,
                    filters=filters,
                )
                started = time.perf_counter()
                answer = await app.search(query)
                ended = time.perf_counter()
                if answer.mode != mode or answer.notices:
                    raise SystemExit(f"{mode}: {answer.notices}")
                if turn >= WARM_UP:
                    ours.append((ended - started) * 1000)
                    hits += len(answer.results)
                    found += any(question.chunk_id in hit.heading_path for hit in answer.results)
            for turn, question in enumerate(block):
                started = time.perf_counter()
                await lance.search(question.text, mode, below, LIMIT)
                if turn >= WARM_UP:
                    theirs.append((time.perf_counter() - started) * 1000)
            asked[f"{mode} {name}"] = {
                "ours": quantiles(ours),
                "lance": quantiles(theirs),
                "found": found / len(ours),
                "hits": hits / len(ours),
            }
    return asked


def quantiles(times: list[float]) -> dict[str, float]:
    return {f"p{p}": float(np.percentile(times, p)) for p in (50, 95, 99)}


def report(result: dict[str, Any]) -> None:
    chunks = result["chunks"]
    print(
        f"{chunks} chunks, {result['windows']} windows, {result['documents']} documents,"
        f" {result['text_bytes'] / 1e6:.0f} MB of text"
    )
    print(
        f"  loaded in {result['load_seconds']:.0f} s ({chunks / result['load_seconds']:.0f}"
        f" chunks/s), of which HNSW {result['index_seconds']:.1f} s; LanceDB"
        f" {result['lance']['seconds']:.0f} s; the machine's load was {result['machine_load']:.1f}"
    )
    print(
        f"  disk {result['database_bytes'] / 1e6:.0f} MB (HNSW {result['index_bytes'] / 1e6:.0f}),"
        f" LanceDB {result['lance']['bytes'] / 1e6:.0f} MB;"
        f" memory {(result['server_bytes'] or 0) / 1e6:.0f} MB of the server,"
        f" {result['own_peak_bytes'] / 1e6:.0f} MB of this process with LanceDB in it"
    )
    columns = "p50 p95 p99"
    print(f"  {'':18}{'ours ' + columns:>27}{'LanceDB ' + columns:>27}   p50  found  hits")
    for name, one in result["asked"].items():
        ours, theirs = one["ours"], one["lance"]
        print(
            f"  {name:18}"
            + "".join(f"{ours[p]:9.1f}" for p in ours)
            + "".join(f"{theirs[p]:9.1f}" for p in theirs)
            + f"{ours['p50'] / theirs['p50']:6.2f}{one['found']:7.2f}{one['hits']:6.1f}"
        )


if __name__ == "__main__":
    main()
