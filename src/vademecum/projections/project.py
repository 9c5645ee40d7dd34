"""The work of a projection: changes are told in order, differences are named and repaired.

A change of a row is a job, queued by the transaction that makes it. A job tells how the row is at
that moment, so it may be done any number of times, and several changes are told at once.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from vademecum.errors import BadInput
from vademecum.projections.neo4j import TARGET, Neo4j, Stored
from vademecum.projections.shape import TYPES, node, relationship
from vademecum.store import projection as rows
from vademecum.store.db import Database
from vademecum.store.projection import ProjectionJob

BATCH = 2_000
FIRST = UUID(int=0)
What = Literal["missing", "different", "superfluous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A node or relation that is not as PostgreSQL has it."""

    what: What
    is_relation: bool
    id: UUID
    kind: str
    name: str
    detail: str = ""


@dataclass(slots=True, kw_only=True)
class Verification:
    nodes: int = 0
    relations: int = 0
    differences: list[Difference] = field(default_factory=list)
    """The first of them; `different` counts all."""
    different: int = 0
    waiting: int = 0
    """Changes that are still to be told; differences may be no more than that."""


class Projection:
    """The graph of a database in a Neo4j server."""

    def __init__(self, database: Database, neo4j: Neo4j) -> None:
        self._database = database
        self.neo4j = neo4j

    async def work(self, progress: Callable[[int], None] = lambda left: None) -> int:
        """Tell all changes; how many. Stopped anywhere, it goes on where it was."""
        told = 0
        if await self.waiting():
            await self.neo4j.prepare()
        while True:
            in_pass = await self._pass(False, self._tell_nodes, progress)
            in_pass += await self._pass(True, self._tell_relations, progress)
            told += in_pass
            if not in_pass:
                return told

    async def waiting(self) -> int:
        async with self._database.connection() as connection:
            return await rows.left(connection, TARGET)

    async def rebuild(self, progress: Callable[[int], None] = lambda left: None) -> int:
        """Make Neo4j hold what PostgreSQL holds, from now on; how many rows were told.

        What there is too much goes; nothing is emptied before.
        """
        await self.neo4j.prepare()
        async with self._database.transaction() as connection:
            await rows.start(connection, TARGET)
        await self._remove_superfluous()
        return await self.work(progress)

    async def stop(self) -> bool:
        """Tell no more changes, and forget those that wait; whether it was started."""
        async with self._database.transaction() as connection:
            return await rows.stop(connection, TARGET)

    async def verify(self, *, limit: int = 100) -> Verification:
        """Compare every node and relation with all its properties.

        Raises BadInput where the projection was never made.
        """
        async with self._database.connection() as connection:
            if not await rows.started(connection, TARGET):
                raise BadInput(
                    "the graph is not projected to Neo4j",
                    hint="Run `vade graph rebuild --to neo4j` first.",
                )
        found = Verification(waiting=await self.waiting())
        async for difference in self._differences(found):
            found.different += 1
            if len(found.differences) < limit:
                found.differences.append(difference)
        return found

    # --- telling ----------------------------------------------------------------------------

    async def _pass(
        self,
        is_relation: bool,
        tell: Callable[[Collection[UUID]], Awaitable[set[UUID]]],
        progress: Callable[[int], None],
    ) -> int:
        """Once through the jobs of a kind; how many were done."""
        done, last = 0, -1
        while True:
            async with self._database.connection() as connection:
                jobs = await rows.jobs(
                    connection, TARGET, is_relation=is_relation, after=last, limit=BATCH
                )
            if not jobs:
                return done
            last = jobs[-1].sequence
            put_off = await tell([job.id for job in jobs])
            finished = [job for job in jobs if job.id not in put_off]
            await self._finish(is_relation, finished)
            done += len(finished)
            progress(await self.waiting())

    async def _finish(self, is_relation: bool, jobs: Collection[ProjectionJob]) -> None:
        async def finish() -> None:
            async with self._database.connection() as connection:
                await rows.done(connection, TARGET, is_relation=is_relation, jobs=jobs)

        await self._database.retry(finish)

    async def _tell_nodes(self, ids: Collection[UUID]) -> set[UUID]:
        async with self._database.connection() as connection:
            present = await rows.entities(connection, ids)
        known = {row.id for row in present}
        await self.neo4j.write_nodes(present)
        await self.neo4j.delete_nodes([each for each in ids if each not in known])
        return set()

    async def _tell_relations(self, ids: Collection[UUID]) -> set[UUID]:
        async with self._database.connection() as connection:
            present = await rows.relations(connection, ids)
        known = {UUID(str(row.id)) for row in present}
        await self.neo4j.delete_relationships([each for each in ids if each not in known])
        # One whose end is told later waits for the next pass.
        return known - await self.neo4j.write_relationships(present)

    # --- comparing --------------------------------------------------------------------------

    async def _differences(self, found: Verification) -> AsyncIterator[Difference]:
        nodes = _compare(
            self._wanted_nodes(), self._pages(self.neo4j.nodes_after), is_relation=False
        )
        async for each in nodes:
            if isinstance(each, Difference):
                yield each
            else:
                found.nodes += 1
        wanted = await self._wanted_relations()
        for type_ in TYPES:

            async def page(last: UUID, limit: int, of: str = type_) -> list[Stored]:
                return await self.neo4j.relationships(of, last, limit)

            mine = _listed(wanted.get(type_, []))
            async for each in _compare(mine, self._pages(page), is_relation=True):
                if isinstance(each, Difference):
                    yield each
                else:
                    found.relations += 1

    async def _wanted_nodes(self) -> AsyncIterator[Stored]:
        last = FIRST
        while True:
            async with self._database.connection() as connection:
                page = await rows.entities_after(connection, last, BATCH)
            for row in page:
                yield Stored(id=row.id, kind=row.kind, properties=node(row))
            if not page:
                return
            last = page[-1].id

    async def _wanted_relations(self) -> dict[str, list[Stored]]:
        found: dict[str, list[Stored]] = {}
        last = FIRST
        while True:
            async with self._database.connection() as connection:
                page = await rows.relations_after(connection, last, BATCH)
            for row in page:
                stored = Stored(id=row.id, kind=row.kind, properties=relationship(row))
                found.setdefault(row.kind, []).append(stored)
            if not page:
                return found
            last = page[-1].id

    async def _pages(
        self, page: Callable[[UUID, int], Awaitable[list[Stored]]]
    ) -> AsyncIterator[Stored]:
        last = FIRST
        while found := await page(last, BATCH):
            for each in found:
                yield each
            last = found[-1].id

    async def _remove_superfluous(self) -> None:
        found = Verification()
        nodes: list[UUID] = []
        relations: list[UUID] = []
        async for each in self._differences(found):
            if each.what == "superfluous":
                (relations if each.is_relation else nodes).append(each.id)
        for start in range(0, len(relations), BATCH):
            await self.neo4j.delete_relationships(relations[start : start + BATCH])
        for start in range(0, len(nodes), BATCH):
            await self.neo4j.delete_nodes(nodes[start : start + BATCH])


async def _listed(found: Collection[Stored]) -> AsyncIterator[Stored]:
    for each in found:
        yield each


async def _compare(
    wanted: AsyncIterator[Stored], present: AsyncIterator[Stored], *, is_relation: bool
) -> AsyncIterator[Difference | Stored]:
    """Two streams in the order of ids: what differs, and what is as it should be."""
    mine, theirs = await anext(wanted, None), await anext(present, None)
    while mine is not None or theirs is not None:
        if theirs is None or (mine is not None and mine.id < theirs.id):
            assert mine is not None
            yield _difference("missing", mine, is_relation)
            mine = await anext(wanted, None)
        elif mine is None or theirs.id < mine.id:
            yield _difference("superfluous", theirs, is_relation)
            theirs = await anext(present, None)
        else:
            detail = _detail(mine, theirs)
            yield _difference("different", mine, is_relation, detail) if detail else mine
            mine, theirs = await anext(wanted, None), await anext(present, None)


def _detail(mine: Stored, theirs: Stored) -> str:
    if mine.kind != theirs.kind:
        return f"kind {theirs.kind}"
    keys = sorted(set(mine.properties) | set(theirs.properties))
    return ", ".join(k for k in keys if mine.properties.get(k) != theirs.properties.get(k))


def _difference(
    what: What,
    stored: Stored,
    is_relation: bool,
    detail: str = "",
) -> Difference:
    properties: Any = stored.properties
    return Difference(
        what=what,
        is_relation=is_relation,
        id=stored.id,
        kind=stored.kind,
        name=str(properties.get("stated_by" if is_relation else "name", "")),
        detail=detail,
    )
