"""What can be done with the graph: `app.graph`. Writers state; what nobody states any more goes."""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from vademecum.access import require_all
from vademecum.errors import BadInput, UnknownCollection
from vademecum.graph import describe, learning, relevant, upkeep, writing
from vademecum.graph.content import Content
from vademecum.graph.describe import Described
from vademecum.graph.learning import Scored
from vademecum.graph.nodes import KINDS, ExternalDoc, KnowledgeUsage, Node, kind_named
from vademecum.graph.queries import prepare
from vademecum.graph.refresh import Again, Fetch, Refresher, RefreshReport
from vademecum.graph.relations import KNOWLEDGE, Relation
from vademecum.graph.upkeep import MOST_REFRESHED, Analysis, Maintenance
from vademecum.graph.versions import Ecosystem
from vademecum.graph.writing import EXTERNAL, Statement, StatementReport
from vademecum.store import graph as rows
from vademecum.store import graph_queries, knowledge
from vademecum.store.collections import Collection as StoredCollection
from vademecum.store.db import Database
from vademecum.store.graph import EntityRow, RelationRow
from vademecum.store.knowledge import KnowledgeChange
from vademecum.types import CollectionId, EntityId, Hit, Query

UPKEEP_LOOK = 600.0
"""Seconds between two looks whether maintenance is due."""
Kind = TypeVar("Kind", bound=Node)
Ask = Callable[[str, Mapping[str, Any]], Awaitable[list[dict[str, Any]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCounts:
    entities: dict[str, int]
    relations: dict[str, int]
    projects: dict[str, int]
    """Nodes of each project, which are counted above only where it is the one asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevantDocument:
    """A document for a task, why it ranks where it does, and the passage that was found."""

    document: ExternalDoc
    scored: Scored
    passage: str


class Graph:
    """Every call names its project; '' is knowledge that all projects share.

    Reads with a project see its nodes and the shared ones.
    """

    def __init__(
        self,
        database: Database,
        *,
        collection_for: Callable[[str, str], Awaitable[StoredCollection]],
        search: Callable[[Query], Awaitable[list[Hit]]],
        content: Content,
        fetch: Fetch,
        again: Again,
        clean: Callable[[], Awaitable[int]],
        others: Mapping[str, Ask] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`collection_for` makes a collection of a profile, `fetch` reads a page, `again` reads a
        document by its adapter, `clean` removes old replies, `others` are further stores that
        answer named queries, `now` is the clock."""
        self._database = database
        self._collection_for = collection_for
        self._search = search
        self._others = dict(others or {})
        self._now = now
        self._upkeep_looked = -UPKEEP_LOOK
        self._clean = clean
        self.content = content
        self._refresher = Refresher(
            database=database,
            content=content,
            fetch=fetch,
            again=again,
            external=self.external,
            now=lambda: self._now(),
        )

    # --- writing ----------------------------------------------------------------------------

    async def state(
        self,
        source: str,
        key: str,
        *,
        project: str = "",
        nodes: Collection[Node] = (),
        relations: Collection[Relation] = (),
        mentions: Collection[Node] = (),
        digest: str = "",
        replace: bool = True,
    ) -> StatementReport:
        """All that a source says under a key, at once: it replaces what it said there before.

        `mentions` are nodes that are only referred to: made where new, never overwritten; ends of
        relations are mentioned by themselves. Without `replace` what was said before stays.
        All or nothing, and the same again changes nothing. Raises BadInput.
        """
        require_all("write")
        statement = Statement(
            source=source,
            key=key,
            project=project,
            nodes=nodes,
            relations=relations,
            mentions=mentions,
            digest=digest,
            replace=replace,
        )
        return await self._database.retry(lambda: self._write(statement))

    async def _write(
        self, statement: Statement, used: tuple[Node, KnowledgeUsage] | None = None
    ) -> StatementReport:
        external = None
        if any(isinstance(node, ExternalDoc) for node in statement.nodes):
            external = await self.external()
        async with self._database.transaction() as connection:
            if used is not None:
                await learning.count(connection, *used)
            return await writing.write(connection, statement, external=external, now=self._now)

    async def external(self) -> CollectionId:
        """The collection in which documents are searched."""
        return (await self._collection_for(EXTERNAL, "external")).id

    async def retract(
        self, source: str, keys: Collection[str] | None = None, *, project: str = ""
    ) -> int:
        """Take back what a source said, under these keys or all; how many rows went."""
        require_all("write")

        async def write() -> int:
            gone = 0
            async with self._database.transaction() as connection:
                for number in await rows.statements(connection, project, source, keys):
                    gone += await rows.retract(connection, number)
                    await rows.drop_statement(connection, number)
            return gone

        return await self._database.retry(write)

    async def digests(self, source: str, *, project: str = "") -> dict[str, str]:
        """Keys of a source's statements with their digests: what need not be stated again."""
        async with self._database.connection() as connection:
            return await rows.digests(connection, project, source)

    # --- learning ---------------------------------------------------------------------------

    async def record_usage(
        self,
        number: UUID,
        *,
        agent_id: str,
        outcome: str = "unknown",
        project: str = "",
        use: str | None = None,
        task: str = "",
    ) -> Scored:
        """Note that an agent used a piece of knowledge and what came of it; how it then ranks.

        `use` names the use: told again, a later outcome replaces the earlier one and nothing is
        counted twice. Raises BadInput.
        """
        require_all("write")
        node = (await self.get([number], project=project)).get(EntityId(number))
        if node is None:
            raise BadInput(f"there is no knowledge with the id {number}")
        if not isinstance(node, KNOWLEDGE):
            raise BadInput(f"{node.kind} {node.name!r} is not knowledge that can be used")
        used = learning.usage(
            node,
            agent_id=agent_id,
            outcome=outcome,
            project=project,
            use=use,
            task=task,
            now=self._now(),
        )
        statement = Statement(
            source="usage",
            key=agent_id,
            project=project,
            nodes=[used],
            relations=[Relation(kind="USED", start=used, end=node)],
            replace=False,
            keeps=False,  # a document that its source takes back goes, used or not
        )
        await self._database.retry(lambda: self._write(statement, (node, used)))
        return (await self.scores([number]))[EntityId(number)]

    async def scores(self, ids: Collection[UUID]) -> dict[EntityId, Scored]:
        """How relevant documents are by themselves, with each part; similarity is 0."""
        async with self._database.connection() as connection:
            found = await knowledge.uses_of(connection, [EntityId(number) for number in ids])
        return {number: learning.scored(use, now=self._now()) for number, use in found.items()}

    async def rescore(self) -> int:
        """Score every document anew and make the top lists; how many scores changed."""
        require_all("write")
        return await learning.rescore_all(self._database, now=self._now())

    async def changes(
        self, *, number: UUID | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[KnowledgeChange]:
        """What changed of documents outside, the newest first."""
        require_all("read")
        wanted = None if number is None else EntityId(number)
        async with self._database.connection() as connection:
            return await knowledge.changes(connection, number=wanted, since=since, limit=limit)

    # --- upkeep -----------------------------------------------------------------------------

    async def refresh(
        self,
        *,
        ids: Collection[UUID] | None = None,
        limit: int = MOST_REFRESHED,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> RefreshReport:
        """Look again at documents that are stale and valued, or at those named.

        Raises BadInput for an id that is of no document, or of one that is not fetched.
        """
        require_all("write")
        wanted = await self.due(limit=limit) if ids is None else list(ids)
        nodes = await self.get(wanted)
        docs = [node for node in nodes.values() if isinstance(node, ExternalDoc)]
        for number in ids or ():
            node = nodes.get(EntityId(number))
            if not isinstance(node, ExternalDoc):
                raise BadInput(
                    f"there is no document with the id {number}",
                    hint="`vade graph show NAME` shows the ids of a name.",
                )
            if node.source == "environment":
                raise BadInput(
                    f"{node.title} is read from the installed package",
                    hint="`vade link` reads it again where another version is installed.",
                )
        return await self._refresher.refresh(docs, progress)

    async def due(self, *, limit: int = MOST_REFRESHED) -> list[EntityId]:
        """Documents that are stale by the tier of their source, and valued."""
        require_all("read")
        return await self._refresher.due(limit=limit)

    async def maintain(
        self, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Maintenance:
        """The daily maintenance: scores and top lists, refresh, texts that nobody reads."""
        found = Maintenance(
            rescored=await self.rescore(),
            refreshed=await self.refresh(progress=progress),
            content_removed=await upkeep.clean_content(
                self._database, self.content, now=self._now()
            )
            + await self._clean(),
        )
        await upkeep.note(self._database, "daily_maintenance", found)
        return found

    async def analyse(self) -> Analysis:
        """The weekly analysis: most used and unused documents, sources, gaps."""
        require_all("write")
        found = await upkeep.analyse(self._database, now=self._now())
        await upkeep.note(self._database, "weekly_analysis", found)
        return found

    async def upkeep_if_due(self) -> None:
        """Maintenance and analysis, each where its last turn is long enough ago.

        Missed turns are not made up for, and of several servers one takes each.
        """
        if time.monotonic() - self._upkeep_looked < UPKEEP_LOOK:
            return
        self._upkeep_looked = time.monotonic()
        if await upkeep.take_turn(self._database, "daily_maintenance", now=self._now()):
            await self.maintain()
        if await upkeep.take_turn(self._database, "weekly_analysis", now=self._now()):
            await self.analyse()

    # --- reading ----------------------------------------------------------------------------

    async def query(
        self, name: str, /, *, on: str = "postgresql", **parameters: Any
    ) -> list[dict[str, Any]]:
        """The rows of a named query, in its order. `graph.queries` says which there are.

        Raises BadInput; ProjectionUnavailable where another store is to answer and does not.
        """
        require_all("read")
        prepared = prepare(name, parameters)
        if on in self._others:
            return await self._others[on](name, prepared)
        if on != "postgresql":
            raise BadInput(
                f"the graph is not in {on}",
                hint="Set VADE_NEO4J_URL, and run `vade graph rebuild`.",
            )
        async with self._database.connection() as connection:
            return await graph_queries.ask(connection, name, prepared)

    async def relevant(
        self,
        text: str,
        *,
        language: str = "",
        package: str = "",
        category: str = "",
        limit: int = 5,
    ) -> list[RelevantDocument]:
        """Documents that matter for a text, the most relevant first. Raises BadInput."""
        require_all("read")
        wanted = relevant.query(text, language=language, package=package, category=category)
        try:
            hits = await self._search(wanted)
        except UnknownCollection:
            return []
        best = await relevant.best(self._database, hits, limit=limit, now=self._now())
        documents = await self.get([scored.id for scored, _ in best])
        return [
            RelevantDocument(document=document, scored=scored, passage=hit.text)
            for scored, hit in best
            if isinstance(document := documents.get(scored.id), ExternalDoc)
        ]

    async def get(self, ids: Collection[UUID], *, project: str = "") -> dict[EntityId, Node]:
        """Nodes by their ids; those that are not there are left out."""
        async with self._database.connection() as connection:
            wanted = [EntityId(number) for number in ids]
            found = await rows.by_id(connection, wanted, _seen_by(project))
        return {row.id: kind_named(row.kind).of(row.properties) for row in found}

    async def find(
        self, kind: type[Kind], names: Collection[str], *, project: str = ""
    ) -> list[Kind]:
        """Nodes of a kind by their names (an API by its qualified name)."""
        async with self._database.connection() as connection:
            found = await rows.by_name(connection, kind.__name__, names, _seen_by(project))
        return _of(kind, found)

    async def of_package(
        self,
        kind: type[Kind],
        ecosystem: Ecosystem,
        package: str,
        *,
        version: str | None = None,
        project: str = "",
    ) -> list[Kind]:
        """Nodes about a package, in all its versions or one."""
        async with self._database.connection() as connection:
            found = await rows.of_package(
                connection, kind.__name__, ecosystem, package, version, _seen_by(project)
            )
        return _of(kind, found)

    async def relations(
        self,
        ids: Collection[EntityId],
        *,
        project: str = "",
        kinds: Collection[str] | None = None,
        outgoing: bool = True,
        incoming: bool = True,
    ) -> list[RelationRow]:
        """Relations that start or end at these nodes, with who says so."""
        async with self._database.connection() as connection:
            return await rows.relations_of(
                connection,
                ids,
                _seen_by(project),
                kinds=kinds,
                outgoing=outgoing,
                incoming=incoming,
            )

    async def describe(
        self, name: str, *, kind: str | None = None, project: str = ""
    ) -> list[Described]:
        """Nodes by their id or name, with their relations and what is learned of them.

        Raises BadInput for an unknown kind.
        """
        require_all("read")
        wanted = list(KINDS) if kind is None else [kind_named(kind).__name__]
        async with self._database.connection() as connection:
            return await describe.describe(connection, name, wanted, _seen_by(project), self._now())

    async def counts(self, *, project: str = "") -> GraphCounts:
        """What the graph holds, by kind."""
        require_all("read")
        async with self._database.connection() as connection:
            entities, relations = await rows.counts(connection, _seen_by(project))
            projects = await rows.projects(connection)
        return GraphCounts(entities=entities, relations=relations, projects=projects)


def _seen_by(project: str) -> Sequence[str]:
    return [""] if not project else ["", project]


def _of(kind: type[Kind], found: Sequence[EntityRow]) -> list[Kind]:
    return [kind.of(row.properties) for row in found]
