"""The search log: queries with the sources that were read after them."""

from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import CollectionId


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedSource:
    """A source that was read after a query, `uses` times."""

    query: str
    path: str
    section_id: str
    """Empty where the document was read as a whole."""
    uses: int
    last_used: datetime


async def note(
    connection: Connection, collection: CollectionId, *, query: str, path: str, section: str
) -> None:
    await connection.execute(
        SQL["log_search"],
        {"collection": collection, "query": query, "path": path, "section": section},
    )


async def forget_old(connection: Connection, *, days: int) -> None:
    await connection.execute(SQL["forget_old_searches"], {"days": days})


async def forget(connection: Connection, collection: CollectionId) -> int:
    """Forget all of a collection; answers how many rows there were."""
    cursor = await connection.execute(SQL["forget_searches"], {"collection": collection})
    return cursor.rowcount


async def used(connection: Connection, collection: CollectionId, *, days: int) -> list[UsedSource]:
    """By query; of the last `days`, 0 for all."""
    async with connection.cursor(row_factory=class_row(UsedSource)) as cursor:
        await cursor.execute(SQL["used_sources"], {"collection": collection, "days": days})
        return await cursor.fetchall()
