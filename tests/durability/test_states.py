"""Whatever is done to a folder and to the work on it: in the end all is as in the files, and at
no moment does a reader see anything that is half done."""

import asyncio
import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from psycopg import AsyncConnection, sql
from whole import broken, chunks_of, open_jobs, rows

from fakes import FakeEmbedder
from vademecum.app import App
from vademecum.errors import RunCancelled, RunNotOpen
from vademecum.inference.words import WordTokenizer
from vademecum.settings import Settings
from vademecum.store.runs import RunMode
from vademecum.types import Query

SECTIONS = st.lists(
    st.sampled_from([f"{word} is what this says and says again" for word in "abcdefgh"]),
    min_size=1,
    max_size=5,
)
MODES: st.SearchStrategy[RunMode] = st.sampled_from(["incremental", "full", "recreate"])
NAMES = st.sampled_from(["one.md", "two.md", "sub/three.md", "sub/four.md", "sub/deep/five.md"])


class Readers:
    """Read all the time while something is done, and remember what they saw that was wrong."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.seen: list[dict[str, list[str]]] = []
        self.looks = 0

    async def look(self, connection: AsyncConnection[Any]) -> None:
        while True:
            if wrong := await broken(connection):
                self.seen.append(wrong)
            self.looks += 1
            await asyncio.sleep(0)

    async def search(self) -> None:
        query = Query(text="what a says again", collection="docs", limit=100)
        while True:
            with suppress(Exception):  # there may be no collection yet
                by_document: dict[int, set[str]] = {}
                hits = (await self.app.search(query)).results
                async with self.app.database.connection() as connection:
                    found = await rows(connection, "SELECT id, source_hash FROM document_chunks")
                hashes = dict(found)
                for hit in hits:
                    if hit.chunk_id in hashes:
                        by_document.setdefault(hit.document_id, set()).add(hashes[hit.chunk_id])
                if mixed := [path for path, seen in by_document.items() if len(seen) > 1]:
                    self.seen.append({"hits of a mix": [str(path) for path in mixed]})
            await asyncio.sleep(0)


class Life(RuleBasedStateMachine):
    """One folder, one database, and what may happen to them."""

    server: str
    template: str
    home: Path

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.root = Path(tempfile.mkdtemp(prefix="vade-states-"))
        self.folder = self.root / "docs"
        self.folder.mkdir()
        self.name = f"states_{os.urandom(6).hex()}"
        self.version = 0
        self.admin = psycopg.connect(self.server, autocommit=True)
        self.admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(self.name), sql.Identifier(self.template)
            )
        )
        self.embedder = FakeEmbedder()
        self.runner.run(self._open())

    async def _open(self) -> None:
        url = psycopg.conninfo.make_conninfo(self.server, dbname=self.name)
        opened = App.open(Settings(home=self.home, database_url=url, embedder="fake:words"))
        self.opened = opened
        self.app = await opened.__aenter__()
        self.app.embedders.opened["fake:words"] = self.embedder
        self.connection = await AsyncConnection.connect(url, autocommit=True)
        self.readers = Readers(self.app)

    # --- what happens to files --------------------------------------------------------------

    @rule(name=NAMES, sections=SECTIONS)
    def write(self, name: str, sections: list[str]) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"# {n}\n\n{text}\n\n" for n, text in enumerate(sections)))

    @precondition(lambda self: self.files())
    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        path = self.folder / data.draw(st.sampled_from(self.files()))
        self.version += 1
        path.write_text(f"{path.read_text()}\n# More\n\nThis is version {self.version}.\n")

    @precondition(lambda self: self.files())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        (self.folder / data.draw(st.sampled_from(self.files()))).unlink()

    @precondition(lambda self: self.files())
    @rule(data=st.data(), to=NAMES)
    def rename(self, data: st.DataObject, to: str) -> None:
        source = self.folder / data.draw(st.sampled_from(self.files()))
        (self.folder / to).parent.mkdir(parents=True, exist_ok=True)
        source.rename(self.folder / to)

    def files(self) -> list[str]:
        found = (path for path in self.folder.rglob("*.md") if path.is_file())
        return sorted(str(path.relative_to(self.folder)) for path in found)

    # --- what happens to the work on them -----------------------------------------------------

    @rule(mode=MODES, wait=st.booleans())
    def run(self, mode: RunMode, wait: bool) -> None:
        self.do(self.compared(mode, wait))

    async def compared(self, mode: RunMode, wait: bool) -> None:
        """A run finds as new, modified and deleted what is so."""
        stored = dict(
            await rows(self.connection, "SELECT file_path, source_hash FROM crawled_documents")
        )
        there = {
            str((self.folder / name).resolve()): hashlib.sha256(
                (self.folder / name).read_bytes()
            ).hexdigest()
            for name in self.files()
        }
        report = await self.app.ingest.bulk_index(self.folder, mode=mode, wait=wait)
        modified = {path for path in there.keys() & stored.keys() if there[path] != stored[path]}
        if mode != "incremental":
            modified = there.keys() & stored.keys()
        assert (report.inserted, report.updated, report.deleted, report.failed) == (
            len(there.keys() - stored.keys()),
            len(modified),
            len(stored.keys() - there.keys()),
            [],
        )

    @rule(mode=MODES)
    def queue_run(self, mode: RunMode) -> None:
        self.do(self.app.ingest.start_run("docs", folder=self.folder, mode=mode))

    @rule(mode=MODES, steps=st.integers(0, 60))
    def run_and_cancel(self, mode: RunMode, steps: int) -> None:
        self.do(self.cancelled(mode, steps))

    async def cancelled(self, mode: RunMode, steps: int) -> None:
        task = asyncio.ensure_future(self.app.ingest.bulk_index(self.folder, mode=mode))
        for _ in range(steps):
            await asyncio.sleep(0.0005)
        for run in await self.app.runs.listed(limit=1):
            with suppress(RunNotOpen):
                await self.app.runs.cancel(run.id)
        with suppress(RunCancelled):
            await task

    @rule(which=st.integers(0, 5))
    def resume(self, which: int) -> None:
        # How many there are depends on the moment that others were stopped: nothing to draw from.
        found = self.runner.run(self.app.runs.listed())
        if left := [run.id for run in found if run.state in ("cancelled", "failed")]:
            self.do(self.app.ingest.resume_run(left[which % len(left)]))

    @rule(limit=st.integers(1, 3))
    def drain_some(self, limit: int) -> None:
        self.do(self.app.process_queue(limit=limit))

    @rule(mode=MODES, steps=st.integers(0, 60))
    def run_and_stop(self, mode: RunMode, steps: int) -> None:
        self.do(self.stopped(self.app.ingest.bulk_index(self.folder, mode=mode), steps))

    @rule(steps=st.integers(0, 40))
    def drain_and_stop(self, steps: int) -> None:
        self.do(self.stopped(self.app.process_queue(), steps))

    @rule()
    def run_twice_at_once(self) -> None:
        self.do(self.both())

    async def both(self) -> None:
        await asyncio.gather(
            self.app.ingest.bulk_index(self.folder),
            self.app.ingest.bulk_index(self.folder, force=True),
        )

    async def stopped(self, work: Any, steps: int) -> None:
        """Do it for so many turns of the event loop, then cancel it."""
        task = asyncio.ensure_future(work)
        for _ in range(steps):
            await asyncio.sleep(0.0005)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def do(self, work: Any) -> None:
        async def watched() -> None:
            reading = [
                asyncio.create_task(self.readers.look(self.connection)),
                asyncio.create_task(self.readers.search()),
            ]
            try:
                # Longer than a lease: what a stopped worker had in hand may wait for its end.
                async with asyncio.timeout(150):
                    await work
            finally:
                for task in reading:
                    task.cancel()
                await asyncio.wait(reading)

        self.runner.run(watched())
        assert self.readers.seen == []

    # --- what must be so in the end -----------------------------------------------------------

    def teardown(self) -> None:
        try:
            self.do(self.app.process_queue())
            self.do(self.app.ingest.bulk_index(self.folder))
            self.runner.run(self.check())
        finally:
            self.runner.run(self._close())
            self.runner.close()
            self.admin.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(self.name))
            )
            self.admin.close()
            shutil.rmtree(self.root)

    async def check(self) -> None:
        assert await broken(self.connection) == {}
        assert await open_jobs(self.connection) == []
        assert {run.state for run in await self.app.runs.listed()} <= {
            "completed",
            "cancelled",
            "failed",
        }
        # Every chunk that came or went was counted by a run, through every stop and resumption.
        assert await rows(
            self.connection,
            "SELECT coalesce(sum(chunks_created - chunks_deleted), 0)"
            " - (SELECT count(*) FROM document_chunks) FROM ingestion_runs",
        ) == [(0,)]
        stored: dict[str, list[str]] = {}
        for path, text in await rows(
            self.connection,
            "SELECT d.path, k.content FROM crawled_documents d"
            " LEFT JOIN document_chunks k ON k.document_id = d.id ORDER BY d.path, chunk_index",
        ):
            stored.setdefault(path, []).append(text)
        assert stored == chunks_of(self.folder, "docs", WordTokenizer())
        assert await rows(
            self.connection,
            "SELECT count(*) FROM crawled_documents WHERE needs_processing OR recipe IS NULL",
        ) == [(0,)]
        if stored:
            [(space,)] = await rows(self.connection, "SELECT space_id FROM collections")
            assert space is not None
            vectors = await rows(
                self.connection,
                f"SELECT count(DISTINCT chunk_id) FROM embeddings_{space}",
            )
            assert vectors == [(sum(len(texts) for texts in stored.values()),)]

    async def _close(self) -> None:
        await self.connection.close()
        await self.opened.__aexit__(None, None, None)


def test_any_sequence_of_edits_and_runs(server: str, template: str, home: Path) -> None:
    Life.server, Life.template, Life.home = server, template, home
    state = Life.TestCase
    state.settings = settings(
        max_examples=int(os.environ.get("STATES", "20")),
        stateful_step_count=14,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    state("runTest").runTest()
