"""What Vademecum can do, in one place: every surface calls these methods and no others.

This is the only file that chooses backends.
"""

import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from vademecum.answer import extractive
from vademecum.answer.question import ask
from vademecum.errors import BadInput, CollectionRequired, ModelUnavailable, UnknownCollection
from vademecum.evaluate import pipeline as evaluating
from vademecum.evaluate.gold import Question
from vademecum.evaluate.pipeline import MODES, Evaluation
from vademecum.inference.embedder import Embedder
from vademecum.inference.open import open_embedder
from vademecum.ingest import pipeline, process
from vademecum.ingest.pipeline import Failure, FolderReport
from vademecum.profiles.profile import DEFAULT, load_profile
from vademecum.search import pipeline as searching
from vademecum.settings import Settings
from vademecum.store import collections, documents, jobs
from vademecum.store.collections import Collection, CollectionOverview
from vademecum.store.db import Database
from vademecum.store.jobs import FailedJob, OpenJobs
from vademecum.types import Change, Cited, Hit, Mode, Query
from vademecum.worker import Progress, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Whom to tell how long work is going."""

    read: Callable[[int, int], None] = lambda done, total: None
    """Files looked at, of how many."""
    worked: Callable[[Progress], None] = lambda progress: None
    notice: Callable[[str], None] = lambda text: None
    """Something the user should know, that is no failure."""


QUIET = Listener()


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What an ingest stored and made searchable, and what it could not."""

    collection: str
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    failed: list[Failure]
    chunks: int
    """Chunks of the documents made searchable now: embedded and reused."""
    embedded: int
    reused: int
    pending: int
    """Documents stored and not yet searchable."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """What storing one file or page did."""

    collection: str
    path: str
    action: Change
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    query: str
    mode: str
    took_ms: float
    results: list[Hit]
    notices: list[str]
    """What the result lacks, such as a retriever that could not take part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is stored, what is still to do, and what failed."""

    database: str
    """The connection string without its password."""
    collections: list[CollectionOverview]
    failed: list[Failure]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerResult:
    question: str
    found: bool
    answer: str
    sources: tuple[Cited, ...]
    took_ms: float
    notices: list[str]
    """What the answer lacks, such as a retriever that could not take part."""


class App:
    """One open database and the models that its collections need."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self.settings = settings
        self.database = database
        self._embedders: dict[str, Embedder | None] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, *, notice: Callable[[str], None] = lambda text: None
    ) -> AsyncIterator["App"]:
        """Connect to the database of the settings, starting the embedded one where it is meant.

        Raises DatabaseUnavailable.
        """
        if settings.database_url is not None:
            database = Database(settings.database_url)
        else:
            from vademecum.store.embedded import EmbeddedDatabase

            embedded = EmbeddedDatabase(settings.home, settings.idle_minutes, progress=notice)
            database = Database(await embedded.start(), revive=embedded.start)
        async with database:
            yield cls(settings, database)

    # --- ingest -----------------------------------------------------------------------------

    async def bulk_index(
        self,
        folder: Path,
        *,
        collection: str | None = None,
        profile: str | None = None,
        force: bool = False,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> IngestReport:
        """Bring a collection up to date with a folder; its name is the folder's if none is given.

        Raises BadInput, UnknownProfile, UnreadableSource.
        """
        started = time.perf_counter()
        if not os.path.exists(folder):
            raise BadInput(f"there is no folder {folder}")
        if not os.path.isdir(folder):
            raise BadInput(f"{folder} is not a folder", hint="Use `vade store --file` for a file.")
        name = collection or folder.resolve().name
        target = await self.database.retry(lambda: self._collection_for(name, profile))
        report = await pipeline.store_folder(
            self.database,
            target,
            folder,
            recipe=self._recipe(target, listener),
            force=force,
            max_bytes=self.settings.max_file_bytes,
            progress=listener.read,
        )
        return await self._ingested(target, report, started, wait=wait, listener=listener)

    async def store(
        self,
        *,
        collection: str,
        url: str | None = None,
        file: Path | None = None,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> StoreReport:
        """Store one page or one file. Raises BadInput, FetchRefused, UnreadableSource."""
        if (url is None) == (file is None):
            raise BadInput("name either a url or a file")
        target = await self.database.retry(lambda: self._collection_for(collection, None))
        limit = self.settings.max_file_bytes
        if file is not None:
            change, path = await pipeline.store_file(self.database, target, file, max_bytes=limit)
        else:
            change, path = await pipeline.store_url(
                self.database, target, str(url), max_bytes=limit
            )
        if wait:
            await self._drain(target, listener)
        left = await self.database.retry(lambda: self.open_jobs(target.name))
        return StoreReport(
            collection=target.name, path=path, action=change, pending=left.pending + left.processing
        )

    async def rebuild(
        self, collection: str, *, force: bool = False, listener: Listener = QUIET
    ) -> IngestReport:
        """Make the chunks of stored documents again: those of another recipe, or with `force` all.

        Searches are served from the old ones until the new ones replace them.
        """
        started = time.perf_counter()
        target = await self.collection(collection)
        async with self.database.transaction() as connection:
            stale = await documents.to_reprocess(
                connection, target.id, recipe=self._recipe(target, listener), force=force
            )
            if force:
                await documents.forget_recipe(connection, stale)
            await jobs.enqueue(connection, stale)
        report = FolderReport(updated=len(stale))
        return await self._ingested(target, report, started, wait=True, listener=listener)

    async def process_queue(
        self, *, limit: int | None = None, listener: Listener = QUIET
    ) -> tuple[Progress, OpenJobs]:
        """Work off the queue of all collections; what was done and what is left."""
        worker = self._worker(None, listener)
        progress = await worker.drain(limit=limit)
        return progress, await self.database.retry(self.open_jobs)

    async def _ingested(
        self,
        target: Collection,
        report: FolderReport,
        started: float,
        *,
        wait: bool,
        listener: Listener,
    ) -> IngestReport:
        progress = await self._drain(target, listener) if wait else Progress()
        left, broken = await self.database.retry(lambda: self._left(target))
        return IngestReport(
            collection=target.name,
            inserted=report.inserted,
            updated=report.updated,
            unchanged=report.unchanged,
            deleted=report.deleted,
            failed=report.failed + [Failure(path=job.path, error=job.error) for job in broken],
            chunks=progress.chunks,
            embedded=progress.embedded,
            reused=progress.reused,
            pending=left.pending + left.processing,
            seconds=time.perf_counter() - started,
        )

    async def _left(self, target: Collection) -> tuple[OpenJobs, list[FailedJob]]:
        async with self.database.connection() as connection:
            return (
                await jobs.open_jobs(connection, target.id),
                await jobs.failed(connection, target.id),
            )

    async def _drain(self, target: Collection, listener: Listener) -> Progress:
        return await self._worker(target, listener).drain()

    def _worker(self, target: Collection | None, listener: Listener) -> Worker:
        return Worker(
            self.database,
            self.embedder,
            collection=target.id if target else None,
            notice=listener.notice,
            progress=listener.worked,
        )

    # --- search -----------------------------------------------------------------------------

    async def search(self, query: Query) -> SearchResult:
        """Raises BadInput, UnknownCollection; ModelUnavailable in mode dense."""
        started = time.perf_counter()
        searching.check(query)
        target = await self.collection(query.collection)
        notices: list[str] = []
        embedder = None
        if query.mode != "lexical":
            try:
                embedder = self._searchable_embedder(target)
            except ModelUnavailable as error:
                if query.mode == "dense":
                    raise
                notices.append(f"{error}: lexical search only")
            if embedder is None and query.mode == "dense":
                raise ModelUnavailable(
                    f"{query.collection} has no vectors",
                    hint="Search it with `--mode lexical`, or index it with an embedder.",
                )
        hits = await searching.search(self.database, target, embedder, query)
        return SearchResult(
            query=query.text,
            mode=query.mode if embedder or query.mode == "lexical" else "lexical",
            took_ms=(time.perf_counter() - started) * 1000,
            results=hits,
            notices=notices,
        )

    async def answer(self, question: str, *, collection: str) -> AnswerResult:
        """Answer from a collection, in its own words. Raises BadInput, UnknownCollection."""
        started = time.perf_counter()
        found = await self.search(
            Query(text=question, collection=collection, limit=extractive.MAX_HITS)
        )
        target = await self.collection(collection)
        async with self.database.connection() as connection:
            asked = await ask(connection, target.id, question)
        # Without vectors in the search there is no model to compare sentences by, either.
        embedder = self._searchable_embedder(target) if found.mode == "hybrid" else None
        answer = await extractive.answer(asked, found.results, embedder)
        return AnswerResult(
            question=question,
            found=answer.found,
            answer=answer.answer,
            sources=answer.sources,
            took_ms=(time.perf_counter() - started) * 1000,
            notices=found.notices,
        )

    async def evaluate(
        self,
        questions: Sequence[Question],
        *,
        collection: str,
        mode: Mode | None = None,
        k: int = 8,
        asked: Callable[[], None] = lambda: None,
    ) -> Evaluation:
        """What each mode, or one, is worth on questions with known answers.

        Without a mode, those that cannot be measured are left out with a notice. Raises BadInput,
        UnknownCollection, and ModelUnavailable where `mode` needs an embedder that is not there.
        """
        searching.check(Query(text="any", collection=collection, limit=k))
        target = await self.collection(collection)
        notices: list[str] = []
        try:
            if not self._searchable_embedder(target):
                raise ModelUnavailable(
                    f"{collection} has no embeddings",
                    hint="Search it with `--mode lexical`, or index it with an embedder.",
                )
        except ModelUnavailable as error:
            if mode not in (None, "lexical"):
                raise
            notices = [] if mode else [f"{error}: only lexical search was measured"]
            mode = "lexical"

        async def search(query: Query) -> list[Hit]:
            return (await self.search(query)).results

        return await evaluating.evaluate(
            questions,
            search,
            collection=collection,
            modes=(mode,) if mode else MODES,
            k=k,
            asked=asked,
            notices=notices,
        )

    # --- state ------------------------------------------------------------------------------

    async def collection(self, name: str) -> Collection:
        """Raises UnknownCollection."""
        async with self.database.connection() as connection:
            return await collections.find(connection, name)

    async def collection_name(self, name: str | None) -> str:
        """The name given, else the setting's, else that of the only collection there is.

        Raises CollectionRequired where that is not clear.
        """
        if name or self.settings.collection:
            return str(name or self.settings.collection)
        async with self.database.connection() as connection:
            known = await collections.names(connection)
        if len(known) != 1:
            raise CollectionRequired(known)
        return known[0]

    async def list_collections(self, name: str | None = None) -> list[CollectionOverview]:
        """What the collections hold, or one of them. Raises UnknownCollection."""
        async with self.database.connection() as connection:
            found = await collections.overview(connection, name)
            if name is not None and not found:
                raise UnknownCollection(name, await collections.names(connection))
            return found

    async def open_jobs(self, name: str | None = None) -> OpenJobs:
        """What is left to do in a collection, or in all."""
        target = await self.collection(name) if name is not None else None
        async with self.database.connection() as connection:
            return await jobs.open_jobs(connection, target.id if target else None)

    async def status(self, name: str | None = None) -> Status:
        """Of one collection, or of all. Raises UnknownCollection."""
        found = await self.list_collections(name)
        target = await self.collection(name) if name is not None else None
        async with self.database.connection() as connection:
            failed = await jobs.failed(connection, target.id if target else None)
        return Status(
            database=self.database.shown,
            collections=found,
            failed=[Failure(path=job.path, error=job.error) for job in failed],
        )

    async def delete_collection(self, name: str) -> None:
        target = await self.collection(name)
        async with self.database.connection() as connection:
            await collections.delete(connection, target.id)

    # --- backends ---------------------------------------------------------------------------

    async def _collection_for(self, name: str, profile: str | None) -> Collection:
        """The collection to write to, made where it is new."""
        if profile is not None:
            load_profile(profile)
        async with self.database.connection() as connection:
            target = await collections.find_or_create(
                connection,
                name,
                profile=profile or DEFAULT,
                embedder=self.settings.embedder,
            )
            if profile is not None and profile != target.profile:
                await collections.use_profile(connection, target.id, profile)
                target = await collections.find(connection, name)
        return target

    def _recipe(self, target: Collection, listener: Listener) -> str:
        return process.recipe(
            load_profile(target.profile), self._worker(None, listener).embedder(target.embedder)
        )

    def embedder(self, setting: str) -> Embedder | None:
        if setting not in self._embedders:
            self._embedders[setting] = open_embedder(
                setting, home=self.settings.home, threads=self.settings.threads
            )
        return self._embedders[setting]

    def _searchable_embedder(self, target: Collection) -> Embedder | None:
        """The embedder of the collection's vectors, loaded. Raises ModelUnavailable."""
        if target.space_id is None:
            return None
        embedder = self.embedder(target.embedder)
        if embedder is not None:
            embedder.tokenizer.counts([""])
            if embedder.space.key != target.space_key:
                raise ModelUnavailable(
                    f"the vectors of {target.name!r} were made by another model",
                    hint=f"Run `vade rebuild -c {target.name}` to make them anew.",
                )
        return embedder
