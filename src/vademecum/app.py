"""What Vademecum can do, in one place: every surface calls these methods and no others.

This is the only file that chooses backends.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from vademecum.access import Access, Scope, may_spend, require, require_all, require_user, sees_all
from vademecum.answer import extractive, generated
from vademecum.answer.question import ask
from vademecum.cache.cache import Cache
from vademecum.context.facade import ContextCalls
from vademecum.context.stale import StaleCalls
from vademecum.duty import jobs_due, on_duty
from vademecum.errors import (
    BadInput,
    BadSetting,
    CollectionRequired,
    LanguageModelFailed,
    ModelUnavailable,
    UnknownCollection,
    UnreadableSource,
    VadeError,
)
from vademecum.evaluate import pipeline as evaluating
from vademecum.evaluate import propose as proposing
from vademecum.evaluate.capture import Captured, SearchLog
from vademecum.evaluate.capture import questions as captured_questions
from vademecum.evaluate.gold import Question
from vademecum.evaluate.move import Judges, Move, Moves
from vademecum.evaluate.pipeline import MODES, RERANKED, Evaluation
from vademecum.evaluate.propose import Proposal
from vademecum.graph.content import Content
from vademecum.graph.facade import Graph
from vademecum.graph.fetching import Sources
from vademecum.graph.link import CodeLinks
from vademecum.graph.writing import EXTERNAL
from vademecum.inference.embedder import Embedder
from vademecum.inference.open import open_embedder
from vademecum.inference.words import WordTokenizer
from vademecum.ingest import knowledge_base, pipeline, process
from vademecum.ingest.cost import check_cost
from vademecum.ingest.knowledge_base import KnowledgeBases
from vademecum.ingest.pipeline import Failure, FolderReport
from vademecum.ingest.runs import Held, Runs
from vademecum.memory.facade import MemoryCalls
from vademecum.mirror.facade import MirrorCalls
from vademecum.models import Models
from vademecum.notes.facade import MAX_TITLE, Notes
from vademecum.profiles.profile import DEFAULT, load_profile, read_profile
from vademecum.projections.neo4j import Neo4j
from vademecum.projections.project import Projection
from vademecum.search import pipeline as searching
from vademecum.search.book import BookQuery, BookResponse, search_book
from vademecum.search.rerank import SHORTLIST, STANDS, rerank
from vademecum.search.shelf import Shelf
from vademecum.settings import Settings
from vademecum.store import (
    chunks,
    collections,
    documents,
    embeddings,
    jobs,
    keys,
    ledger,
    searches,
)
from vademecum.store.collections import Collection, CollectionOverview
from vademecum.store.db import Database
from vademecum.store.jobs import FailedJob, OpenJobs
from vademecum.store.keys import Key
from vademecum.store.ledger import Update
from vademecum.store.rests_on import Passage
from vademecum.store.runs import Run, RunMode
from vademecum.telemetry.spans import span, tracing
from vademecum.types import Change, ChunkId, Cited, CollectionId, Dropped, Hit, Query
from vademecum.worker import Progress, Worker

if TYPE_CHECKING:
    from vademecum.inference.ray import RayCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Whom to tell how long work is going."""

    read: Callable[[int, int], None] = lambda done, total: None
    """Files looked at, of how many."""
    worked: Callable[[Progress], None] = lambda progress: None
    notice: Callable[[str], None] = lambda text: None
    """Something the user should know, that is no failure."""


QUIET = Listener()

SEARCH_SECONDS = 1.0
"""A search that began before a collection moved to other vectors is over after so long."""


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
    run: int
    """The row that it is kept in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """What storing one file or page did."""

    collection: str
    path: str
    action: Change
    pending: int
    error: str | None = None
    """Why it is not searchable and will not be, such as a violation of the profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    query: str
    mode: str
    took_ms: float
    results: list[Hit]
    notices: list[str]
    """What the result lacks, such as a retriever that could not take part."""
    reranked_by: str | None = None
    """Who put the best hits in order; None where the fused order stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is stored, what is still to do, and what failed."""

    database: str
    """The connection string without its password; empty for who may not know all collections."""
    collections: list[CollectionOverview]
    failed: list[Failure]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerResult:
    question: str
    found: bool
    answer: str
    sources: tuple[Cited, ...]
    by: str
    """`extractive`, or the language model that wrote it."""
    dropped: tuple[Dropped, ...]
    """What the language model wrote that the sources do not support."""
    took_ms: float
    notices: list[str]
    """What the answer lacks, such as a retriever that could not take part."""
    kept: UUID | None = None
    """The note in which it is kept, where that was asked for and there is an answer."""


class App:
    """One open database and the models that its collections need."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self.settings = settings
        self.database = database
        self.knowledge_bases = KnowledgeBases(database)
        self.models = Models(database, settings)
        self.runs = Runs(database)
        self.shelf = Shelf(database)
        self._embedders: dict[str, Embedder | None] = {}
        self._cluster: RayCluster | None = None
        self.cache = Cache(
            database,
            home=settings.home,
            max_bytes=settings.max_file_bytes,
            collection_for=lambda name: self._collection_for(name, "web"),
            searchable_embedder=self._searchable_embedder,
        )
        self._neo4j = _neo4j(settings)
        self.graph = Graph(
            database,
            collection_for=self._collection_for,
            search=self._documents_for_graph,
            content=Content(settings.home / "external_knowledge"),
            fetch=self.cache.read_now,
            again=lambda document: self.sources.again(document),
            clean=lambda: self.sources.clean(),
            others={} if self._neo4j is None else {"neo4j": self._neo4j.ask},
        )
        self.moves = Moves(database, collection=self.collection, embedder=self.embedder)
        self.sources = Sources(
            database,
            web=self.cache.outside,
            home=settings.home,
            content=self.graph.content,
            external=self.graph.external,
            embed=self._embed_external,
        )
        self.mirrors = MirrorCalls(
            database,
            settings,
            collection=self.collection,
            embedder=self._searchable_embedder,
        )
        self.code = CodeLinks(
            self.graph,
            home=settings.home / "graph" / "libraries",
            changelogs=self.sources.changelogs,
        )
        self.search_log = SearchLog(database, days=settings.search_log_days)
        self.memory = MemoryCalls(
            database,
            key=settings.memory_key,
            allowed=tuple(word for word in settings.memory_allowed.split(",") if word.strip()),
            embedder=lambda: self.embedder(settings.embedder),
            model=lambda: self.models.meant_for("memory"),
        )

        self.notes = Notes(
            database,
            collection_for=self._collection_for,
            search=self._documents_for_graph,
            embed=self._make_searchable,
        )
        self.context = ContextCalls(
            notes=self.notes, memory=self.memory, graph=self.graph, sources=self.sources
        )
        self.stale = StaleCalls(database, ask_again=self._ask_again, make_again=self._make_again)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, *, notice: Callable[[str], None] = lambda text: None
    ) -> AsyncIterator["App"]:
        """Connect to the database of the settings, starting the embedded one where it is meant.

        Raises DatabaseUnavailable.
        """
        if settings.database_url is not None:
            database = Database(settings.database_url, notice=notice)
        else:
            from vademecum.store.embedded import EmbeddedDatabase

            embedded = EmbeddedDatabase(settings.home, settings.idle_minutes, progress=notice)
            database = Database(await embedded.start(), revive=embedded.start)
        with tracing(settings.traces_url, experiment=settings.traces_experiment):
            async with database:
                app = cls(settings, database)
                try:
                    yield app
                finally:
                    await app.cache.close()
                    await app.mirrors.close()
                    if app._neo4j is not None:
                        await app._neo4j.close()

    # --- ingest -----------------------------------------------------------------------------

    async def bulk_index(
        self,
        folder: Path,
        *,
        collection: str | None = None,
        profile: str | None = None,
        embedder: str | None = None,
        force: bool = False,
        mode: RunMode | None = None,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> IngestReport:
        """Bring a collection up to date with a folder; its name is the folder's if none is given.

        `embedder` (`provider:model`) is for a new collection; one that exists keeps its own. Mode
        full reads, splits and embeds all of it again, as `force` does; recreate also removes
        what the collection holds from elsewhere. Raises BadInput, UnknownProfile,
        UnreadableSource, RunCancelled.
        """
        require_all("admin")  # it reads what is on this machine
        _check_folder(folder)
        name = collection or folder.resolve().name
        target = await self.database.retry(lambda: self._collection_for(name, profile, embedder))
        mode = mode or ("full" if force else "incremental")
        held = await self.runs.begin(target.id, pipeline.printable(folder.resolve()), mode)
        return await self.runs.hold(
            held,
            lambda: self._index_folder(
                held.run, target, folder, mode, wait=wait, listener=listener
            ),
            hand_over=not wait,
        )

    async def _index_folder(
        self,
        run: int,
        target: Collection,
        folder: Path,
        mode: RunMode,
        *,
        wait: bool,
        listener: Listener,
    ) -> IngestReport:
        started = time.perf_counter()
        _check_folder(folder)
        if load_profile(target.profile, target.declaration).summaries:
            await self.knowledge_bases.place(target.id, folder.resolve())
        report = await pipeline.store_folder(
            self.database,
            target,
            folder,
            run=run,
            recipe=self._recipe(target, listener),
            mode=mode,
            max_bytes=self.settings.max_file_bytes,
            seconds=self.settings.read_seconds,
            progress=listener.read,
        )
        return await self._ingested(target, run, report, started, wait=wait, listener=listener)

    async def bulk_index_each(
        self,
        root: Path,
        *,
        profile: str | None = None,
        embedder: str | None = None,
        force: bool = False,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> list[IngestReport | Failure]:
        """Index every folder of a root as a knowledge base of its name; one's failure is its own.

        Raises BadInput where there is no such root or it holds no folder.
        """
        if not os.path.isdir(root):
            raise BadInput(f"there is no folder {root}")
        found = knowledge_base.folders(root)
        if not found:
            raise BadInput(
                f"{root} holds no folder", hint="Each folder in it is to be one knowledge base."
            )
        done: list[IngestReport | Failure] = []
        for folder in found:
            try:
                done.append(
                    await self.bulk_index(
                        folder,
                        collection=folder.name,
                        profile=profile or await self._present_profile(folder.name),
                        embedder=embedder,
                        force=force,
                        wait=wait,
                        listener=listener,
                    )
                )
            except (BadInput, UnreadableSource) as error:
                done.append(Failure(path=folder.name, error=str(error)))
        return done

    async def _present_profile(self, name: str) -> str:
        """That of an existing knowledge base, else the one for knowledge bases."""
        try:
            return (await self.collection(name)).profile
        except UnknownCollection:
            return knowledge_base.PROFILE

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
        require("write", collection)
        if file is not None:
            require_all("admin")
        target = await self.database.retry(lambda: self._collection_for(collection, None))
        limit, seconds = self.settings.max_file_bytes, self.settings.read_seconds
        with span("store", self.database.backend) as traced:
            if file is not None:
                change, path = await pipeline.store_file(
                    self.database, target, file, max_bytes=limit, seconds=seconds
                )
                traced.set(path=path, action=change)
            else:
                change, path = await pipeline.store_url(
                    self.database, target, str(url), max_bytes=limit, seconds=seconds
                )
                traced.set(url=path, action=change)
        if wait:
            await self._drain(target, listener)
        left, broken = await self.database.retry(lambda: self._left(target))
        return StoreReport(
            collection=target.name,
            path=path,
            action=change,
            pending=left.pending + left.processing,
            error=next((job.error for job in broken if job.path == path), None),
        )

    async def rebuild(
        self,
        collection: str,
        *,
        force: bool = False,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> IngestReport:
        """Make the chunks of stored documents again: those of another recipe, or with `force` all.

        Searches are served from the old ones until the new ones replace them. Without `wait` it is
        left to who works off the queue.
        """
        require("write", collection)
        target = await self.collection(collection)
        mode: RunMode = "full" if force else "incremental"
        held = await self.runs.begin(target.id, None, mode)
        return await self.runs.hold(
            held,
            lambda: self._remake(held.run, target, force=force, wait=wait, listener=listener),
            hand_over=not wait,
        )

    async def _remake(
        self,
        run: int,
        target: Collection,
        *,
        force: bool,
        listener: Listener,
        wait: bool = True,
    ) -> IngestReport:
        started = time.perf_counter()
        recipe = self._recipe(target, listener)

        async def queue() -> int:
            async with self.database.transaction() as connection:
                return await pipeline.queue_stored(
                    connection, target, run, recipe=recipe, force=force
                )

        report = FolderReport(updated=await self.database.retry(queue))
        return await self._ingested(target, run, report, started, wait=wait, listener=listener)

    # --- runs -------------------------------------------------------------------------------

    async def start_run(
        self,
        collection: str,
        *,
        folder: Path | None = None,
        profile: str | None = None,
        mode: RunMode = "incremental",
    ) -> Run:
        """Queue a run for `vade serve`, `vade worker` or `process_queue` to do.

        Without a folder it makes the chunks of stored documents again. Raises BadInput,
        UnknownCollection.
        """
        if folder is None:
            if mode == "recreate":
                raise BadInput("mode recreate needs a folder to read")
            require("write", collection)
            target = await self.collection(collection)
        else:
            require_all("admin")
            _check_folder(folder)
            target = await self.database.retry(lambda: self._collection_for(collection, profile))
        return await self.runs.queue(
            target.id, pipeline.printable(folder.resolve()) if folder else None, mode
        )

    async def resume_run(self, run: int, *, listener: Listener = QUIET) -> IngestReport:
        """Go on with a failed, cancelled or waiting run, here and at once.

        Raises UnknownRun, RunNotOpen, and what the run itself raises.
        """
        return await self._do(await self.runs.take(run), listener)

    async def do_queued_runs(self, listener: Listener = QUIET) -> None:
        """Do the runs that wait; their failures are their own, and in their rows."""
        while (held := await self.runs.take_next()) is not None:
            listener.notice(f"run {held.run}")
            try:
                await self._do(held, listener, put_back=True)
            except VadeError as error:
                listener.notice(f"run {held.run}: {error}")
            except Exception as error:  # noqa: BLE001 - a fault of ours must not stop other work
                listener.notice(f"run {held.run}: {type(error).__name__}: {error}")

    async def _do(self, held: Held, listener: Listener, *, put_back: bool = False) -> IngestReport:
        async def work() -> IngestReport:
            run = await self.runs.one(held.run)
            target = await self.database.retry(lambda: self.collection(run.collection))
            if run.stored:
                return await self._ingested(
                    target,
                    run.id,
                    FolderReport(),
                    time.perf_counter(),
                    wait=True,
                    listener=listener,
                )
            if run.folder is None and run.mode == "recreate":
                raise BadInput("nothing of it was begun", hint="Run `vade reindex` again.")
            if run.folder is None:
                force = run.mode != "incremental"
                return await self._remake(run.id, target, force=force, listener=listener)
            return await self._index_folder(
                run.id, target, Path(run.folder), run.mode, wait=True, listener=listener
            )

        return await self.runs.hold(held, work, put_back=put_back)

    # --- the queue --------------------------------------------------------------------------

    async def reindex(
        self,
        collection: str,
        *,
        embedder: str | None = None,
        questions: Sequence[Question] | None = None,
        unchecked: bool = False,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> IngestReport:
        """Purge and make anew all chunks and vectors of a collection, with another model if one is
        named. Searches go on: each document is replaced in one step, and vectors of another model
        are filled in beside the present ones, which serve until all documents have theirs and the
        new ones answer as well on `questions`, or else on logged searches; `unchecked` is without
        that. Without `wait` it is left to who works off the queue.

        Raises BadInput, ModelUnavailable, UnknownCollection, BadSetting; then nothing was changed.
        """
        require("write", collection)
        target = await self.collection(collection)
        wanted = embedder or target.next_embedder or target.embedder
        if (model := self.embedder(wanted)) is not None:
            model.tokenizer.counts([""])
        moving = model is not None and wanted != target.embedder
        if moving:
            judges = await self.moves.judges(target, questions, unchecked=unchecked)
        else:
            judges = Judges(judged_by="nobody", questions=())
            if questions is not None:
                raise BadInput("there is nothing to compare: the embedder stays the same")
        if model is not None:
            await self.mirrors.follow(target, model.space)
        held = await self.runs.begin(target.id, None, "recreate")

        async def work() -> IngestReport:
            started = time.perf_counter()
            async with self.database.transaction() as connection:
                await self.moves.start(
                    connection, target, wanted, model.space if model else None, judges
                )
                stale = await pipeline.queue_stored(
                    connection, target, held.run, recipe="", force=True
                )
            report = FolderReport(updated=stale)
            return await self._ingested(
                target, held.run, report, started, wait=wait, listener=listener
            )

        report = await self.runs.hold(held, work, hand_over=not wait)
        if wait:
            await self._moved(target, listener)
        return report

    async def _moved(self, target: Collection, listener: Listener) -> None:
        """What there is to say and to tidy up after a collection may have moved."""
        now = await self.collection(target.name)
        move = await self.moves.shown(target.name)
        if now.next_embedder is not None and (move is None or not move.filled):
            listener.notice(
                f"{now.name} is still searched with {now.embedder}: not all of it is embedded"
                f" with {now.next_embedder} yet."
            )
        if target.space_id not in (now.space_id, None):
            await asyncio.sleep(SEARCH_SECONDS)
            async with self.database.connection() as connection:
                await embeddings.purge_left(connection)

    async def compare_move(
        self, collection: str, questions: Sequence[Question] | None = None
    ) -> Move:
        """Judge a move once more, on other questions if some are given, and swap if it is good.

        Raises UnknownCollection, BadInput, ModelUnavailable.
        """
        target = await self.collection(collection)
        move = await self.moves.compare_again(collection, questions)
        await self.mirrors.feed(target.id)
        await self._moved(target, QUIET)
        return move

    async def accept_move(self, collection: str) -> Move:
        """Have a collection searched with the embedder it moves to, whatever the verdict.

        Raises UnknownCollection, BadInput.
        """
        target = await self.collection(collection)
        move = await self.moves.accept(collection)
        await self.mirrors.feed(target.id)
        await self._moved(target, QUIET)
        return move

    async def abandon_move(
        self, collection: str, *, wait: bool = True, listener: Listener = QUIET
    ) -> IngestReport:
        """Have a collection stay with its embedder; what the other one made is purged.

        Raises UnknownCollection, BadInput.
        """
        await self.moves.abandon(collection)
        return await self.rebuild(collection, wait=wait, listener=listener)

    async def process_queue(
        self, *, limit: int | None = None, listener: Listener = QUIET
    ) -> tuple[Progress, OpenJobs]:
        """Work off the queue of all collections, pages to fetch first; what was done and what is
        left."""
        require_all("admin")
        if limit is None:
            await self.do_queued_runs(listener)
        await self.cache.fetch_due(limit=limit, wait=limit is None)
        await check_cost(self.database, self.embedder, None, listener.notice)
        worker = self._worker(None, listener)
        progress = await worker.drain(limit=limit)
        for collection in worker.touched:
            await self.knowledge_bases.show(collection, listener.notice, last=True)
        await self._judge_moves(None, listener)
        await self.mirrors.feed(notice=listener.notice)
        return progress, await self.database.retry(self.open_jobs)

    async def _ingested(
        self,
        target: Collection,
        run: int,
        report: FolderReport,
        started: float,
        *,
        wait: bool,
        listener: Listener,
    ) -> IngestReport:
        await self.knowledge_bases.show(target.id, listener.notice, last=True)
        progress = await self._drain(target, listener) if wait else Progress()
        left, broken = await self.database.retry(lambda: self._left(target))
        untold = await self.mirrors.waiting(target.id)
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
            pending=left.pending + left.processing + untold.documents,
            seconds=time.perf_counter() - started,
            run=run,
        )

    async def _left(self, target: Collection) -> tuple[OpenJobs, list[FailedJob]]:
        async def look() -> tuple[OpenJobs, list[FailedJob]]:
            async with self.database.connection() as connection:
                return (
                    await jobs.open_jobs(connection, target.id),
                    await jobs.failed(connection, target.id),
                )

        return await self.database.retry(look)

    async def _drain(self, target: Collection, listener: Listener) -> Progress:
        await check_cost(self.database, self.embedder, target.id, listener.notice)
        try:
            progress = await self._worker(target, listener).drain()
            await self._judge_moves(target.id, listener)
            await self.database.retry(lambda: self.mirrors.feed(target.id, notice=listener.notice))
            return progress
        finally:
            await self.knowledge_bases.show(target.id, listener.notice, last=True)

    async def _judge_moves(self, collection: CollectionId | None, listener: Listener) -> None:
        try:
            await self.moves.judge_if_due(collection, notice=listener.notice)
        except ModelUnavailable as error:
            listener.notice(f"{error}: the move to another embedder is judged later")

    def _worker(self, target: Collection | None, listener: Listener) -> Worker:
        return Worker(
            self.database,
            self._document_embedder,
            collection=target.id if target else None,
            notice=listener.notice,
            progress=listener.worked,
            stepped=lambda collection: self.knowledge_bases.show(collection, listener.notice),
            writer=self.models.meant_for("summary"),
        )

    async def work(self, *, listener: Listener = QUIET) -> None:
        """Work off the queue of all collections and the pages to fetch as they come, until
        cancelled.

        Cancelled, it returns the jobs it has not done. A database that is away is waited for.
        Raises BadSetting for a language model that cannot be opened.
        """
        self.models.check()
        await on_duty(
            jobs_due(self.database, lambda: self._worker(None, listener)),
            self.cache.fetch_if_due,
            lambda: self.moves.judge_if_due(notice=listener.notice),
            self.mirrors.feed_if_due,
            *(() if self._neo4j is None else (self.projection.work,)),
            self.graph.upkeep_if_due,
            lambda: self.do_queued_runs(listener),
            notice=listener.notice,
        )

    # --- search -----------------------------------------------------------------------------

    async def search(self, query: Query) -> SearchResult:
        """Raises BadInput, UnknownCollection; ModelUnavailable in mode dense."""
        with span("search", self.database.backend, query=query.text) as traced:
            # The connections at hand may be dead: a database of the cloud sleeps when idle.
            result = await self.database.retry(lambda: self._search(query), tries=2)
            traced.set(results_count=len(result.results))
            similarities = [
                contribution.score
                for hit in result.results
                for contribution in hit.contributions
                if contribution.retriever == "dense"
            ]
            if similarities:
                traced.set(top_similarity=max(similarities))
        self.search_log.searched(query.collection, query.text, result.results)
        return result

    async def _search(self, query: Query) -> SearchResult:
        started = time.perf_counter()
        searching.check(query)
        reranker = self.models.reranker() if query.rerank else None
        wanted = query.limit
        if reranker is not None:
            query = replace(query, limit=max(wanted, SHORTLIST))
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
        index = await self.mirrors.index_for(target)
        try:
            hits = await searching.search(self.database, target, embedder, query, index)
        except ModelUnavailable as error:  # a server of the model that went away since
            if query.mode == "dense":
                raise
            notices.append(f"{error}: lexical search only")
            embedder = None
            hits = await searching.search(self.database, target, None, query)
        notices += index.notices if index is not None else []
        by = None
        if reranker is not None:
            again = await rerank(hits, reranker, query.text, milliseconds=self.settings.rerank_ms)
            hits, by = again.hits[:wanted], again.by
            notices += [again.notice] if again.notice else []
        elif query.rerank and not may_spend():
            notices.append(f"no reranker without a language model is here: {STANDS}")
        elif query.rerank:
            notices.append(f"no reranker is here, VADE_RERANKER names one: {STANDS}")
        took_ms = (time.perf_counter() - started) * 1000
        self.cache.searched_pages(query.collection, len(hits), took_ms)
        return SearchResult(
            query=query.text,
            mode=query.mode if embedder or query.mode == "lexical" else "lexical",
            took_ms=took_ms,
            results=hits,
            notices=notices,
            reranked_by=by,
        )

    @property
    def projection(self) -> Projection:
        """The graph in Neo4j. Raises BadSetting where no server is set."""
        if self._neo4j is None:
            raise BadSetting(
                "no Neo4j server is set", hint="Set VADE_NEO4J_URL=bolt://127.0.0.1:7687."
            )
        return Projection(self.database, self._neo4j)

    async def _make_searchable(self, target: Collection) -> bool:
        """Work off what waits in a collection; whether all of it is searchable then."""
        try:
            await self._drain(target, QUIET)
        except VadeError:  # a worker comes back to it
            return False
        left = await self.open_jobs(target.name)
        return not (left.pending or left.processing)

    async def _embed_external(self) -> bool:
        return await self._make_searchable(await self._collection_for(EXTERNAL, "external"))

    async def _documents_for_graph(self, query: Query) -> list[Hit]:
        return (await self.search(query)).results

    async def search_book(self, asked: BookQuery) -> BookResponse:
        """Search a course as its readers do. Raises BadInput, UnknownCollection, BadFilter."""

        async def search(query: Query) -> list[Hit]:
            return (await self.search(query)).results

        return await search_book(self.database, search, asked)

    async def answer(
        self,
        question: str,
        *,
        collection: str,
        filters: tuple[str, ...] = (),
        model: str | None = None,
        keep_for: str | None = None,
        replaces: Sequence[UUID] = (),
    ) -> AnswerResult:
        """Answer from a collection: in a language model's words, else in those of the sources.

        `model` is `provider:model`, or `none`; the setting's if it is not given. One that fails is
        stood in for by the sources' own words, and the result says so. An answer that is found is
        kept as a note of the project `keep_for`, in place of those it `replaces`, and is stale once
        what it cites changes. Raises BadInput, UnknownCollection, BadSetting.
        """
        started = time.perf_counter()
        if keep_for is not None and len(question) > MAX_TITLE:
            raise BadInput(
                f"a question of more than {MAX_TITLE} characters is not kept",
                hint="Ask it shorter; the question is what the answer is found by.",
            )
        if model is None:
            writer = self.models.meant_for("answer")
        else:
            writer = None if model == "none" else self.models.named(model)
        found = await self.search(
            Query(text=question, collection=collection, limit=extractive.MAX_HITS, filters=filters)
        )
        target = await self.collection(collection)
        # Without vectors in the search there is no model to compare sentences by, either.
        embedder = self._searchable_embedder(target) if found.mode == "hybrid" else None
        notices = list(found.notices)
        if model is None and (why := self.models.withheld("answer")) is not None:
            notices.append(f"{why}; answered in the sources' own words")
        answer = None
        if writer is not None:
            tokenizer = embedder.tokenizer if embedder else WordTokenizer()
            try:
                answer = await generated.answer(question, found.results, writer, tokenizer)
            except LanguageModelFailed as error:
                notices.append(f"{error}: answered in the sources' own words")
        if answer is None:
            async with self.database.connection() as connection:
                asked = await ask(connection, target.id, question)
            answer = await extractive.answer(asked, found.results, embedder)
        if answer.dropped:
            notices.append(f"not supported and dropped, of {answer.by}: {len(answer.dropped)}")
        kept = None
        if keep_for is not None and answer.found:
            cited = {source.reference for source in answer.sources}
            saved = await self.notes.keep_answer(
                keep_for,
                question,
                answer.answer,
                [_passage(hit) for hit in found.results if hit.reference in cited],
                agent=answer.by,
                replaces=replaces,
            )
            kept = saved.note.id
        elif keep_for is not None:
            notices.append("nothing is kept, since there is no answer")
        return AnswerResult(
            question=question,
            found=answer.found,
            answer=answer.answer,
            sources=answer.sources,
            by=answer.by,
            dropped=answer.dropped,
            took_ms=(time.perf_counter() - started) * 1000,
            notices=notices,
            kept=kept,
        )

    async def _ask_again(
        self, question: str, collection: str, project: str, replaces: UUID
    ) -> bool:
        found = await self.answer(
            question, collection=collection, keep_for=project, replaces=[replaces]
        )
        return found.kept is not None

    async def _make_again(self, collection: str) -> None:
        await self.rebuild(collection)

    async def evaluate(
        self,
        questions: Sequence[Question],
        *,
        collection: str,
        mode: str | None = None,
        k: int = 8,
        boost: tuple[str, ...] = (),
        asked: Callable[[], None] = lambda: None,
    ) -> Evaluation:
        """What each mode, or one, is worth on questions with known answers.

        Without a mode, those that cannot be measured are left out with a notice. Raises BadInput,
        UnknownCollection, and ModelUnavailable where `mode` needs a model that is not there.
        """
        searching.check(Query(text="any", collection=collection, limit=k, boost=boost))
        if mode == RERANKED and self.models.reranker() is None:
            raise ModelUnavailable("no reranker is here", hint="VADE_RERANKER names one.")
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

        said: Counter[str] = Counter()

        async def search(query: Query) -> list[Hit]:
            # Not by `search`: these are no questions that anybody has.
            found = await self.database.retry(lambda: self._search(query), tries=2)
            said.update(found.notices)
            return found.results

        evaluation = await evaluating.evaluate(
            questions,
            search,
            collection=collection,
            modes=(mode,) if mode else self.evaluated_modes(),
            k=k,
            boost=boost,
            asked=asked,
            notices=notices,
        )
        told = [f"{count} searches: {text}" for text, count in said.most_common(3)]
        return replace(evaluation, notices=[*notices, *told])

    def evaluated_modes(self) -> tuple[str, ...]:
        """What `evaluate` measures where no mode is named."""
        return (*MODES, *([RERANKED] if self.models.reranker() is not None else []))

    async def propose_questions(
        self, collection: str, *, count: int = 50, seed: int = 0
    ) -> list[Proposal]:
        """Questions about a collection in other words than its own, for a person to edit.

        Raises BadInput, UnknownCollection, and ModelUnavailable where it has no embedder.
        """
        if not 1 <= count <= proposing.MAX_COUNT:
            raise BadInput(f"the number of questions must be from 1 to {proposing.MAX_COUNT}")
        target = await self.collection(collection)
        embedder = self._searchable_embedder(target)
        if embedder is None:
            raise ModelUnavailable(
                f"{collection} has no embeddings, and other words are found by them",
                hint="Index it with an embedder, or write the questions yourself.",
            )
        async with self.database.connection() as connection:
            drawn = await chunks.draw(connection, target.id, seed=seed, limit=proposing.DRAWN)
        return await proposing.propose(drawn, embedder, count=count)

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
        require("read", name)
        async with self.database.connection() as connection:
            found = await collections.overview(connection, name)
            if name is not None and not found:
                raise UnknownCollection(name, await collections.names(connection))
            return found

    async def recent_updates(self, name: str, *, limit: int = 20) -> list[Update]:
        """The documents of a collection that changed last. Raises BadInput, UnknownCollection."""
        if not 1 <= limit <= 1000:
            raise BadInput(f"n must be from 1 to 1000, not {limit}")
        target = await self.collection(name)
        async with self.database.connection() as connection:
            return await ledger.recent(connection, target.id, limit)

    async def chunk_metadata(
        self, name: str, chunks: Sequence[ChunkId]
    ) -> dict[ChunkId, dict[str, object]]:
        """Every key of the metadata schema, by chunk. Raises UnknownCollection."""
        target = await self.collection(name)
        async with self.database.connection() as connection:
            return await ledger.chunk_metadata(connection, target.id, chunks)

    async def read_document(self, name: str, path: str, *, section: str | None = None) -> str:
        """A document as Markdown, or one section of it. Raises BadInput, UnknownCollection."""
        if "\0" in f"{name}{path}{section}":
            raise BadInput("a document's name holds no zero byte")
        target = await self.collection(name)
        async with self.database.connection() as connection:
            text = await documents.text_of(connection, target.id, path, section=section)
        if text is None:
            place = f"{path}#{section}" if section else path
            raise BadInput(
                f"{name} holds no document {place}", hint="Search for it: hits name their paths."
            )
        await self.search_log.used(name, target.id, path, section)
        return text

    async def read_reference(self, reference: str) -> str:
        """What a citation names, COLLECTION/PATH or COLLECTION/PATH#SECTION, as Markdown.

        Raises BadInput, UnknownCollection.
        """
        name, slash, place = reference.strip().strip("[]").removeprefix("source: ").partition("/")
        if not name or not slash or not place:
            raise BadInput(
                f"{reference!r} is no reference", hint="It is COLLECTION/PATH#SECTION, as hits say."
            )
        path, _, section = place.partition("#")
        return await self.read_document(name, path, section=section or None)

    async def captured_questions(self, collection: str, *, days: int = 0) -> list[Captured]:
        """Real searches of the last days with the sources that were read; 0 is all that is kept.

        Raises UnknownCollection.
        """
        target = await self.collection(collection)
        async with self.database.connection() as connection:
            return captured_questions(await searches.used(connection, target.id, days=days))

    async def forget_searches(self, collection: str) -> int:
        """Forget the search log of a collection; answers how many uses were in it.

        Raises UnknownCollection.
        """
        target = await self.collection(collection)
        async with self.database.connection() as connection:
            return await searches.forget(connection, target.id)

    async def open_jobs(self, name: str | None = None) -> OpenJobs:
        """What is left to do in a collection, or in all. Raises UnknownCollection, NotAllowed."""
        require("read", name)
        if name is None and not sees_all():
            return jobs.together([await self.open_jobs(one) for one in await self._seen()])
        target = await self.collection(name) if name is not None else None
        async with self.database.connection() as connection:
            return await jobs.open_jobs(connection, target.id if target else None)

    async def status(self, name: str | None = None) -> Status:
        """Of one collection, or of all. Raises UnknownCollection."""
        require("read", name)
        found = await self.list_collections(name)
        if name is None and sees_all():
            targets: list[CollectionId | None] = [None]
        else:
            targets = [(await self.collection(one.name)).id for one in found]
        async with self.database.connection() as connection:
            failed = [job for target in targets for job in await jobs.failed(connection, target)]
        return Status(
            database=self.database.shown if sees_all() else "",
            collections=found,
            failed=[Failure(path=job.path, error=job.error) for job in failed],
        )

    async def _seen(self) -> list[str]:
        """The collections that the caller may know of."""
        async with self.database.connection() as connection:
            return await collections.names(connection)

    async def delete_collection(self, name: str) -> None:
        """Raises UnknownCollection, NotAllowed."""
        require("admin", name)
        target = await self.collection(name)
        async with self.database.connection() as connection:
            await collections.delete(connection, target.id)
        await self.mirrors.feed(target.id)

    def embedder_state(self) -> dict[str, object]:
        """Whether the embedder of new collections can be used, and why not."""
        setting = self.settings.embedder
        try:
            embedder = self.embedder(setting)
            if embedder is None:
                return {"ok": True, "model": None}
            embedder.tokenizer.counts([""])
        except VadeError as error:
            return {"ok": False, "model": setting, "error": str(error)}
        return {"ok": True, "model": embedder.space.model}

    # --- keys -------------------------------------------------------------------------------

    async def create_key(
        self,
        name: str,
        *,
        scopes: Sequence[Scope],
        collections: Sequence[str] | None = None,
        rate: float | None = None,
        days: int | None = None,
        user: str | None = None,
    ) -> str:
        """The secret of a new API key; it cannot be shown again. With scope memory it may be for
        one `user` only. Raises BadInput, NotAllowed."""
        require_all("admin")
        bound = None if user is None else self.memory.hash_of(user)
        for scope in scopes:  # nobody hands on what they have not got
            require_user(bound) if scope == "memory" else require(scope)
        async with self.database.connection() as connection:
            return await keys.create(
                connection,
                name,
                scopes=scopes,
                collections=collections,
                rate=rate,
                days=days,
                user=bound,
            )

    async def list_keys(self) -> list[Key]:
        require_all("admin")
        async with self.database.connection() as connection:
            return await keys.listed(connection)

    async def revoke_key(self, name: str) -> None:
        """Raises BadInput."""
        require_all("admin")
        async with self.database.connection() as connection:
            await keys.revoke(connection, name)

    async def key_access(self, secret: str) -> Access | None:
        """What an API key opens; None where there is no such key, or no more."""

        async def look() -> Access | None:
            async with self.database.connection() as connection:
                return await keys.access(connection, secret)

        return await self.database.retry(look, tries=2)

    async def warm(self) -> None:
        """Load the embedder of new collections, where there is one."""
        with suppress(VadeError):
            if embedder := self.embedder(self.settings.embedder):
                await embedder.embed_query("warm")

    # --- backends ---------------------------------------------------------------------------

    async def _collection_for(
        self, name: str, profile: str | None, embedder: str | None = None
    ) -> Collection:
        """The collection to write to, made where it is new."""
        wanted, declaration = _declared(profile)
        self.embedder(embedder or self.settings.embedder)  # one that does not exist is said first
        async with self.database.connection() as connection:
            target = await collections.find_or_create(
                connection,
                name,
                profile=wanted,
                declaration=declaration,
                embedder=embedder or self.settings.embedder,
            )
            if embedder not in (None, target.embedder):
                raise BadInput(
                    f"{name!r} is embedded by {target.embedder}, not by {embedder}",
                    hint="Leave --embedder out; it is for new collections.",
                )
            declared = (target.profile, target.declaration)
            if profile is not None and declared != (wanted, declaration):
                await collections.use_profile(connection, target.id, wanted, declaration)
                target = await collections.find(connection, name)
        return target

    def _recipe(self, target: Collection, listener: Listener) -> str:
        return process.recipe(
            load_profile(target.profile, target.declaration),
            self._worker(None, listener).embedder(target.next_embedder or target.embedder),
        )

    @asynccontextmanager
    async def on_ray(self, address: str | None = None) -> AsyncIterator[None]:
        """Meanwhile documents are embedded on a Ray cluster, with the same vectors.

        Raises MissingExtra, BadSetting.
        """
        from vademecum.inference.ray import RayCluster

        async with RayCluster.opened(address, home=self.settings.home) as cluster:
            self._cluster = cluster
            try:
                yield
            finally:
                self._cluster = None

    def _document_embedder(self, setting: str) -> Embedder | None:
        """Where documents are embedded; queries are on this machine."""
        embedder = self.embedder(setting)
        if embedder is None or self._cluster is None:
            return embedder
        return self._cluster.embedder(setting, embedder)

    def embedder(self, setting: str) -> Embedder | None:
        if setting not in self._embedders:
            self._embedders[setting] = open_embedder(
                setting,
                home=self.settings.home,
                threads=self.settings.threads,
                ollama_url=self.settings.ollama_url,
                openai_url=self.settings.openai_url,
                openai_key=self.settings.openai_key,
                max_cost=self.settings.max_cost,
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


def _passage(hit: Hit) -> Passage:
    return Passage(
        collection=hit.collection,
        path=hit.path,
        section_id=hit.section_id,
        chunk_hash=documents.content_hash(hit.text),
    )


def _check_folder(folder: Path) -> None:
    if not os.path.exists(folder):
        raise BadInput(f"there is no folder {folder}")
    if not os.path.isdir(folder):
        raise BadInput(f"{folder} is not a folder", hint="Use `vade store --file` for a file.")


def _neo4j(settings: Settings) -> Neo4j | None:
    if settings.neo4j_url is None:
        return None
    return Neo4j(
        settings.neo4j_url,
        user=settings.neo4j_user,
        password=settings.neo4j_password,
        database=settings.neo4j_database,
    )


def _declared(profile: str | None) -> tuple[str, str | None]:
    """Name and, of a user's own, declaration of a profile by its name or its file.

    Raises UnknownProfile, BadProfile, BadInput.
    """
    if profile is not None and profile.endswith(".toml"):
        return read_profile(Path(profile))
    return load_profile(profile or DEFAULT).name, None
