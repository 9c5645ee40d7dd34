"""Mirrors: collections whose vectors are also in another store, and what it has yet to be told."""

from collections.abc import Collection as Ids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NewType

from psycopg import sql
from psycopg.rows import class_row

from vademecum.store import embeddings, ledger
from vademecum.store.db import Connection, identifier
from vademecum.store.embeddings import table
from vademecum.store.sql import SQL
from vademecum.types import ChunkId, CollectionId, DocumentId, SpaceId, Vector

BROKEN = """
SELECT CASE WHEN encode(sha256(convert_to(k.content, 'UTF8')), 'hex') <> k.content_hash
            THEN 'changed' ELSE 'missing' END, k.id, k.document_id
  FROM document_chunks k
  JOIN crawled_documents d ON d.id = k.document_id AND NOT d.needs_processing
  LEFT JOIN LATERAL (SELECT count(*) AS windows, max(e.window_index) AS last
                       FROM {table} e WHERE e.chunk_id = k.id) w ON true
 WHERE k.collection_id = %(collection)s
   AND (w.windows = 0 OR w.windows <> w.last + 1
        OR encode(sha256(convert_to(k.content, 'UTF8')), 'hex') <> k.content_hash)
 ORDER BY k.id
"""
"""Chunks without vectors or with a gap between their windows, and chunks whose text is not the one
that their hash is of."""

MirrorId = NewType("MirrorId", int)
State = Literal["filling", "serving", "leaving"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorRow:
    id: MirrorId
    collection_id: CollectionId
    space_id: SpaceId
    store: str
    """qdrant or pinecone."""
    place: str
    """Its collection or index there."""
    tenant: str
    state: State
    follows: bool
    """Whether it serves by itself once its collection has moved to its space."""
    dimensions: int
    """Of the space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a store is told of a chunk beside its vectors."""

    chunk_id: ChunkId
    document_id: DocumentId
    facets: Mapping[str, object]
    text: str
    fields: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What serving mirrors have yet to be told."""

    chunks: int
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWindow:
    """One window of a chunk as it is in PostgreSQL."""

    chunk_id: ChunkId
    window_index: int
    input_hash: bytes
    vector: Vector | None = None


async def of_collection(
    connection: Connection, collection: CollectionId | None = None
) -> list[MirrorRow]:
    """The mirrors of a collection, or all."""
    async with connection.cursor(row_factory=class_row(MirrorRow)) as cursor:
        await cursor.execute(SQL["mirrors"], {"collection": collection})
        return await cursor.fetchall()


async def create(
    connection: Connection,
    collection: CollectionId,
    space: SpaceId,
    *,
    store: str,
    tenant: str,
    follows: bool = False,
) -> MirrorRow:
    """The mirror of this collection, space and store; one that is new is told all chunks.

    Call inside a transaction: from its end on every change of the vectors is noted.
    """
    await follow(connection, space)
    async with connection.cursor(row_factory=class_row(MirrorRow)) as cursor:
        await cursor.execute(
            SQL["create_mirror"],
            {"collection": collection, "space": space, "store": store, "tenant": tenant}
            | {"follows": follows},
        )
        made = await cursor.fetchone()
    if made is None:
        present = await of_collection(connection, collection)
        return next(
            m for m in present if (m.space_id, m.store) == (space, store) and m.state != "leaving"
        )
    await note_all(connection, made)
    return made


async def follow(connection: Connection, space: SpaceId) -> None:
    """Note changes of a space's vectors, of chunks and of facets from now on.

    Where nothing is mirrored there are no such triggers, and they cost nothing.
    """
    for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD")):
        await connection.execute(
            identifier(
                f"CREATE OR REPLACE TRIGGER {{trigger}} AFTER {event} ON {{table}}"
                f" REFERENCING {rows} TABLE AS changed FOR EACH STATEMENT"
                f" EXECUTE FUNCTION note_vector_changes({int(space)})",
                trigger=f"mirrors_note_{event.lower()}",
                table=table(space),
            )
        )
    await connection.execute(
        "CREATE OR REPLACE TRIGGER mirrors_note_update AFTER UPDATE ON document_chunks"
        " FOR EACH ROW EXECUTE FUNCTION note_chunk_change()"
    )
    await connection.execute(
        "CREATE OR REPLACE TRIGGER mirrors_note_facets AFTER UPDATE OF facets ON crawled_documents"
        " FOR EACH ROW WHEN (OLD.facets IS DISTINCT FROM NEW.facets)"
        " EXECUTE FUNCTION note_facets_change()"
    )


async def note_all(connection: Connection, mirror: MirrorRow) -> None:
    """Have the store told of every chunk."""
    await connection.execute(
        identifier(
            "INSERT INTO mirror_changes (mirror_id, chunk_id)"
            " SELECT %s, chunk_id FROM {table} WHERE collection_id = %s AND window_index = 0",
            table=table(mirror.space_id),
        ),
        [mirror.id, mirror.collection_id],
    )


async def note(connection: Connection, mirror: MirrorRow, chunks: Ids[ChunkId]) -> None:
    """Have the store told of these chunks."""
    await connection.execute(SQL["note_chunks"], {"mirror": mirror.id, "chunks": list(chunks)})


async def serve(connection: Connection, mirror: MirrorRow) -> None:
    """Answer searches from this mirror."""
    await connection.execute(
        SQL["serve_from_mirror"],
        {"mirror": mirror.id, "collection": mirror.collection_id, "space": mirror.space_id},
    )


async def serve_from_postgresql(
    connection: Connection, collection: CollectionId, space: SpaceId
) -> None:
    await connection.execute(
        SQL["serve_from_no_mirror"], {"collection": collection, "space": space}
    )


async def take_over(connection: Connection) -> None:
    """Let mirrors serve that were to follow their collections into a new space, and are complete;
    those of the old spaces leave."""
    async with connection.transaction():
        await connection.execute(SQL["leave_old_mirrors"])
        await connection.execute(SQL["mirrors_take_over"])


async def leave(connection: Connection, mirror: MirrorRow) -> None:
    """Have the store forget the collection; the mirror is gone once it has."""
    await connection.execute(SQL["leave_mirror"], {"mirror": mirror.id})


async def delete(connection: Connection, mirror: MirrorRow) -> None:
    await connection.execute(SQL["delete_mirror"], {"mirror": mirror.id})


async def hold(connection: Connection, mirror: MirrorRow) -> bool:
    """Whether this transaction may feed the mirror; another one does if not."""
    cursor = await connection.execute(SQL["hold_mirror"], {"mirror": mirror.id})
    row = await cursor.fetchone()
    return bool(row and row[0])


async def changes(
    connection: Connection, mirror: MirrorRow, *, limit: int
) -> tuple[list[int], list[ChunkId]]:
    """The oldest changes, and the chunks that they are of, each once."""
    cursor = await connection.execute(SQL["mirror_changes"], {"mirror": mirror.id, "limit": limit})
    rows = await cursor.fetchall()
    return [row[0] for row in rows], list(dict.fromkeys(row[1] for row in rows))


async def forget(connection: Connection, ids: Sequence[int]) -> None:
    await connection.execute(SQL["forget_mirror_changes"], {"ids": list(ids)})


async def to_feed(connection: Connection, collection: CollectionId | None) -> list[MirrorRow]:
    """Mirrors that have something to be told."""
    cursor = await connection.execute(SQL["mirrors_to_feed"], {"collection": collection})
    due = {row[0] for row in await cursor.fetchall()}
    if not due:
        return []
    return [mirror for mirror in await of_collection(connection, collection) if mirror.id in due]


async def waiting(connection: Connection, collection: CollectionId | None = None) -> Waiting:
    async with connection.cursor(row_factory=class_row(Waiting)) as cursor:
        await cursor.execute(SQL["waiting_changes"], {"collection": collection})
        found = await cursor.fetchone()
    assert found is not None
    return found


async def told(
    connection: Connection, collection: CollectionId, chunks: Ids[ChunkId]
) -> dict[ChunkId, Told]:
    """What there is to tell of chunks, of those that exist in the collection."""
    async with connection.cursor(row_factory=class_row(Told)) as cursor:
        await cursor.execute(
            SQL["mirror_fields"], {"collection": collection, "chunks": list(chunks)}
        )
        found = {row.chunk_id: row async for row in cursor}
    metadata = await ledger.chunk_metadata(connection, collection, chunks)
    for chunk, row in found.items():
        row.fields.update(metadata.get(chunk, {}))
    return found


async def windows(
    connection: Connection,
    mirror: MirrorRow,
    chunks: Ids[ChunkId],
    *,
    vectors: bool = True,
) -> list[StoredWindow]:
    """The windows of chunks in the mirror's space, with or without their vectors."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        identifier(
            "SELECT chunk_id, window_index, input_hash, CASE WHEN %s THEN embedding END"
            " FROM {table} WHERE collection_id = %s AND chunk_id = ANY (%s)"
            " ORDER BY chunk_id, window_index",
            table=table(mirror.space_id),
        ),
        [vectors, mirror.collection_id, list(chunks)],
    )
    return [
        StoredWindow(
            chunk_id=chunk,
            window_index=window,
            input_hash=bytes(digest),
            vector=embeddings.to_array(vector) if vector is not None else None,
        )
        for chunk, window, digest, vector in await cursor.fetchall()
    ]


async def chunk_ids(connection: Connection, mirror: MirrorRow) -> list[ChunkId]:
    """The chunks that should be in the store."""
    cursor = await connection.execute(
        identifier(
            "SELECT chunk_id FROM {table} WHERE collection_id = %s AND window_index = 0"
            " ORDER BY chunk_id",
            table=table(mirror.space_id),
        ),
        [mirror.collection_id],
    )
    return [chunk for (chunk,) in await cursor.fetchall()]


async def profile_of(
    connection: Connection, collection: CollectionId
) -> tuple[str, str | None] | None:
    """Name and own declaration of the collection's profile; None where it is gone."""
    cursor = await connection.execute(SQL["mirrored_profile"], {"collection": collection})
    row = await cursor.fetchone()
    return (row[0], row[1]) if row else None


async def changes_by_mirror(
    connection: Connection, numbers: Sequence[MirrorId]
) -> dict[MirrorId, int]:
    """Chunks that each mirror has yet to be told of."""
    cursor = await connection.execute(SQL["changes_by_mirror"], {"mirrors": list(numbers)})
    return dict(await cursor.fetchall())


async def broken_chunks(
    connection: Connection, collection: CollectionId, space_table: str
) -> tuple[int, list[tuple[Literal["missing", "changed"], ChunkId, DocumentId]]]:
    """How many windows a collection has in a space, and its chunks that are not whole.

    Documents that are still to be processed are left out.
    """
    cursor = await connection.execute(
        sql.SQL(BROKEN).format(table=sql.Identifier(space_table)),
        {"collection": collection},
    )
    broken = [(kind, chunk, document) for kind, chunk, document in await cursor.fetchall()]
    cursor = await connection.execute(
        identifier("SELECT count(*) FROM {table} WHERE collection_id = %s", table=space_table),
        [collection],
    )
    row = await cursor.fetchone()
    return (row[0] if row else 0), broken


async def sample_queries(connection: Connection, collection: CollectionId, limit: int) -> list[str]:
    """What was searched for last, and headings of some chunks, always the same of the same."""
    cursor = await connection.execute(
        SQL["sample_queries"], {"collection": collection, "limit": limit}
    )
    return [text for (text,) in await cursor.fetchall()]
