"""What Vademecum can do, in one place: every surface calls this and nothing below it.

    app.ingest --> documents --app.process_queue, app.work--> searchable
    app.search --> [Hit]     app.answer --> Answer with citations

This is the only file that chooses backends, and it hands out the facades of the parts.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from vademecum.access import require, require_all, sees_all
from vademecum.answer.facade import Answerer, AnswerResult
from vademecum.cache.cache import Cache
from vademecum.cache.state import CacheState
from vademecum.duty import jobs_due, on_duty
from vademecum.embedders import Embedders
from vademecum.errors import BadInput, BadSetting, CollectionRequired, UnknownCollection
from vademecum.evaluate.capture import SearchLog
from vademecum.evaluate.facade import EvaluationCalls
from vademecum.evaluate.reindex import MoveCalls
from vademecum.ingest.facade import IngestCalls
from vademecum.ingest.knowledge_base import KnowledgeBases
from vademecum.ingest.pipeline import Failure
from vademecum.ingest.report import QUIET, Listener, Progress
from vademecum.ingest.runs import Runs
from vademecum.keys import KeyCalls
from vademecum.mirror.facade import MirrorCalls
from vademecum.models import Models
from vademecum.notes.facade import Notes
from vademecum.profiles.profile import DEFAULT, load_profile, read_profile
from vademecum.queue import Queue
from vademecum.search.book import BookQuery, BookResponse, search_book
from vademecum.search.facade import Searcher, SearchResult
from vademecum.search.shelf import Shelf
from vademecum.settings import Settings
from vademecum.store import collections, jobs
from vademecum.store.collections import Collection, CollectionOverview
from vademecum.store.db import Database
from vademecum.store.jobs import OpenJobs
from vademecum.store.replica import Reads
from vademecum.telemetry.spans import span, tracing
from vademecum.types import CollectionId, Hit, Query

if TYPE_CHECKING:
    from vademecum.context.facade import ContextCalls
    from vademecum.context.stale import StaleCalls
    from vademecum.graph.facade import Graph
    from vademecum.graph.fetching import Sources
    from vademecum.graph.link import CodeLinks
    from vademecum.memory.facade import MemoryCalls
    from vademecum.projections.neo4j import Neo4j
    from vademecum.projections.project import Projection


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is stored, what is still to do, and what failed."""

    database: str
    """The connection string without its password; empty for who may not know all collections."""
    collections: list[CollectionOverview]
    failed: list[Failure]


class App:
    """One open database and the models that its collections need."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        *,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.settings = settings
        self.database = database
        self.reads = Reads(database, settings.replica_url, notice=notice)
        self.embedders = Embedders(settings)
        self.models = Models(database, settings)

        # Documents: stored, worked off, read.
        self.runs = Runs(database)
        self.knowledge_bases = KnowledgeBases(database)
        self.queue = Queue(
            database,
            embedders=self.embedders,
            models=self.models,
            knowledge_bases=self.knowledge_bases,
            settle=self._settle,
        )
        self.mirrors = MirrorCalls(
            database,
            settings,
            collection=self.collection,
            embedder=self.embedders.searching,
        )
        self.ingest = IngestCalls(
            database,
            settings,
            runs=self.runs,
            knowledge_bases=self.knowledge_bases,
            workers=self.queue,
            untold=self.mirrors.waiting,
            collection=self.collection,
            collection_for=self._collection_for,
        )
        self.moves = MoveCalls(
            database,
            collection=self.collection,
            embedders=self.embedders,
            ingest=self.ingest,
            follow=self.mirrors.follow,
            feed=self.mirrors.feed,
        )
        self.search_log = SearchLog(database, days=settings.search_log_days)
        self.shelf = Shelf(database, used=self.search_log.used)

        # Searches and answers.
        self._searcher = Searcher(
            self.reads,
            embedder=self.embedders.searching,
            index=self.mirrors.index_for,
            reranker=self.models.reranker,
            rerank_ms=settings.rerank_ms,
            kept_bytes=settings.kept_megabytes * 1_000_000,
        )
        self.notes = Notes(
            database,
            collection_for=self._collection_for,
            search=self._hits,
            embed=self.queue.make_searchable,
        )
        self._answerer = Answerer(
            database,
            collection=self.collection,
            embedder=self.embedders.searching,
            search=self.search,
            models=self.models,
            notes=self.notes,
            entries=self._searcher.entries,
        )
        self.evaluation = EvaluationCalls(
            database,
            collection=self.collection,
            embedder=self.embedders.searching,
            search=self._searcher.search,
            models=self.models,
        )

        # The web, the graph, memory, and what agents are told of them.
        self.cache = Cache(
            CacheState(
                database,
                home=settings.home,
                max_bytes=settings.max_file_bytes,
                collection_for=lambda name: self._collection_for(name, "web"),
                searchable_embedder=self.embedders.searching,
            )
        )
        self._neo4j = _neo4j(settings)

    # Parts that most commands do without, and that take long to import, are made when asked for.

    @cached_property
    def graph(self) -> "Graph":
        from vademecum.graph.content import Content
        from vademecum.graph.facade import Graph

        return Graph(
            self.database,
            collection_for=self._collection_for,
            search=self._hits,
            content=Content(self.settings.home / "external_knowledge"),
            fetch=self.cache.read_now,
            again=lambda document: self.sources.again(document),
            clean=lambda: self.sources.clean(),
            others={} if self._neo4j is None else {"neo4j": self._neo4j.ask},
        )

    @cached_property
    def sources(self) -> "Sources":
        from vademecum.graph.fetching import Sources

        return Sources(
            self.database,
            web=self.cache.outside,
            home=self.settings.home,
            content=self.graph.content,
            external=self.graph.external,
            embed=self._embed_external,
        )

    @cached_property
    def code(self) -> "CodeLinks":
        from vademecum.graph.link import CodeLinks

        return CodeLinks(
            self.graph,
            home=self.settings.home / "graph" / "libraries",
            changelogs=self.sources.changelogs,
            embed=self._embed_external,
        )

    @cached_property
    def memory(self) -> "MemoryCalls":
        from vademecum.memory.facade import MemoryCalls

        allowed = self.settings.memory_allowed.split(",")
        return MemoryCalls(
            self.database,
            key=self.settings.memory_key,
            allowed=tuple(word for word in allowed if word.strip()),
            embedder=lambda: self.embedders.named(self.settings.embedder),
            model=lambda: self.models.meant_for("memory"),
        )

    @cached_property
    def context(self) -> "ContextCalls":
        from vademecum.context.facade import ContextCalls

        return ContextCalls(
            notes=self.notes, memory=self.memory, graph=self.graph, sources=self.sources
        )

    @cached_property
    def stale(self) -> "StaleCalls":
        from vademecum.context.stale import StaleCalls

        return StaleCalls(self.database, ask_again=self._ask_again, make_again=self._make_again)

    @cached_property
    def keys(self) -> KeyCalls:
        return KeyCalls(self.database, hash_of=lambda user: self.memory.hash_of(user))

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
                app = cls(settings, database, notice=notice)
                try:
                    yield app
                finally:
                    await app._searcher.close()
                    await app.reads.close()
                    await app.cache.close()
                    await app.mirrors.close()
                    if app._neo4j is not None:
                        await app._neo4j.close()

    # --- the queue --------------------------------------------------------------------------

    async def process_queue(
        self, *, limit: int | None = None, listener: Listener = QUIET
    ) -> tuple[Progress, OpenJobs]:
        """Work off the queue of all collections, pages to fetch first; what was done and what is
        left."""
        require_all("admin")
        if limit is None:
            await self.ingest.do_queued_runs(listener)
        await self.cache.fetch_due(limit=limit, wait=limit is None)
        progress = await self.queue.drain(None, listener, limit=limit)
        return progress, await self.database.retry(self.open_jobs)

    async def work(self, *, listener: Listener = QUIET) -> None:
        """Work off the queue of all collections and the pages to fetch as they come, until
        cancelled.

        Cancelled, it returns the jobs it has not done. A database that is away is waited for.
        Raises BadSetting for a language model that cannot be opened.
        """
        self.models.check()
        await on_duty(
            jobs_due(self.database, lambda: self.queue.worker(None, listener)),
            self.cache.fetch_if_due,
            lambda: self.moves.judge_if_due(notice=listener.notice),
            self.mirrors.feed_if_due,
            *(() if self._neo4j is None else (self.projection.work,)),
            self.graph.upkeep_if_due,
            lambda: self.ingest.do_queued_runs(listener),
            notice=listener.notice,
        )

    async def _settle(self, collection: CollectionId | None, notice: Callable[[str], None]) -> None:
        await self.moves.judge(collection, notice)
        await self.database.retry(lambda: self.mirrors.feed(collection, notice=notice))

    async def _embed_external(self) -> bool:
        from vademecum.graph.writing import EXTERNAL

        return await self.queue.make_searchable(await self._collection_for(EXTERNAL, "external"))

    # --- search and answer ------------------------------------------------------------------

    async def search(self, query: Query) -> SearchResult:
        """Raises BadInput, UnknownCollection; ModelUnavailable in mode dense."""
        with span("search", self.database.backend, query=query.text) as traced:
            result = await self._searcher.search(query)
            traced.set(results_count=len(result.results))
            similarities = [
                contribution.score
                for hit in result.results
                for contribution in hit.contributions
                if contribution.retriever == "dense"
            ]
            if similarities:
                traced.set(top_similarity=max(similarities))
        self.cache.searched_pages(query.collection, len(result.results), result.took_ms)
        self.search_log.searched(query.collection, query.text, result.results)
        return result

    async def _hits(self, query: Query) -> list[Hit]:
        return (await self.search(query)).results

    async def search_book(self, asked: BookQuery) -> BookResponse:
        """Search a course as its readers do. Raises BadInput, UnknownCollection, BadFilter."""
        return await search_book(self.database, self._hits, asked)

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
        return await self._answerer.answer(
            question,
            collection=collection,
            filters=filters,
            model=model,
            keep_for=keep_for,
            replaces=replaces,
        )

    async def _ask_again(
        self, question: str, collection: str, project: str, replaces: UUID
    ) -> bool:
        found = await self.answer(
            question, collection=collection, keep_for=project, replaces=[replaces]
        )
        return found.kept is not None

    async def _make_again(self, collection: str) -> None:
        await self.ingest.rebuild(collection)

    # --- collections ------------------------------------------------------------------------

    async def collection(self, name: str) -> Collection:
        """Raises UnknownCollection."""
        async with self.database.connection() as connection:
            return await collections.find(connection, name)

    async def collection_name(self, name: str | None) -> str:
        """The name given, else the setting's, else that of the only collection there is, beside
        those that are kept for notes, pages of the web and knowledge from outside.

        Raises CollectionRequired where that is not clear.
        """
        if name or self.settings.collection:
            return str(name or self.settings.collection)
        async with self.database.connection() as connection:
            known = await collections.names(connection)
        indexed = [one for one in known if not _is_kept(one)] if len(known) > 1 else known
        if len(indexed) != 1:
            raise CollectionRequired(known)
        return indexed[0]

    async def list_collections(self, name: str | None = None) -> list[CollectionOverview]:
        """What the collections hold, or one of them. Raises UnknownCollection."""
        require("read", name)
        async with self.database.connection() as connection:
            found = await collections.overview(connection, name)
            if name is not None and not found:
                raise UnknownCollection(name, await collections.names(connection))
            return found

    async def open_jobs(self, name: str | None = None) -> OpenJobs:
        """What is left to do in a collection, or in all. Raises UnknownCollection, NotAllowed."""
        require("read", name)
        if name is None and not sees_all():
            return jobs.together([await self.open_jobs(one) for one in await self._seen()])
        target = await self.collection(name) if name is not None else None
        async with self.database.connection() as connection:
            return await jobs.open_jobs(connection, target.id if target else None)

    async def _seen(self) -> list[str]:
        """The collections that the caller may know of."""
        async with self.database.connection() as connection:
            return await collections.names(connection)

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

    async def delete_collection(self, name: str) -> None:
        """Raises UnknownCollection, NotAllowed."""
        require("admin", name)
        target = await self.collection(name)
        async with self.database.connection() as connection:
            await collections.delete(connection, target.id)
        await self.mirrors.feed(target.id)

    async def _collection_for(
        self, name: str, profile: str | None, embedder: str | None = None
    ) -> Collection:
        """The collection to write to, made where it is new."""
        wanted, declaration = _declared(profile)
        setting = embedder or self.settings.embedder
        self.embedders.named(setting)  # one that does not exist is said first
        async with self.database.connection() as connection:
            target = await collections.find_or_create(
                connection, name, profile=wanted, declaration=declaration, embedder=setting
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

    # --- backends ---------------------------------------------------------------------------

    @property
    def projection(self) -> "Projection":
        """The graph in Neo4j. Raises BadSetting where no server is set."""
        from vademecum.projections.project import Projection

        if self._neo4j is None:
            raise BadSetting(
                "no Neo4j server is set", hint="Set VADE_NEO4J_URL=bolt://127.0.0.1:7687."
            )
        return Projection(self.database, self._neo4j)


def _neo4j(settings: Settings) -> "Neo4j | None":
    if settings.neo4j_url is None:
        return None
    from vademecum.projections.neo4j import Neo4j

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


def _is_kept(collection: str) -> bool:
    """Whether it is one that Vademecum makes by itself, as agents and commands go along."""
    from vademecum.cache.pages import is_of_pages
    from vademecum.graph.writing import EXTERNAL
    from vademecum.notes.facade import COLLECTION

    return collection in (EXTERNAL, COLLECTION) or is_of_pages(collection)
