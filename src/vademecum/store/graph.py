"""Rows of the graph: entities, relations, and the statements that say them.

Calls name their projects; '' is knowledge that all share.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import EntityId, RelationId

Row = TypeVar("Row")
BATCH = 5_000
_ZERO = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
MAX_NAME = 500
"""Characters of a name that are stored and looked up; an index entry holds no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    id: EntityId
    kind: str
    project: str
    name: str
    properties: dict[str, Any]
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRelation:
    id: RelationId
    kind: str
    start_id: EntityId
    end_id: EntityId
    properties: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRow:
    """A relation and who says so: the statement's project, source and key."""

    id: RelationId
    kind: str
    start_id: EntityId
    end_id: EntityId
    properties: dict[str, Any]
    project: str
    source: str
    stated_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How many rows were new and how many differ from before."""

    inserted: int = 0
    updated: int = 0

    def __add__(self, other: "Written") -> "Written":
        return Written(
            inserted=self.inserted + other.inserted, updated=self.updated + other.updated
        )


async def open_statement(
    connection: Connection, project: str, source: str, key: str, digest: str
) -> int:
    """The statement's number, made where new and held until the transaction ends."""
    values = {"project": project, "source": source, "key": key, "digest": digest}
    row = await (await connection.execute(SQL["open_statement"], values)).fetchone()
    assert row is not None
    return int(row[0])


async def upsert_entities(
    connection: Connection, statement: int, rows: Collection[EntityRow], *, mention: bool = False
) -> Written:
    """Store what the statement says; a mention makes what is new and changes nothing else."""
    written = Written()
    for batch in _batches(rows):
        values = _entity_arrays(batch)
        query = SQL["mention_entities"] if mention else SQL["upsert_entities"]
        written += await _written(connection, query, values)
        values = {"ids": values["ids"], "statement": statement}
        await connection.execute(SQL["note_stated"], values)
    return written


async def update_entities(connection: Connection, rows: Sequence[EntityRow]) -> int:
    """Change entities that are there, without stating them; how many there were."""
    values = _entity_arrays(rows)
    wanted = {key: values[key] for key in ("ids", "names", "properties")}
    return (await connection.execute(SQL["update_entities"], wanted)).rowcount


async def upsert_relations(
    connection: Connection, statement: int, rows: Collection[NewRelation]
) -> Written:
    written = Written()
    for batch in _batches(rows):
        values = {
            "statement": statement,
            "ids": [row.id for row in batch],
            "kinds": [row.kind for row in batch],
            "starts": [row.start_id for row in batch],
            "ends": [row.end_id for row in batch],
            "properties": [_json(row.properties) for row in batch],
        }
        written += await _written(connection, SQL["upsert_relations"], values)
    return written


async def retract(
    connection: Connection,
    statement: int,
    *,
    keep_entities: Collection[EntityId] = (),
    keep_relations: Collection[RelationId] = (),
) -> int:
    """Remove what the statement said and does not say any more, and entities that nobody states.

    How many relations and entities went, those that hung on them not counted.
    """
    cursor = await connection.execute(
        SQL["retract_relations"], {"statement": statement, "keep": list(keep_relations)}
    )
    gone = cursor.rowcount
    cursor = await connection.execute(
        SQL["retract_entities"], {"statement": statement, "keep": list(keep_entities)}
    )
    ids = {"ids": [row[0] for row in await cursor.fetchall()]}
    if not ids["ids"]:
        return gone
    await connection.execute(SQL["hold_entities"], ids)
    return gone + (await connection.execute(SQL["delete_unstated"], ids)).rowcount


async def statements(
    connection: Connection, project: str, source: str, keys: Collection[str] | None
) -> list[int]:
    """Numbers of the statements of a source, held; all of them without keys."""
    values = {"project": project, "source": source, "keys": None if keys is None else list(keys)}
    cursor = await connection.execute(SQL["statement_ids"], values)
    return [row[0] for row in await cursor.fetchall()]


async def drop_statement(connection: Connection, statement: int) -> None:
    await connection.execute(SQL["drop_statement"], {"statement": statement})


async def digests(connection: Connection, project: str, source: str) -> dict[str, str]:
    values = {"project": project, "source": source}
    cursor = await connection.execute(SQL["statement_digests"], values)
    return dict(await cursor.fetchall())


async def by_id(
    connection: Connection, ids: Collection[EntityId], projects: Sequence[str]
) -> list[EntityRow]:
    values = {"ids": list(ids), "projects": list(projects)}
    return await read_entities(connection, SQL["entities_by_id"], values)


async def by_name(
    connection: Connection, kind: str, names: Collection[str], projects: Sequence[str]
) -> list[EntityRow]:
    values = {
        "kind": kind,
        "names": [name[:MAX_NAME] for name in names],
        "projects": list(projects),
    }
    return await read_entities(connection, SQL["entities_by_name"], values)


async def of_package(
    connection: Connection,
    kind: str,
    ecosystem: str,
    package: str,
    version: str | None,
    projects: Sequence[str],
) -> list[EntityRow]:
    values = {
        "kind": kind,
        "ecosystem": ecosystem,
        "package": package,
        "version": version,
        "projects": list(projects),
    }
    return await read_entities(connection, SQL["entities_of_package"], values)


async def relations_of(
    connection: Connection,
    ids: Collection[EntityId],
    projects: Sequence[str],
    *,
    kinds: Collection[str] | None = None,
    outgoing: bool = True,
    incoming: bool = True,
) -> list[RelationRow]:
    values = {
        "ids": list(ids),
        "projects": list(projects),
        "kinds": None if kinds is None else list(kinds),
        "outgoing": outgoing,
        "incoming": incoming,
    }
    return await read_relations(connection, SQL["relations_of"], values)


async def counts(
    connection: Connection, projects: Sequence[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Entities and relations by kind."""
    values = {"projects": list(projects)}
    entities = await connection.execute(SQL["count_entities"], values)
    found: dict[str, int] = dict(await entities.fetchall())
    relations = await connection.execute(SQL["count_relations"], values)
    return found, dict(await relations.fetchall())


async def projects(connection: Connection) -> dict[str, int]:
    """The projects that nodes are of, with how many."""
    return dict(await (await connection.execute(SQL["graph_projects"])).fetchall())


async def stated_by(
    connection: Connection, ids: Collection[EntityId]
) -> dict[EntityId, list[tuple[str, str]]]:
    """Who states nodes that all projects share: sources, each with its key."""
    cursor = await connection.execute(SQL["stated_by"], {"ids": list(ids)})
    found: dict[EntityId, list[tuple[str, str]]] = {}
    for number, source, key in await cursor.fetchall():
        found.setdefault(EntityId(number), []).append((source, key))
    return found


async def read_entities(
    connection: Connection, query: str, values: dict[str, Any]
) -> list[EntityRow]:
    """The entities that a query gives."""
    async with connection.cursor(row_factory=class_row(EntityRow)) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()


async def read_relations(
    connection: Connection, query: str, values: dict[str, Any]
) -> list[RelationRow]:
    """The relations that a query gives."""
    async with connection.cursor(row_factory=class_row(RelationRow)) as cursor:
        await cursor.execute(query, values)
        return await cursor.fetchall()


# --- inside ---------------------------------------------------------------------------------


async def _written(connection: Connection, query: str, values: dict[str, Any]) -> Written:
    cursor = await connection.execute(query, values)
    new = [row[0] for row in await cursor.fetchall()]
    return Written(inserted=sum(new), updated=len(new) - sum(new))


def _entity_arrays(rows: Sequence[EntityRow]) -> dict[str, Any]:
    return {
        "ids": [row.id for row in rows],
        "kinds": [row.kind for row in rows],
        "projects": [row.project for row in rows],
        "names": [_clean(row.name)[:MAX_NAME] for row in rows],
        "properties": [_json(row.properties) for row in rows],
    }


def _json(properties: dict[str, Any]) -> str:
    # A zero character is written as an escape; the same letters may be text after a backslash.
    text = _ZERO.sub(lambda found: found[1], json.dumps(properties, ensure_ascii=False))
    return _clean(text)


def _clean(text: str) -> str:
    """Without what PostgreSQL cannot store: zero characters and halves of surrogate pairs."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _batches(rows: Collection[Row]) -> Iterator[list[Row]]:
    waiting = iter(rows)
    while batch := list(islice(waiting, BATCH)):
        yield batch
