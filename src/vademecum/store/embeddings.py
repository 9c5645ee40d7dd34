"""Embeddings: a table for each embedding space, one row for each window of a chunk."""

from collections.abc import Collection as Ids
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from vademecum.store.arrays import copied, halves
from vademecum.store.db import Connection, identifier
from vademecum.store.migrate import LOCK
from vademecum.store.sql import SQL
from vademecum.types import ChunkId, CollectionId, DocumentId, EmbeddingSpace, SpaceId, Vector

WHOLE = 10_000
"""Windows from which on a space has a vector index. Fewer are all compared: exact, and the same for
every index of the same documents. Measured with 384 dimensions and 150 chunks wanted: 5000 windows
in 2.3 ms, 10 000 in 4.3, 20 000 in 8.5, by an index in 1.0 to 1.5; to build one over 7000 takes 3 %
of the processor time in which they are embedded. Who asks often compares in memory anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """One window of a chunk as a vector."""

    chunk_id: ChunkId
    window_index: int
    document_id: DocumentId
    collection_id: CollectionId
    input_hash: bytes
    """SHA-256 of the text that was embedded."""
    vector: Vector


def table(space: SpaceId) -> str:
    return f"embeddings_{space}"


def index(space: SpaceId) -> str:
    return f"embeddings_{space}_hnsw"


async def space_id(connection: Connection, space: EmbeddingSpace) -> SpaceId:
    """The space's number; its table is made where it is new."""
    cursor = await connection.execute("SELECT id FROM embedding_spaces WHERE key = %s", [space.key])
    row = await cursor.fetchone()
    if row is not None:
        return SpaceId(row[0])
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        cursor = await connection.execute(
            "INSERT INTO embedding_spaces (key, model, dimensions) VALUES (%s, %s, %s)"
            " ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING id",
            [space.key, space.model, space.dimensions],
        )
        row = await cursor.fetchone()
        assert row is not None
        made = SpaceId(row[0])
        await connection.execute(
            identifier(
                "CREATE TABLE IF NOT EXISTS {table} ("
                " chunk_id uuid NOT NULL REFERENCES document_chunks (id) ON DELETE CASCADE,"
                " window_index smallint NOT NULL,"
                " document_id integer NOT NULL,"
                " collection_id integer NOT NULL,"
                " input_hash bytea NOT NULL,"
                f" embedding halfvec({space.dimensions}) NOT NULL,"
                " PRIMARY KEY (chunk_id, window_index))",
                table=table(made),
            )
        )
        for name, column in (("collection_id", "collection_id"), ("document", "document_id")):
            await connection.execute(
                identifier(
                    "CREATE INDEX IF NOT EXISTS {name} ON {table} ({column})",
                    name=f"{table(made)}_{name}",
                    table=table(made),
                    column=column,
                )
            )
    return made


async def build_index(connection: Connection, space: SpaceId) -> None:
    """The HNSW index over all vectors of a space, where it is missing. Writers wait for it."""
    cursor = await connection.execute("SELECT to_regclass(%s) IS NULL", [index(space)])
    row = await cursor.fetchone()
    if row is None or not row[0]:
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        # Few rows are much work here: a thousand are worth a second core, not only 8 MB of them.
        await connection.execute("SET LOCAL min_parallel_table_scan_size = '1MB'")
        # A build on several cores takes all the memory it may have at once, and clears it: let that
        # be what it needs, less than twice the table (measured: 384 dimensions, pgvector 0.8).
        await connection.execute(
            "SELECT set_config(name, least(setting::bigint,"
            " greatest(65536, pg_table_size(%s) * 2 / 1024)) || 'kB', true)"
            " FROM pg_settings WHERE name = 'maintenance_work_mem'",
            [table(space)],
        )
        await connection.execute(
            identifier(
                "CREATE INDEX IF NOT EXISTS {index} ON {table}"
                " USING hnsw (embedding halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)",
                index=index(space),
                table=table(space),
            )
        )


async def drop_index(connection: Connection, space: SpaceId) -> None:
    """Before a large load: building it once afterwards is several times cheaper."""
    await connection.execute(identifier("DROP INDEX IF EXISTS {index}", index=index(space)))


async def build_missing_indexes(connection: Connection) -> None:
    """Of the spaces that are large enough for one."""
    small = await smaller_than(connection, WHOLE)
    for space in await _spaces(connection):
        if space not in small:
            await build_index(connection, space)


async def smaller_than(connection: Connection, rows: int) -> list[SpaceId]:
    """The spaces that hold fewer rows than this."""
    small = []
    for space in await _spaces(connection):
        cursor = await connection.execute(
            identifier(
                "SELECT count(*) FROM (SELECT FROM {table} LIMIT %s) AS first", table=table(space)
            ),
            [rows],
        )
        row = await cursor.fetchone()
        if row is not None and row[0] < rows:
            small.append(space)
    return small


async def purge_left(connection: Connection) -> None:
    """The vectors of collections that have moved to another space."""
    for space in await _spaces(connection):
        cursor = await connection.execute(SQL["collections_left"], {"space": space})
        left = [collection for (collection,) in await cursor.fetchall()]
        await connection.execute(
            identifier("DELETE FROM {table} WHERE collection_id = ANY (%s)", table=table(space)),
            [left],
        )


async def _spaces(connection: Connection) -> list[SpaceId]:
    cursor = await connection.execute("SELECT id FROM embedding_spaces ORDER BY id")
    return [SpaceId(space) for (space,) in await cursor.fetchall()]


async def of_documents(
    connection: Connection, space: SpaceId, documents: Ids[DocumentId]
) -> list[Embedding]:
    """The embeddings of the present chunks of documents."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        identifier(
            "SELECT e.chunk_id, e.window_index, e.document_id, e.collection_id, e.input_hash,"
            " e.embedding"
            " FROM {table} e JOIN document_chunks k ON k.id = e.chunk_id"
            " WHERE k.document_id = ANY (%s) ORDER BY e.chunk_id, e.window_index",
            table=table(space),
        ),
        [list(documents)],
    )
    return [
        Embedding(
            chunk_id=chunk,
            window_index=window,
            document_id=document,
            collection_id=collection,
            input_hash=bytes(digest),
            vector=to_array(vector),
        )
        for chunk, window, document, collection, digest, vector in await cursor.fetchall()
    ]


async def digests(
    connection: Connection, space: SpaceId, chunks: Ids[ChunkId]
) -> dict[ChunkId, list[bytes]]:
    """The digests of what is embedded of each chunk, in the order of its windows."""
    cursor = await connection.execute(
        identifier(
            "SELECT chunk_id, array_agg(input_hash ORDER BY window_index) FROM {table}"
            " WHERE chunk_id = ANY (%s) GROUP BY chunk_id",
            table=table(space),
        ),
        [list(chunks)],
    )
    return {chunk: [bytes(digest) for digest in found] for chunk, found in await cursor.fetchall()}


async def delete(connection: Connection, space: SpaceId, chunks: Ids[ChunkId]) -> None:
    await connection.execute(
        identifier("DELETE FROM {table} WHERE chunk_id = ANY (%s)", table=table(space)),
        [list(chunks)],
    )


async def insert(connection: Connection, space: SpaceId, rows: Sequence[Embedding]) -> None:
    statement = identifier(
        "COPY {table} (chunk_id, window_index, document_id, collection_id, input_hash, embedding)"
        " FROM STDIN (FORMAT BINARY)",
        table=table(space),
    )
    if not rows:
        return
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        await copy.write(
            copied(
                _bytes([row.chunk_id.bytes for row in rows]),
                np.array([row.window_index for row in rows], ">i2"),
                np.array([row.document_id for row in rows], ">i4"),
                np.array([row.collection_id for row in rows], ">i4"),
                _bytes([row.input_hash for row in rows]),
                halves(np.stack([row.vector for row in rows])),
            )
        )


def _bytes(rows: Sequence[bytes]) -> NDArray[np.uint8]:
    """A column of as many bytes in each row, shape (rows, bytes)."""
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def to_array(vector: HalfVector) -> Vector:
    return np.asarray(vector.to_numpy(), dtype=np.float32)
