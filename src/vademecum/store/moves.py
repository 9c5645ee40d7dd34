"""Moves: the way of a collection from one embedder to another, and what it is judged by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import CollectionId, SpaceId

MoveState = Literal["filling", "refused", "accepted"]
JudgedBy = Literal["gold", "logged", "nobody"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRow:
    collection_id: CollectionId
    collection: str
    present: str
    """The embedder that it is searched with now."""
    embedder: str
    """The one that it moves to."""
    space_id: SpaceId
    space_key: str
    done: bool
    """Whether it is searched with the new one."""
    filled: bool
    """Whether every document that can be found is embedded for the new one."""
    state: MoveState
    judged_by: JudgedBy
    questions: Sequence[Mapping[str, Any]]
    """As the lines of a gold file."""
    verdict: Mapping[str, Any] | None
    started_at: datetime
    judged_at: datetime | None


async def start(
    connection: Connection,
    collection: CollectionId,
    *,
    embedder: str,
    space: SpaceId,
    judged_by: JudgedBy,
    questions: Sequence[Mapping[str, Any]],
) -> None:
    """From now on the collection moves; judged by nobody, it is accepted beforehand."""
    await connection.execute(
        SQL["start_move"],
        {"collection": collection, "embedder": embedder, "space": space}
        | {"judged_by": judged_by, "questions": Jsonb([dict(one) for one in questions])},
    )


async def forget(connection: Connection, collection: CollectionId) -> None:
    await connection.execute(SQL["forget_move"], {"collection": collection})


async def of_collection(connection: Connection, collection: CollectionId) -> MoveRow | None:
    """The last move of a collection."""
    async with connection.cursor(row_factory=class_row(MoveRow)) as cursor:
        await cursor.execute(SQL["move"], {"collection": collection})
        return await cursor.fetchone()


async def filling(
    connection: Connection, collection: CollectionId | None = None
) -> list[CollectionId]:
    """The collections, all or this one, whose move has still to be judged."""
    cursor = await connection.execute(SQL["moves_under_way"], {"collection": collection})
    return [found for (found,) in await cursor.fetchall()]


async def judge(
    connection: Connection, move: MoveRow, state: MoveState, verdict: Mapping[str, Any] | None
) -> None:
    """Note what was found; nothing where the move was started again meanwhile."""
    await connection.execute(
        SQL["judge_move"],
        {"collection": move.collection_id, "started_at": move.started_at, "state": state}
        | {"verdict": None if verdict is None else Jsonb(dict(verdict))},
    )
