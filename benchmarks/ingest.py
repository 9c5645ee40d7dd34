"""Ingest: a folder into a fresh index, against the embedder alone and against reading the bytes.

    uv run benchmarks/ingest.py [FOLDER …] [--files N] [--rounds N] [--database URL] [--json]

Without a folder it takes what every machine has: Python's language reference, and what the modules
of its standard library say of themselves. The documents are copied to a folder of the benchmark's
own, and then, by `App.bulk_index`:

1. indexed from nothing, against the embedder alone: the same texts, in the same batches,
   embedded and thrown away, by an embedder that has seen as little before; some rounds of both,
   in turn, since a machine is not equally fast all the time;
2. indexed again with nothing changed, against SHA-256 over the same files;
3. indexed once more with one sentence of one file changed.
"""

import argparse
import ast
import asyncio
import hashlib
import json
import re
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data import topics
from typing import Any

from engines import corpus
from engines.memory import megabytes, own_peak, processors, server_now
from engines.processor import own_seconds, server_seconds
from scratch import scratch_app
from vademecum.app import App
from vademecum.garbage import look_rarely
from vademecum.inference.embedder import Embedder
from vademecum.ingest.prepare import prepare
from vademecum.ingest.report import IngestReport, Listener
from vademecum.profiles.profile import load_profile
from vademecum.store import documents
from vademecum.store.documents import StoredDocument
from vademecum.worker import BATCH_CHARACTERS, BATCH_JOBS

COLLECTION = "benchmark"
REPEATS = 3
LEAST_SHARE = 0.90
"""The bar: of the bare embedder's tokens a second."""
LEAST_MEGABYTES = 200.0
"""The bar: of unchanged files, a second."""
ENOUGH_BYTES = 20_000_000
"""With less, what any run costs is most of it."""

_NO_DOCUMENTATION = re.compile(r"^(site-packages|test|idlelib|lib2to3)\b|\.(idle_)?tests?\b")
_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SAYING = (ast.Module, *_NAMED)
_SENTENCE = re.compile(r"(?<=[a-z] )[a-z]+(?: [a-z]+){4,10}(?= [a-z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Where the seconds of a run went; reading and working side by side."""

    reading: float
    """Files found, hashed, read and stored."""
    working: float
    """Split, embedded and written; from the start on."""
    finishing: float
    """The vector index built, and what else follows the last document."""
    total: float
    cpu: float
    """Processor seconds of this process and the readers it started."""
    server_cpu: float | None
    """Processor seconds of the server; None where it is on another machine."""
    peak: int
    """Bytes of this process, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """The embedder alone on the same texts."""

    windows: int
    tokens: int
    seconds: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """All files looked at again, and their bytes merely hashed."""

    seconds: float
    hashing: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="documents")
    parser.add_argument("--files", type=int, metavar="N", help="only so many, chosen at random")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of index and embedder")
    parser.add_argument("--database", metavar="URL", help="a server to make a database on")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    arguments = parser.parse_args()
    if arguments.files is not None and arguments.files < 1:
        parser.error("--files must be at least 1")
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    look_rarely()  # as the command does
    with tempfile.TemporaryDirectory(prefix="vade-bench-docs-") as temporary:
        folders = arguments.folders or [write_python(Path(temporary, "python"))]
        if absent := [str(folder) for folder in folders if not folder.is_dir()]:
            parser.error(f"there is no folder {', '.join(absent)}")
        originals = corpus.find(folders)[: arguments.files]
        if not originals:
            parser.error("these folders hold no documents")
        files = corpus.copy(originals, Path(temporary, "corpus"))
        result = asyncio.run(
            run(Path(temporary, "corpus"), files, arguments.rounds, arguments.database)
        )
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        report(result)


def write_python(folder: Path) -> Path:
    """The language reference, a file for each topic, and the library, a file for each module."""
    folder.mkdir(parents=True)
    for name, text in topics.topics.items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")
    library = Path(sysconfig.get_path("stdlib"))
    for file in sorted(library.rglob("*.py")):
        name = ".".join(file.relative_to(library).with_suffix("").parts)
        if not _NO_DOCUMENTATION.search(name):
            text = "\n\n".join(_said(ast.parse(file.read_bytes()), name))
            (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def _said(node: ast.AST, name: str, level: int = 1) -> Iterator[str]:
    """What a module, a class or a function says of itself, and of what is in it."""
    if isinstance(node, _SAYING) and (said := ast.get_docstring(node)):
        yield f"{'#' * level} {name}\n\n{said}"
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, _NAMED) and not inner.name.startswith("_"):
            yield from _said(inner, inner.name, level + 1)


async def run(
    folder: Path, files: Sequence[Path], rounds: int, server: str | None
) -> dict[str, Any]:
    size = sum(file.stat().st_size for file in files)
    indexings: list[Stages] = []
    alone: list[Bare] = []
    for left in reversed(range(rounds)):
        async with scratch_app(server) as app:
            embedder = await _warm_embedder(app)
            indexed, stages = await index(app, folder)
            indexings.append(stages)
            stored = await stored_documents(app)
            texts = batches(stored, embedder)
            # Another one: what this one remembers of the words is no part of embedding them.
            del app.embedders.opened[app.settings.embedder]
            alone.append(await embed_alone(texts, await _warm_embedder(app)))
            if not left:
                unchanged = await index_unchanged(app, folder, files)
                edited = await index_edited(app, folder, stored)
                memory = await server_now(app.database.conninfo)
    stages = sorted(indexings, key=lambda one: one.total)[rounds // 2]
    bare = sorted(alone, key=lambda one: one.seconds)[rounds // 2]
    shares = [one.seconds / its.total for one, its in zip(alone, indexings, strict=True)]
    return {
        "files": len(files),
        "bytes": size,
        "documents": len(stored),
        "chunks": indexed.chunks,
        "windows": bare.windows,
        "tokens": bare.tokens,
        "failed": len(indexed.failed),
        "processors": processors(),
        "indexed": {
            "seconds": stages.total,
            "reading_seconds": stages.reading,
            "working_seconds": stages.working,
            "finishing_seconds": stages.finishing,
            "cpu_seconds": stages.cpu,
            "server_cpu_seconds": stages.server_cpu,
            "tokens_per_second": bare.tokens / stages.total,
            "peak_bytes": indexings[0].peak,
            "server_bytes": memory,
        },
        "embedder": {
            "seconds": bare.seconds,
            "cpu_seconds": bare.cpu,
            "tokens_per_second": bare.tokens / bare.seconds,
        },
        "share_of_embedder": sum(one.seconds for one in alone)
        / sum(one.total for one in indexings),
        "shares": shares,
        "unchanged": {
            "seconds": unchanged.seconds,
            "megabytes_per_second": size / unchanged.seconds / 1e6,
            "hashing_seconds": unchanged.hashing,
            "hashing_megabytes_per_second": size / unchanged.hashing / 1e6,
        },
        "edited": edited,
    }


async def _warm_embedder(app: App) -> Embedder:
    """The embedder, with its model loaded: what a first start costs is not measured here."""
    embedder = app.embedders.named(app.settings.embedder)
    if embedder is None:
        raise SystemExit("there is no embedder to compare with")
    await embedder.embed(["warm"])
    return embedder


async def index(app: App, folder: Path) -> tuple[IngestReport, Stages]:
    """From nothing to searchable."""
    marks = {"read": 0.0, "worked": 0.0}

    def mark(name: str) -> None:
        marks[name] = time.perf_counter()

    listener = Listener(
        read=lambda done, total: mark("read"),
        worked=lambda progress: mark("worked"),
        notice=lambda text: print(text, file=sys.stderr),
    )
    server = await server_seconds(app.database.conninfo)
    cpu, started = own_seconds(), time.perf_counter()
    indexed = await app.ingest.bulk_index(folder, collection=COLLECTION, listener=listener)
    ended, cpu = time.perf_counter(), own_seconds() - cpu
    if server is not None:
        server = (await server_seconds(app.database.conninfo) or 0.0) - server
    for failure in indexed.failed:
        print(f"not indexed: {failure.path}: {failure.error}", file=sys.stderr)
    if not indexed.embedded:
        raise SystemExit("nothing was embedded, so there is nothing to compare")
    return indexed, Stages(
        reading=marks["read"] - started,
        working=marks["worked"] - started,
        finishing=ended - marks["worked"],
        total=ended - started,
        cpu=cpu,
        server_cpu=server,
        peak=own_peak(),
    )


async def stored_documents(app: App) -> list[StoredDocument]:
    """In the order in which the worker took them up."""
    async with app.database.connection() as connection:
        rows = await (
            await connection.execute("SELECT id FROM crawled_documents ORDER BY id")
        ).fetchall()
        return await documents.contents(connection, [row[0] for row in rows])


def batches(stored: Sequence[StoredDocument], embedder: Embedder) -> list[list[str]]:
    """Such as a worker gives the embedder: equal windows of a batch once."""
    found: list[dict[str, None]] = [{}]
    jobs = characters = 0
    for document in stored:
        if jobs == BATCH_JOBS or characters >= BATCH_CHARACTERS:
            found.append({})
            jobs = characters = 0
        jobs, characters = jobs + 1, characters + len(document.text)
        prepared = prepare(
            document,
            profile=load_profile(document.profile),
            tokenizer=embedder.tokenizer,
            max_tokens=embedder.max_tokens,
        )
        found[-1] |= {w.text: None for c in prepared.chunks for w in c.windows}
    return [list(texts) for texts in found]


async def embed_alone(texts: Sequence[Sequence[str]], embedder: Embedder) -> Bare:
    """With nothing else going on."""
    cpu, started = own_seconds(), time.perf_counter()
    for batch in texts:
        await embedder.embed(batch)
    seconds, cpu = time.perf_counter() - started, own_seconds() - cpu
    return Bare(
        windows=sum(map(len, texts)),
        tokens=sum(sum(embedder.tokenizer.counts(batch)) for batch in texts),
        seconds=seconds,
        cpu=cpu,
    )


async def index_unchanged(app: App, folder: Path, files: Sequence[Path]) -> Unchanged:
    """The median of some runs of each, in turn."""
    looking, hashing = [], []
    for _ in range(REPEATS):
        started = time.perf_counter()
        again = await app.ingest.bulk_index(folder, collection=COLLECTION)
        looking.append(time.perf_counter() - started)
        if again.inserted or again.updated or again.deleted or again.chunks:
            raise SystemExit(f"nothing was changed, and yet: {again}")
        started = time.perf_counter()
        for file in files:
            with file.open("rb") as stream:
                hashlib.file_digest(stream, "sha256").hexdigest()
        hashing.append(time.perf_counter() - started)
    return Unchanged(seconds=statistics.median(looking), hashing=statistics.median(hashing))


async def index_edited(
    app: App, folder: Path, stored: Sequence[StoredDocument]
) -> dict[str, Any] | None:
    """What one more sentence costs in the longest document that has a place for it."""
    for document in sorted(stored, key=lambda document: -len(document.text)):
        if edit(folder / document.path, document.text):
            started = time.perf_counter()
            again = await app.ingest.bulk_index(folder, collection=COLLECTION)
            return {
                "path": document.path,
                "chunks": again.chunks,
                "embedded": again.embedded,
                "reused": again.reused,
                "seconds": time.perf_counter() - started,
            }
    return None


def edit(file: Path, text: str) -> bool:
    """Put some words into the middle of a file; False where its prose cannot be told."""
    try:
        raw = file.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return False
    for match in _SENTENCE.finditer(text, len(text) // 2):
        words = match.group()
        if raw.count(words) == 1 == text.count(words):
            edited = raw.replace(words, f"{words} (edited for the benchmark)")
            file.write_bytes(edited.encode())
            return True
    return False


def report(result: dict[str, Any]) -> None:
    indexed, bare, unchanged = result["indexed"], result["embedder"], result["unchanged"]
    print(
        f"{result['files']} files, {result['bytes'] / 1e6:.1f} MB: "
        f"{result['documents']} documents, {result['chunks']} chunks, "
        f"{result['windows']} windows, {result['tokens']} tokens; "
        f"{result['processors']} processors"
    )
    print(
        f"\nindexed      {indexed['seconds']:8.2f} s  {indexed['tokens_per_second']:9.0f} tokens/s"
        f"  ({indexed['cpu_seconds']:.1f} s of processor time{_of_server(indexed)})"
    )
    for name in ("reading", "working", "finishing"):
        print(f"  {name:10} {indexed[f'{name}_seconds']:8.2f} s")
    print(
        f"embedder     {bare['seconds']:8.2f} s  {bare['tokens_per_second']:9.0f} tokens/s"
        f"  ({bare['cpu_seconds']:.1f} s)"
    )
    share = result["share_of_embedder"]
    rounds = ", ".join(f"{one:.2f}" for one in result["shares"])
    print(f"share        {share:.3f} ({_verdict(share, LEAST_SHARE)}; rounds: {rounds})")
    print(
        f"memory       {megabytes(indexed['peak_bytes'])} at most, "
        f"and {megabytes(indexed['server_bytes'])} of the server"
    )
    print(
        f"\nunchanged    {unchanged['seconds']:8.3f} s  "
        f"{unchanged['megabytes_per_second']:.0f} MB/s ({_unchanged_verdict(result)})"
    )
    print(
        f"SHA-256 only {unchanged['hashing_seconds']:8.3f} s  "
        f"{unchanged['hashing_megabytes_per_second']:.0f} MB/s"
    )
    edited = result["edited"]
    if edited is None:
        print("\none edited: no file has prose that could be edited")
        return
    print(
        f"\none edited   {edited['seconds']:8.3f} s  {edited['path']}: {edited['chunks']} chunks, "
        f"{edited['embedded']} embedded, {edited['reused']} reused"
    )


def _of_server(indexed: dict[str, Any]) -> str:
    server = indexed["server_cpu_seconds"]
    return "" if server is None else f", {server:.1f} s of the server"


def _unchanged_verdict(result: dict[str, Any]) -> str:
    if result["bytes"] < ENOUGH_BYTES:
        return "too few files to judge"
    return _verdict(result["unchanged"]["megabytes_per_second"], LEAST_MEGABYTES)


def _verdict(value: float, bar: float) -> str:
    return f"bar {bar:g}: {'held' if value >= bar else 'MISSED'}"


if __name__ == "__main__":
    main()
