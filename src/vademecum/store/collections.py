"""Collections: the unit of isolation. Every read and write names one."""

import re
from dataclasses import dataclass
from datetime import datetime

from psycopg.errors import CheckViolation
from psycopg.rows import class_row

from vademecum.access import require, visible
from vademecum.errors import BadInput, UnknownCollection
from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import CollectionId, SpaceId

_NAME = re.compile(r"[^\W][\w.-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    id: CollectionId
    name: str
    profile: str
    declaration: str | None
    """The profile in TOML where it is the user's own."""
    embedder: str
    """`provider:model` of the vectors it is searched with; `none` for lexical search only."""
    next_embedder: str | None
    """What documents are embedded with, where that is another one: on its way to a new model."""
    space_id: SpaceId | None
    """The embedding space its searches use; None until something is embedded."""
    space_key: str | None
    mirror_id: int | None
    """The mirror that answers its searches; None for PostgreSQL itself."""
    chunk_count: int
    """As it was when the collection was looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionOverview:
    name: str
    profile: str
    embedder: str
    documents: int
    chunks: int
    pending: int
    processing: int
    failed: int
    updated_at: datetime | None


def check_name(name: str) -> str:
    """The name itself; raises BadInput where it cannot be one."""
    if not _NAME.fullmatch(name):
        raise _bad_name(name)
    return name


def _bad_name(name: str) -> BadInput:
    return BadInput(
        f"{name!r} cannot name a collection",
        hint="Use letters, digits, `_`, `-` and `.`; at most 100, the first a letter or digit.",
    )


async def names(connection: Connection) -> list[str]:
    """Those that the caller may know of."""
    cursor = await connection.execute(SQL["collection_names"])
    return [name for (name,) in await cursor.fetchall() if visible(name)]


async def find(connection: Connection, name: str) -> Collection:
    """Raises UnknownCollection, also where it is none of the caller's; NotAllowed."""
    require("read", name)
    async with connection.cursor(row_factory=class_row(Collection)) as cursor:
        await cursor.execute(SQL["collection_by_name"], {"name": name})
        collection = await cursor.fetchone()
    if collection is None:
        raise UnknownCollection(name, await names(connection))
    return collection


async def find_or_create(
    connection: Connection,
    name: str,
    *,
    profile: str,
    embedder: str,
    declaration: str | None = None,
) -> Collection:
    """The collection of this name; profile and embedder count only for a new one.

    Raises BadInput, UnknownCollection, NotAllowed.
    """
    require("write", name)
    values = {"name": check_name(name), "profile": profile, "embedder": embedder} | {
        "declaration": declaration
    }
    async with connection.cursor(row_factory=class_row(Collection)) as cursor:
        try:
            await cursor.execute(SQL["create_collection"], values)
        except CheckViolation:  # what is a letter, PostgreSQL decides
            raise _bad_name(name) from None
        created = await cursor.fetchone()
    return created or await find(connection, name)


async def name_of(connection: Connection, collection: CollectionId) -> str:
    cursor = await connection.execute(SQL["collection_name"], {"collection": collection})
    row = await cursor.fetchone()
    return str(row[0]) if row else ""


async def use_embedder(connection: Connection, collection: CollectionId, embedder: str) -> None:
    """Embed documents with this one; the collection is searched with the present one until
    `settle_spaces` finds that all of them are."""
    await connection.execute(
        SQL["set_next_embedder"], {"collection": collection, "embedder": embedder}
    )


async def stay(connection: Connection, collection: CollectionId) -> None:
    """Embed documents with the present embedder again, and not with another one."""
    await connection.execute(SQL["stay_with_embedder"], {"collection": collection})


async def settle_spaces(connection: Connection) -> None:
    """Let collections be searched in the space that all of their documents are embedded in now,
    where a move to it was accepted."""
    await connection.execute(SQL["settle_spaces"])


async def use_profile(
    connection: Connection, collection: CollectionId, profile: str, declaration: str | None
) -> None:
    await connection.execute(
        SQL["set_collection_profile"],
        {"collection": collection, "profile": profile, "declaration": declaration},
    )


async def delete(connection: Connection, collection: CollectionId) -> None:
    """The collection and all that is in it."""
    await connection.execute(SQL["delete_collection"], {"collection": collection})


async def overview(connection: Connection, name: str | None = None) -> list[CollectionOverview]:
    """What collections hold and what is still to do in them: one, or all to list them."""
    async with connection.cursor(row_factory=class_row(CollectionOverview)) as cursor:
        await cursor.execute(SQL["collection_overview"], {"name": name})
        return [found for found in await cursor.fetchall() if visible(found.name)]
