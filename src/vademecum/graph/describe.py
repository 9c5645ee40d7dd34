"""A node with all that hangs on it, to be looked at."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from vademecum.graph import learning
from vademecum.graph.learning import Scored
from vademecum.store import graph as rows
from vademecum.store import knowledge
from vademecum.store.db import Connection
from vademecum.store.graph import EntityRow
from vademecum.types import EntityId

MOST = 100
"""Nodes of one name that are described."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedRelation:
    kind: str
    outgoing: bool
    other_id: EntityId
    other_kind: str
    other_name: str
    properties: dict[str, Any]
    source: str
    stated_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    id: EntityId
    kind: str
    project: str
    name: str
    properties: dict[str, Any]
    scored: Scored | None
    relations: list[DescribedRelation]


async def describe(
    connection: Connection, name: str, kinds: Sequence[str], projects: Sequence[str], now: datetime
) -> list[Described]:
    """Nodes of an id or a name, at most MOST."""
    try:
        found = await rows.by_id(connection, [EntityId(UUID(name))], projects)
    except ValueError:
        found = [
            row for kind in kinds for row in await rows.by_name(connection, kind, [name], projects)
        ]
    found = [row for row in found if row.kind in kinds][:MOST]
    ids = [row.id for row in found]
    related = await rows.relations_of(connection, ids, projects)
    ends = {end for relation in related for end in (relation.start_id, relation.end_id)}
    others = {row.id: row for row in await rows.by_id(connection, ends, projects)}
    uses = await knowledge.uses_of(connection, ids)

    def of(row: EntityRow) -> Described:
        return Described(
            id=row.id,
            kind=row.kind,
            project=row.project,
            name=row.name,
            properties=row.properties,
            scored=learning.scored(uses[row.id], now=now) if row.id in uses else None,
            relations=[
                DescribedRelation(
                    kind=each.kind,
                    outgoing=each.start_id == row.id,
                    other_id=other.id,
                    other_kind=other.kind,
                    other_name=other.name,
                    properties=each.properties,
                    source=each.source,
                    stated_by=each.stated_by,
                )
                for each in related
                if row.id in (each.start_id, each.end_id)
                and (other := others.get(each.end_id if each.start_id == row.id else each.start_id))
            ],
        )

    return [of(row) for row in found]
