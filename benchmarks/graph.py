"""The graph with many documents: size, and how long each stage of a question takes.

    uv run benchmarks/graph.py FOLDER … [--documents 100000] [--queries 200] [--embedder none]
        [--embedded 100000] [--keep DIR] [--json]

Documents are sections of the Markdown, HTML and reStructuredText below the folders, long ones in
pieces of about 1000 characters, in a fixed random order; where there are too few, they are taken
again with their sentences in another order. Each is stated with title, summary and text. A question
is 6 to 10 words in a row of a random document's text. Stages: words and meaning leave 100
documents, scores leave 5, whose rows are read; beside them a top list and a version-aware query.
The model embeds --embedded of the documents; the vectors of the others lie between those of two of
them, a real distribution made denser. --keep builds in DIR once and measures there again. The size
is that of the graph's tables, and of all tables with the collection in which the documents are
searched, per 10 000 documents.
"""

import argparse
import asyncio
import hashlib
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scratch import scratch_app
from vademecum.app import App
from vademecum.graph import relevant
from vademecum.graph.nodes import APIReference, ExternalDoc, Node
from vademecum.graph.sources import SOURCES
from vademecum.inference.embedder import Embedder
from vademecum.ingest.read import read_bytes
from vademecum.settings import Settings
from vademecum.store import embeddings
from vademecum.types import EmbeddingSpace, Hit, Vector

SUFFIXES = (".md", ".html", ".rst", ".txt")
STATED = 500
"""Documents of one statement."""
CATEGORIES = ("api", "tutorial", "reference", "guide")
LANGUAGES = ("Python", "JavaScript", "C", "SQL")
BAR = 30.0
METADATA = "{entities,stated_entities,graph_statements,relations,knowledge_scores,top_documents}"
SIZE = f"""
SELECT coalesce(sum(pg_total_relation_size(c.oid))
                FILTER (WHERE relname = ANY ('{METADATA}'::text[])), 0),
       sum(pg_total_relation_size(c.oid))
  FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
 WHERE relkind = 'r' AND nspname = 'public'
"""

ASKED = """
SELECT properties ->> 'content_snippet' FROM entities WHERE kind = 'ExternalDoc'
 ORDER BY md5(id::text) LIMIT 5000
"""
"""Texts that questions are made of."""
PIECE = 1000
"""Characters of a document, about."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--embedded", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="build here once")
    parser.add_argument("--json", action="store_true", dest="as_json")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments))
    if arguments.as_json:
        print(json.dumps(found, indent=2))
        return
    print(f"{found['documents']} documents, embedder {arguments.embedder}")
    print(
        f"10 000 documents: {found['metadata_megabytes']:.0f} MB of metadata (bar: 100),"
        f" {found['megabytes']:.0f} MB with what they are searched by"
    )
    print(f"{'milliseconds':16}{'p50':>8}{'p95':>8}")
    for stage, (middle, late) in found["stages"].items():
        print(f"{stage:16}{middle:8.2f}{late:8.2f}")
    print(f"the bar of the whole is {BAR:.0f} ms at p95; p95 / bar ="
          f" {found['stages']['whole'][1] / BAR:.2f}")  # fmt: skip


def opened(arguments: argparse.Namespace) -> AbstractAsyncContextManager[App]:
    if arguments.keep is None:
        return scratch_app(embedder=arguments.embedder)
    arguments.keep.mkdir(parents=True, exist_ok=True)
    return App.open(Settings(home=arguments.keep.resolve(), embedder=arguments.embedder))


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    async with opened(arguments) as app:
        if not (await app.graph.counts()).entities.get("ExternalDoc"):
            chance = random.Random(7)
            texts = list(sections(arguments.folders))
            chance.shuffle(texts)
            if not texts:
                sys.exit("there is nothing to read below the folders")
            await fill(app, texts, arguments.documents, chance)
        await make_searchable(app, arguments.embedder, arguments.embedded)
        count = (await app.graph.counts()).entities["ExternalDoc"]
        async with app.database.connection() as connection:
            row = await (await connection.execute(SIZE)).fetchone()
            texts_asked = await (await connection.execute(ASKED)).fetchall()
        stages = await asked(app, [text for (text,) in texts_asked], arguments.queries)
    assert row is not None
    return {
        "documents": count,
        "metadata_megabytes": float(row[0]) / 1e6 / count * 10_000,
        "megabytes": float(row[1]) / 1e6 / count * 10_000,
        "stages": stages,
    }


async def fill(app: App, texts: list[tuple[str, str]], wanted: int, chance: random.Random) -> None:
    started = time.perf_counter()
    for start in range(0, wanted, STATED):
        docs = [
            document(*texts[n % len(texts)], n, n // len(texts), chance)
            for n in range(start, min(start + STATED, wanted))
        ]
        await app.graph.state("benchmark", str(start), nodes=docs)
        print(f"\r{start + len(docs)} stated", end="", file=sys.stderr)
    said = time.perf_counter() - started
    apis: list[Node] = [
        APIReference(
            ecosystem="pypi", package="lib", version=f"{major}.0", namespace="lib",
            function_name=f"call_{number}", version_introduced=f"{number % 20}.0",
            deprecated_in=f"{number % 7 + 15}.0" if number % 3 == 0 else None,
        )
        for major in (1, 9, 10, 12)
        for number in range(1000)
    ]  # fmt: skip
    await app.graph.state("benchmark", "apis", nodes=apis)
    print(f"\nstated in {said:.0f} s", file=sys.stderr)


async def make_searchable(app: App, setting: str, real: int) -> None:
    model = app.embedders.named(setting)
    if model is not None:
        known = await vectors_of(app, model.space, real)
        app.embedders.opened[setting] = Between(model, known, real)
    started = time.perf_counter()
    await app.process_queue()
    print(f"made searchable in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    if model is not None:
        app.embedders.opened[setting] = model


async def vectors_of(app: App, space: EmbeddingSpace, most: int) -> list[Vector]:
    """Those that an earlier run made."""
    async with app.database.connection() as connection:
        kept = embeddings.table(await embeddings.space_id(connection, space))
        columns = f"SELECT embedding::real[] FROM {kept} LIMIT {most}"
        rows = await (await connection.execute(columns)).fetchall()
    return [np.array(vector, dtype=np.float32) for (vector,) in rows]


class Between:
    """The model's vectors of so many texts, and for others vectors between two of those."""

    def __init__(self, model: Embedder, known: list[Vector], real: int) -> None:
        self._model, self._known, self._real = model, known, real
        self.space, self.tokenizer = model.space, model.tokenizer
        self.max_tokens = model.max_tokens

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions)."""
        if len(self._known) < self._real:
            vectors = await self._model.embed(texts)
            self._known += list(vectors)
            return vectors
        made = np.empty((len(texts), self.space.dimensions), np.float32)
        for index, text in enumerate(texts):
            chance = random.Random(text)
            one, other = chance.choice(self._known), chance.choice(self._known)
            share = chance.uniform(0.5, 1)
            made[index] = share * one + (1 - share) * other
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    async def embed_query(self, text: str) -> Vector:
        return await self._model.embed_query(text)


async def asked(app: App, texts: list[str], queries: int) -> dict[str, tuple[float, float]]:
    """Milliseconds of each stage, p50 and p95; the first tenth is not counted."""
    chance = random.Random(11)
    times: dict[str, list[float]] = {}

    async def timed(stage: str, work: Any) -> Any:
        started = time.perf_counter()
        found = await work
        times.setdefault(stage, []).append((time.perf_counter() - started) * 1000)
        return found

    async def one(text: str) -> None:
        query = relevant.query(text, language="", package="", category="")
        hits: list[Hit] = await timed("words, meaning", app._hits(query))
        best = await timed(
            "scores", relevant.best(app.database, hits, limit=5, now=datetime.now(UTC))
        )
        await timed("rows", app.graph.get([scored.id for scored, _ in best]))
        await timed("whole", app.graph.relevant(text))
        await timed(
            "top list", app.graph.query("top_documents", category="guide", language="python")
        )
        await timed(
            "usable APIs",
            app.graph.query("usable_apis", package="lib", version="9.5", name="lib.call_7"),
        )

    warm = queries // 10
    for number in range(queries + warm):
        if number == warm:
            times.clear()
        words = chance.choice(texts).split()
        length = chance.randrange(6, 11)
        start = chance.randrange(max(1, min(len(words), 60) - length))
        await one(" ".join(words[start : start + length]))
    return {
        stage: (statistics.median(found), statistics.quantiles(found, n=20)[-1])
        for stage, found in times.items()
    }


def document(title: str, text: str, number: int, turn: int, chance: random.Random) -> ExternalDoc:
    if turn:
        sentences = text.split(". ")
        random.Random(number).shuffle(sentences)
        text = ". ".join(sentences)
    made = ExternalDoc(
        source=chance.choice(sorted(SOURCES)),
        source_url=f"https://docs.example/{number}",
        title=title,
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        last_updated=datetime.now(UTC) - timedelta(days=chance.randrange(700)),
        language=chance.choice(LANGUAGES),
        category=chance.choice(CATEGORIES),  # type: ignore[arg-type]
    )
    return replace(made, summary=text[:500], content_snippet=text[:1000])


def sections(folders: list[Path]) -> Iterator[tuple[str, str]]:
    """Title and text of all pieces of sections of at least 200 characters."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            try:
                read = read_bytes(path.read_bytes(), name=path.name)
            except Exception:  # noqa: BLE001 - what cannot be read is not measured
                continue
            title, lines = read.title, list[str]()
            for line in [*read.text.splitlines(), "# "]:
                if not line.startswith("#"):
                    lines.append(line)
                    continue
                yield from ((title, text) for text in pieces(lines) if len(text) >= 200)
                title, lines = line.lstrip("# ") or read.title, []


def pieces(lines: list[str]) -> Iterator[str]:
    text = ""
    for word in " ".join(lines).split():
        if len(text) > PIECE and text.endswith("."):
            yield text
            text = ""
        text = f"{text} {word}" if text else word
    yield text


if __name__ == "__main__":
    main()
