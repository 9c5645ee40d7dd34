"""The documents of a collection, to be read in order: whole, a lesson, a chunk in its place."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from vademecum.errors import BadInput, NotStored
from vademecum.profiles.profile import load_profile
from vademecum.search.filters import parse_filters
from vademecum.store import collections, documents, facets, reading
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.reading import ChunkDetails, DocumentOverview, IngestionTotals
from vademecum.types import CollectionId, DocumentId

Used = Callable[[str, CollectionId, str, str | None], Awaitable[None]]

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

    def __init__(self, database: Database, *, used: Used) -> None:
        """`used` is told of what was read: collection, path, section."""
        self._database = database
        self._used = used

    async def read(self, collection: str, path: str, *, section: str | None = None) -> str:
        """A document as Markdown, or one section of it. Raises BadInput, UnknownCollection."""
        if "\0" in f"{collection}{path}{section}":
            raise BadInput("a document's name holds no zero byte")
        async with self._database.connection() as connection:
            target = await collections.find(connection, collection)
            text = await documents.text_of(connection, target.id, path, section=section)
            if text is None and section and await documents.text_of(connection, target.id, path):
                raise BadInput(
                    f"{collection}/{path} has no section {section}",
                    hint="Hits name sections; without #… all of the document is read.",
                )
        if text is None:
            raise BadInput(
                f"{collection} holds no document {path}",
                hint="`vade documents list` and hits name the paths.",
            )
        await self._used(collection, target.id, path, section)
        return text

    async def read_reference(self, reference: str) -> str:
        """What a citation names, COLLECTION/PATH or COLLECTION/PATH#SECTION, as Markdown.

        Raises BadInput, UnknownCollection.
        """
        name, slash, place = reference.strip().strip("[]").removeprefix("source: ").partition("/")
        if not name or not slash or not place:
            raise BadInput(
                f"{reference!r} is no reference", hint="It is COLLECTION/PATH#SECTION, as hits say."
            )
        path, _, section = place.partition("#")
        return await self.read(name, path, section=section or None)

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
