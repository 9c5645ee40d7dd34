"""What a projection has still to be told, and the rows it is told."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.graph import EntityRow, RelationRow, read_entities, read_relations
from vademecum.store.sql import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionJob:
    """A row that changed or went; `sequence` differs each time it is queued."""

    id: UUID
    sequence: int


async def start(connection: Connection, target: str) -> None:
    """From the end of the transaction on every change is queued; what there is, is queued too."""
    values = {"target": target}
    await connection.execute(SQL["start_projection"], values)
    await connection.execute(SQL["queue_all_entities"], values)
    await connection.execute(SQL["queue_all_relations"], values)


async def stop(connection: Connection, target: str) -> bool:
    """Whether it was started."""
    return (await connection.execute(SQL["stop_projection"], {"target": target})).rowcount > 0


async def started(connection: Connection, target: str) -> bool:
    row = await (await connection.execute(SQL["projection_started"], {"target": target})).fetchone()
    return bool(row and row[0])


async def left(connection: Connection, target: str) -> int:
    row = await (await connection.execute(SQL["projection_left"], {"target": target})).fetchone()
    return int(row[0]) if row else 0


async def jobs(
    connection: Connection, target: str, *, is_relation: bool, after: int, limit: int
) -> list[ProjectionJob]:
    """The oldest jobs after a sequence."""
    values = {"target": target, "is_relation": is_relation, "after": after, "limit": limit}
    async with connection.cursor(row_factory=class_row(ProjectionJob)) as cursor:
        await cursor.execute(SQL["projection_jobs"], values)
        return await cursor.fetchall()


async def done(
    connection: Connection, target: str, *, is_relation: bool, jobs: Collection[ProjectionJob]
) -> None:
    values = {
        "target": target,
        "is_relation": is_relation,
        "ids": [job.id for job in jobs],
        "sequences": [job.sequence for job in jobs],
    }
    await connection.execute(SQL["projection_done"], values)


async def entities(connection: Connection, ids: Collection[UUID]) -> list[EntityRow]:
    return await read_entities(connection, SQL["projected_entities"], {"ids": list(ids)})


async def relations(connection: Connection, ids: Collection[UUID]) -> list[RelationRow]:
    return await read_relations(connection, SQL["projected_relations"], {"ids": list(ids)})


async def entities_after(connection: Connection, last: UUID, limit: int) -> list[EntityRow]:
    """The next rows by id."""
    return await read_entities(connection, SQL["entities_after"], {"after": last, "limit": limit})


async def relations_after(connection: Connection, last: UUID, limit: int) -> list[RelationRow]:
    return await read_relations(connection, SQL["relations_after"], {"after": last, "limit": limit})
