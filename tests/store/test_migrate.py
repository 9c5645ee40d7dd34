import asyncio
import re

import psycopg
import pytest
from psycopg import sql

from vademecum.errors import DatabaseTooOld
from vademecum.store import embeddings
from vademecum.store.db import Database
from vademecum.store.migrate import migrations
from vademecum.types import EmbeddingSpace


@pytest.fixture
def empty_database_url(database_url: str) -> str:
    """A database without even a schema."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return database_url


def normal(definition: str) -> str:
    """A definition as PostgreSQL shows it, without its own words and white space."""
    return re.sub(r"\s+", " ", definition.replace("public.", "").replace(" USING btree", ""))


async def rows(database: Database, query: str) -> list[str]:
    async with database.connection() as connection:
        cursor = await connection.execute(query)
        return [normal(text) for (text,) in await cursor.fetchall()]


async def test_eight_at_once_migrate_an_empty_database_once(empty_database_url: str) -> None:
    databases = [Database(empty_database_url, size=1) for _ in range(8)]

    await asyncio.gather(*(database.open() for database in databases))

    names = [migration.name for migration in migrations()]
    assert sorted(name for database in databases for name in database.migrated) == names
    assert await rows(databases[0], "SELECT name FROM schema_migrations ORDER BY number") == names
    await asyncio.gather(*(database.close() for database in databases))


async def test_a_migrated_database_is_left_as_it_is(database_url: str) -> None:
    async with Database(database_url) as database:
        assert database.migrated == []


async def test_a_failed_migration_leaves_nothing(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE processing_queue (mine text)")  # in the way of the first

    with pytest.raises(psycopg.errors.DuplicateTable):
        await Database(empty_database_url).open()

    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
    assert tables == [("processing_queue",)]


async def test_the_database_of_a_newer_version_is_refused_and_left_alone(
    database_url: str,
) -> None:
    newest = migrations()[-1].number
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (%s, 'later')", [newest + 1])

    with pytest.raises(DatabaseTooOld) as refusal:
        await Database(database_url).open()

    assert str(refusal.value) == (
        f"the database has migration {newest + 1}, this version knows {newest}"
    )
    assert refusal.value.hint == "Update Vademecum, or use another database."


async def test_documents_are_unique_by_path_url_and_file_and_have_a_source(
    database: Database,
) -> None:
    assert await rows(
        database,
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = 'crawled_documents'::regclass AND contype IN ('c', 'f', 'u')"
        " ORDER BY 1",
    ) == [
        "CHECK (((url IS NOT NULL) OR (file_path IS NOT NULL)))",
        "FOREIGN KEY (collection_id) REFERENCES collections(id) ON DELETE CASCADE",
        "UNIQUE (collection_id, file_path)",
        "UNIQUE (collection_id, path)",
        "UNIQUE (collection_id, url)",
    ]


async def test_the_full_text_vector_is_generated_and_indexed(database: Database) -> None:
    assert await rows(
        database,
        "SELECT generation_expression FROM information_schema.columns"
        " WHERE table_name = 'crawled_documents' AND column_name = 'content_tsv'",
    ) == ["to_tsvector('english'::regconfig, \"left\"(content, 250000))"]
    assert "CREATE INDEX crawled_documents_tsv ON crawled_documents USING gin (content_tsv)" in (
        await rows(database, "SELECT indexdef FROM pg_indexes")
    )


async def test_pending_jobs_are_indexed_by_priority_then_age_and_wait_once(
    database: Database,
) -> None:
    found = await rows(
        database,
        "SELECT indexdef FROM pg_indexes WHERE indexname IN"
        " ('processing_queue_pending', 'processing_queue_once') ORDER BY 1",
    )

    assert found == [
        "CREATE INDEX processing_queue_pending ON processing_queue (priority DESC, id)"
        " WHERE (status = 'pending'::text)",
        "CREATE UNIQUE INDEX processing_queue_once ON processing_queue (document_id, operation)"
        " WHERE (status = 'pending'::text)",
    ]


async def test_what_belongs_to_a_document_goes_with_it(database: Database) -> None:
    async with database.connection() as connection:
        space = await embeddings.space_id(
            connection, EmbeddingSpace(model="m", dimensions=4, digest="d")
        )

    assert await rows(
        database,
        "SELECT conrelid::regclass::text || ' -> ' || confrelid::regclass::text FROM pg_constraint"
        " WHERE contype = 'f' AND confdeltype = 'c' ORDER BY 1",
    ) == [
        "chunk_terms -> document_chunks",
        "crawled_documents -> collections",
        "document_chunks -> crawled_documents",
        "document_facets -> crawled_documents",
        "document_ledger -> crawled_documents",
        f"embeddings_{space} -> document_chunks",
        "ingestion_runs -> collections",
        "interactions -> users",
        "knowledge_scores -> entities",
        "lexical_statistics -> collections",
        "memory -> users",
        "memory_passages -> users",
        "memory_versions -> users",
        "mirror_changes -> mirrors",
        "moves -> collections",
        "processing_queue -> crawled_documents",
        "projection_jobs -> projections",
        "relations -> entities",  # its start
        "relations -> entities",  # its end
        "relations -> graph_statements",
        "rests_on -> notes",
        "run_failures -> ingestion_runs",
        "search_log -> collections",
        "segments -> collections",
        "stated_entities -> entities",
        "stated_entities -> graph_statements",
        "terms -> collections",
        "top_documents -> entities",
        "web_aliases -> collections",
        "web_aliases -> web_pages",
        "web_digests -> collections",
        "web_pages -> collections",
        "web_reads -> web_pages",
        "web_sources -> collections",
    ]


async def test_a_space_has_a_cosine_index_over_vectors_of_its_own_length(
    database: Database,
) -> None:
    wanted = EmbeddingSpace(model="m", dimensions=4, digest="d")
    async with database.connection() as connection:
        space = await embeddings.space_id(connection, wanted)
        again = await embeddings.space_id(connection, wanted)
        other = await embeddings.space_id(
            connection, EmbeddingSpace(model="m", dimensions=4, digest="other weights")
        )
        await embeddings.build_index(connection, space)

    assert again == space != other
    assert await rows(
        database,
        f"SELECT indexdef FROM pg_indexes WHERE indexname = 'embeddings_{space}_hnsw'",
    ) == [
        f"CREATE INDEX embeddings_{space}_hnsw ON embeddings_{space} USING hnsw"
        " (embedding halfvec_cosine_ops) WITH (m='16', ef_construction='64')"
    ]
    assert await rows(
        database,
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        f" WHERE attrelid = 'embeddings_{space}'::regclass AND attname = 'embedding'",
    ) == ["halfvec(4)"]


async def test_many_make_the_same_space_at_once(database_url: str) -> None:
    wanted = EmbeddingSpace(model="m", dimensions=4, digest="d")

    async with Database(database_url, size=8) as database:

        async def make() -> int:
            async with database.connection() as connection:
                return await embeddings.space_id(connection, wanted)

        assert len(set(await asyncio.gather(*(make() for _ in range(8))))) == 1


async def test_a_document_without_a_source_is_refused(database: Database) -> None:
    async with await psycopg.AsyncConnection.connect(database.conninfo) as connection:
        await connection.execute(
            "INSERT INTO collections (name, profile, embedder) VALUES ('c', 'docs', 'none')"
        )
        with pytest.raises(psycopg.errors.CheckViolation, match="has_source"):
            await connection.execute(
                sql.SQL(
                    "INSERT INTO crawled_documents"
                    " (collection_id, path, title, format, content, content_hash, source_hash)"
                    " SELECT id, 'p', 't', 'text', 'c', 'h', 's' FROM collections"
                )
            )
