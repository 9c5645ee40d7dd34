"""The documents of a collection, to be read in order: whole, a lesson, a chunk in its place."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from vademecum.errors import BadInput, NotStored
from vademecum.profiles.profile import load_profile
from vademecum.search.filters import parse_filters
from vademecum.store import collections, facets, reading
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.reading import ChunkDetails, DocumentOverview, IngestionTotals
from vademecum.types import DocumentId

MAX_LISTED = 1000
MAX_CONTEXT = 50
"""Chunks before and after one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentList:
    documents: list[DocumentOverview]
    """In the order of their paths."""
    next: str | None
    """What to give as `after` for those that follow; None at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A whole document as it is searched: all its chunks, in order, of one version."""

    collection: str
    parent_id: UUID
    path: str
    title: str
    chunks: list[ChunkDetails]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkInContext:
    chunk: ChunkDetails
    before: list[ChunkDetails]
    """In reading order, the nearest last."""
    after: list[ChunkDetails]


class Shelf:
    """`app.shelf`. Every call names its collection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def listed(
        self,
        collection: str,
        *,
        after: str | None = None,
        filters: Sequence[str] = (),
        limit: int = 100,
    ) -> DocumentList:
        """The documents, by path. Raises BadInput, UnknownCollection, BadFilter."""
        if not 1 <= limit <= MAX_LISTED:
            raise BadInput(f"at most {MAX_LISTED} documents are listed, not {limit}")
        async with self._database.connection() as connection:
            target = await collections.find(connection, collection)
            found = await reading.documents_page(
                connection,
                target.id,
                after=after,
                within=await _within(connection, target, filters) if filters else None,
                limit=limit + 1,
            )
        page = found[:limit]
        return DocumentList(documents=page, next=page[-1].path if len(found) > limit else None)

    async def lesson(self, collection: str, parent: UUID) -> Lesson:
        """All chunks of one parent, in order. Raises NotStored, UnknownCollection."""
        async with self._database.connection() as connection:
            target = await collections.find(connection, collection)
            found = await reading.of_parent(connection, target.id, parent)
        if not found:
            raise NotStored(f"{collection} holds no document of the parent {parent}")
        first = found[0]
        return Lesson(
            collection=collection,
            parent_id=first.parent_id,
            path=first.path,
            title=first.title,
            chunks=found,
        )

    async def chunk(self, collection: str, chunk: UUID, *, context: int = 0) -> ChunkInContext:
        """A chunk with so many before and after it. Raises BadInput, NotStored,
        UnknownCollection."""
        if not 0 <= context <= MAX_CONTEXT:
            raise BadInput(f"context must be from 0 to {MAX_CONTEXT}, not {context}")
        async with self._database.connection() as connection:
            target = await collections.find(connection, collection)
            found = await reading.around(connection, target.id, chunk, context)
        place = next((i for i, one in enumerate(found) if one.id == chunk), None)
        if place is None:
            raise NotStored(f"{collection} holds no chunk {chunk}")
        return ChunkInContext(chunk=found[place], before=found[:place], after=found[place + 1 :])

    async def state(self, collection: str) -> IngestionTotals:
        """How much is recorded, and when all of it was last gone over. Raises UnknownCollection."""
        async with self._database.connection() as connection:
            target = await collections.find(connection, collection)
            return await reading.totals(connection, target.id)


async def _within(
    connection: Connection, target: Collection, filters: Sequence[str]
) -> Sequence[DocumentId]:
    conditions = parse_filters(filters, load_profile(target.profile, target.declaration))
    return await facets.matching(connection, target.id, conditions)
