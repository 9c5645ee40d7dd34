"""Real documents into our own index, until it has enough chunks, and from there to the others."""

import hashlib
import json
import math
import shutil
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from engines import corpus
from engines.handover import COLLECTION, Handover, Passage
from scratch import CACHE, scratch_app
from vademecum.app import App
from vademecum.ingest.report import Listener, Progress
from vademecum.settings import Settings
from vademecum.store import embeddings
from vademecum.store.db import identifier
from vademecum.store.embedded import EmbeddedDatabase
from vademecum.store.migrate import migrations

FIRST_FILES = 16
"""Indexed first, to see how many chunks a file has."""
NEARLY = 0.9
"""So much of what is lacking is indexed at once, since files differ."""
ROWS = 5000
"""Read together."""

HANDED_OVER = """
SELECT k.id, d.path, d.title, k.content, e.embedding
  FROM document_chunks k
  JOIN crawled_documents d ON d.id = k.document_id
  JOIN {table} e ON e.chunk_id = k.id AND e.window_index = 0
 ORDER BY d.path, k.chunk_index
"""


def signature(folders: Sequence[Path], chunks: int) -> str:
    """Equal where a kept index can be used again."""
    schema = hashlib.sha256("".join(one.text for one in migrations()).encode()).hexdigest()
    return json.dumps([chunks, schema, *sorted(map(str, folders))])


async def forget_other(place: Path, wanted: str) -> None:
    """Clear a folder that keeps something else than what is wanted now."""
    note = place / "signature"
    if note.is_file() and note.read_text() == wanted:
        return
    if note.is_file():
        say(f"what {place} keeps is of another schema, size or folder: starting over")
        await EmbeddedDatabase(place / "home").stop()
        for name in ("home", "corpus", "handover"):
            shutil.rmtree(place / name, ignore_errors=True)
    elif place.is_dir() and any(place.iterdir()):
        raise SystemExit(f"{place} holds something else; name another folder to keep indexes in")
    place.mkdir(parents=True, exist_ok=True)
    note.write_text(wanted)


@asynccontextmanager
async def opened(place: Path | None, server: str | None) -> AsyncIterator[App]:
    """An App on the database that is kept in a place, or else on one that is gone afterwards."""
    if place is None:
        async with scratch_app(server) as app:
            yield app
        return
    home = place / "home"
    home.mkdir(exist_ok=True)
    models = CACHE / "models"
    models.mkdir(parents=True, exist_ok=True)
    if not (home / "models").exists():
        (home / "models").symlink_to(models)
    embedded = EmbeddedDatabase(home)
    try:
        url = await embedded.start()
        async with App.open(Settings(home=home, database_url=url)) as app:
            yield app
    finally:
        await embedded.stop()


async def prepare(app: App, folders: Sequence[Path], chunks: int, place: Path) -> Handover:
    """Index what is lacking, and write it for the engines."""
    handover = Handover(place / "handover")
    about = handover.about
    present = await count(app)
    if not about or present != about["chunks"]:
        started = time.perf_counter()
        files = await index_until(app, folders, chunks, place / "corpus")
        seconds = time.perf_counter() - started
        shutil.rmtree(handover.folder, ignore_errors=True)
        handover.folder.mkdir(parents=True)
        await hand_over(app, handover)
        about = {
            "chunks": await count(app),
            "windows": await count(app, await _vectors(app)),
            "documents": await count(app, "crawled_documents"),
            "bytes": sum(file.stat().st_size for file in files),
            # Of a run that went on where one before was stopped, it says nothing.
            "seconds": seconds if present == 0 else None,
        }
    about |= {
        "home": str(app.settings.home),
        "database": app.database.conninfo,
        "embedder": app.settings.embedder,
    }
    handover.write_about(about)
    return handover


async def index_until(
    app: App, folders: Sequence[Path], chunks: int, directory: Path
) -> list[Path]:
    """Take files until there are as many chunks as wished; the files."""
    originals = corpus.find(folders)
    # What a run before this one has copied, before it was stopped, comes first.
    files = corpus.copied(originals, directory)
    while True:
        if files:
            await _index(app, directory, chunks)
        present = await count(app)
        left = originals[len(files) :]
        if present >= chunks or not left:
            break
        lacking = (chunks - present) * len(files) * NEARLY / present if present else FIRST_FILES
        files += corpus.copy(left[: math.ceil(lacking)], directory)
    if present < chunks:
        say(f"these folders make {present} chunks, fewer than {chunks}")
    if not present:
        raise SystemExit("nothing was indexed")
    return files


async def _index(app: App, directory: Path, chunks: int) -> None:
    report = await app.ingest.bulk_index(
        directory, collection=COLLECTION, listener=_listener(chunks)
    )
    for failure in report.failed:
        say(f"not indexed: {failure.path}: {failure.error}")


async def count(app: App, table: str = "document_chunks") -> int:
    async with app.database.connection() as connection:
        cursor = await connection.execute(identifier("SELECT count(*) FROM {table}", table=table))
        row = await cursor.fetchone()
        assert row is not None
        return int(row[0])


async def hand_over(app: App, handover: Handover) -> None:
    """Every chunk with its text and the vector of its first window, by path."""
    passages, vectors = [], []
    statement = identifier(HANDED_OVER, table=await _vectors(app))
    async with app.database.transaction() as connection, connection.cursor("chunks") as cursor:
        cursor.itersize = ROWS
        await cursor.execute(statement)
        async for identity, path, title, text, vector in cursor:
            passages.append(Passage(id=str(identity), path=path, title=title, text=text))
            vectors.append(vector.to_numpy().astype(np.float32))
    handover.write(passages, np.stack(vectors))


async def _vectors(app: App) -> str:
    """The table of them."""
    collection = await app.collection(COLLECTION)
    if collection.space_id is None:
        raise SystemExit("nothing was embedded, so there is nothing to compare")
    return embeddings.table(collection.space_id)


def _listener(chunks: int) -> Listener:
    """Tells of the work now and then."""
    started = told = time.monotonic()

    def worked(progress: Progress) -> None:
        nonlocal told
        if time.monotonic() - told > 10:
            told = time.monotonic()
            say(
                f"indexing for {chunks} chunks: {progress.chunks} in {told - started:.0f} s, "
                f"{progress.left} documents of this part left"
            )

    return Listener(worked=worked, notice=say)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
