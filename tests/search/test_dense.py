"""Nearest neighbours: the index is really used, and a filter never starves the result."""

from collections.abc import AsyncIterator

import numpy as np
import pytest
from pgvector import HalfVector

from vademecum.ranking import chunk_id
from vademecum.store import documents, embeddings
from vademecum.store.db import Connection, Database
from vademecum.types import CollectionId, DocumentId, EmbeddingSpace, SpaceId
from vademecum.vectors import pgvector

ROWS = 12_000
SPACE = EmbeddingSpace(model="test", dimensions=16, digest="1")


@pytest.fixture
async def filled(database: Database) -> AsyncIterator[tuple[Connection, SpaceId]]:
    """Two collections: one with 1 % of the chunks, one with the rest."""
    vectors = np.random.default_rng(7).normal(size=(ROWS, 16)).astype(np.float32)
    async with database.connection() as connection:
        space = await embeddings.space_id(connection, SPACE)
        for name in ("large", "small"):
            await connection.execute(
                "INSERT INTO collections (name, profile, embedder) VALUES (%s, 'docs', 'none')",
                [name],
            )
        await connection.execute(
            "INSERT INTO crawled_documents (collection_id, path, file_path, title, format, content,"
            " content_hash, source_hash)"
            " SELECT id, 'a.md', 'a.md', 'A', 'markdown', 'elephant ' || name, '', ''"
            " FROM collections"
        )
        await connection.execute(
            "INSERT INTO document_chunks (id, document_id, collection_id, chunk_index,"
            " total_chunks, content, title, heading_path, section_id, parent_id, content_hash,"
            " source_hash, token_count, word_count, char_count)"
            " SELECT gen_random_uuid(), d.id, d.collection_id, n, 1, 'text', 'A', '{}', 'a',"
            " gen_random_uuid(), '', '', 1, 1, 4"
            " FROM crawled_documents d, generate_series(1, %s) n"
            " WHERE (n %% 100 = 0) = (d.collection_id = 2)",
            [ROWS],
        )
        cursor = await connection.execute(
            "SELECT id, document_id, collection_id FROM document_chunks"
        )
        rows = [
            embeddings.Embedding(
                chunk_id=chunk,
                document_id=document,
                window_index=0,
                collection_id=collection,
                input_hash=b"",
                vector=vector / np.linalg.norm(vector),
            )
            for (chunk, document, collection), vector in zip(
                await cursor.fetchall(), vectors, strict=True
            )
        ]
        await embeddings.insert(connection, space, rows)
        await embeddings.build_missing_indexes(connection)
        await connection.execute("ANALYZE")
        yield connection, space


@pytest.mark.parametrize("plan", ["force_custom_plan", "force_generic_plan"])
async def test_the_vector_index_is_used(filled: tuple[Connection, SpaceId], plan: str) -> None:
    connection, space = filled
    before = await index_scans(connection, space)
    async with connection.transaction():
        await connection.execute(f"SET LOCAL plan_cache_mode = {plan}")
        await pgvector.nearest(
            connection,
            space=space,
            collection=CollectionId(1),
            vector=np.ones(16, dtype=np.float32),
            limit=8,
        )
    assert await index_scans(connection, space) == before + 1


async def index_scans(connection: Connection, space: SpaceId) -> int:
    await connection.execute("SELECT pg_stat_force_next_flush()")
    cursor = await connection.execute(
        "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = %s",
        [embeddings.index(space)],
    )
    [(scans,)] = await cursor.fetchall()
    return int(scans)


@pytest.mark.parametrize("collection", [1, 2])
async def test_a_filter_does_not_starve_the_result(
    filled: tuple[Connection, SpaceId], collection: int
) -> None:
    connection, space = filled
    vector = np.ones(16, dtype=np.float32)
    hits = await pgvector.nearest(
        connection, space=space, collection=CollectionId(collection), vector=vector, limit=10
    )
    cursor = await connection.execute(
        "SELECT chunk_id FROM embeddings_1 WHERE collection_id = %s"
        " ORDER BY (embedding <=> %s) + 0 LIMIT 10",
        [collection, HalfVector(vector)],
    )
    exact = {chunk for (chunk,) in await cursor.fetchall()}
    assert len(hits) == 10
    assert len(exact & {chunk_id(hit) for hit in hits}) >= 9
    assert hits["score"].tolist() == sorted(hits["score"].tolist(), reverse=True)


@pytest.mark.parametrize(("collection", "scanned"), [(1, 1), (2, 0)])
async def test_few_windows_are_all_compared_and_many_looked_up(
    filled: tuple[Connection, SpaceId], collection: int, scanned: int
) -> None:
    connection, space = filled
    vector = np.ones(16, dtype=np.float32)
    cursor = await connection.execute(
        "SELECT id FROM crawled_documents WHERE collection_id = %s", [collection]
    )
    documents = [DocumentId(document) for (document,) in await cursor.fetchall()]
    before = await index_scans(connection, space)

    hits = await pgvector.nearest(
        connection,
        space=space,
        collection=CollectionId(collection),
        vector=vector,
        limit=8,
        documents=documents,
    )

    assert await index_scans(connection, space) == before + scanned
    everything = await pgvector.similarities(
        connection, space=space, document=documents[0], vector=vector
    )
    best = sorted(everything.values(), reverse=True)[:8]
    assert hits["score"].tolist() == pytest.approx(best, abs=1e-6 if not scanned else 0.05)


async def test_a_keyword_keeps_to_the_documents_that_hold_it(
    filled: tuple[Connection, SpaceId],
) -> None:
    connection, space = filled
    for keyword, expected in (("elephants", 5), ("giraffe", 0)):
        hits = await pgvector.nearest(
            connection,
            space=space,
            collection=CollectionId(1),
            vector=np.ones(16, dtype=np.float32),
            limit=5,
            documents=await documents.holding(connection, CollectionId(1), keyword),
        )
        assert len(hits) == expected
