"""The semantic-layer model, compiled by Cube itself, and its SQL run where the rows are."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from npm import installed
from vademecum.app import App

VERSION = "1.7.43"
CUBES = Path(__file__).parents[2] / "cubes"
COMPILE = Path(__file__).with_name("compile.js")

Write = Callable[[dict[str, str | bytes]], Path]
Query = dict[str, object]

MODEL = {
    "crawled_documents": {
        "dimensions": [
            "content_hash", "created_at", "file_path", "id", "last_fetched_at", "needs_processing",
            "title", "updated_at", "url",
        ],
        "measures": ["avg_content_size", "count", "pending_count"],
        "segments": ["from_files", "from_urls", "pending_processing"],
    },
    "document_chunks": {
        "dimensions": ["chunk_index", "content", "document_id", "id", "token_count"],
        "measures": ["avg_chunk_tokens", "count", "total_tokens"],
        "segments": [],
    },
    "processing_queue": {
        "dimensions": ["id", "operation", "priority", "status"],
        "measures": ["avg_processing_seconds", "count", "failed_jobs", "pending_jobs"],
        "segments": [],
    },
    "collections": {
        "dimensions": ["embedder", "id", "name", "profile"],
        "measures": ["count"],
        "segments": [],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def compiled() -> Callable[..., dict[str, Any]]:
    # Scripts of its packages would download a binary from elsewhere.
    folder = installed("@cubejs-backend/schema-compiler", VERSION, "--ignore-scripts")

    def compile_queries(*queries: Query) -> dict[str, Any]:
        done = subprocess.run(
            ["node", COMPILE, CUBES],
            input=json.dumps(queries),
            env=os.environ | {"NODE_PATH": str(folder / "node_modules")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return compile_queries


def rows(database_url: str, sql: dict[str, Any]) -> list[tuple[Any, ...]]:
    assert not re.search(r"\$\d", sql["text"]), "written for queries without values"
    with psycopg.connect(database_url) as connection:
        return connection.execute(sql["text"].encode()).fetchall()


def test_it_has_every_dimension_measure_and_segment(
    compiled: Callable[..., dict[str, Any]],
) -> None:
    assert compiled()["model"] == MODEL


def test_every_member_runs(compiled: Callable[..., dict[str, Any]], database_url: str) -> None:
    queries: list[Query] = [
        {
            "dimensions": [f"{cube}.{name}" for name in parts["dimensions"]],
            "measures": [f"{cube}.{name}" for name in parts["measures"]],
            "segments": [f"{cube}.{name}" for name in parts["segments"]],
        }
        for cube, parts in MODEL.items()
    ]
    for sql in compiled(*queries)["sql"]:
        assert rows(database_url, sql) == []


async def test_its_numbers_are_those_of_the_store(
    compiled: Callable[..., dict[str, Any]], app: App, database_url: str, write: Write
) -> None:
    await app.ingest.bulk_index(
        write({f"{name}.md": f"# {name}\n\nAll of it.\n" for name in "abc"})
    )
    page = "# Page\n\nA page of the web.\n"
    await app.cache.store_page("https://example.org/a", content=page)

    sql = compiled(
        {"measures": ["crawled_documents.count"], "dimensions": ["collections.name"]},
        {"measures": ["crawled_documents.count"], "segments": ["crawled_documents.from_files"]},
        {
            "measures": ["crawled_documents.count", "crawled_documents.avg_content_size"],
            "segments": ["crawled_documents.from_urls", "crawled_documents.pending_processing"],
        },
        {"measures": ["crawled_documents.pending_count"]},
        {
            "measures": ["document_chunks.count", "document_chunks.total_tokens"],
            "dimensions": ["collections.name"],
        },
        {
            "measures": ["processing_queue.pending_jobs", "processing_queue.failed_jobs"],
            "dimensions": ["crawled_documents.url"],
            "segments": ["crawled_documents.from_urls"],
        },
        {"measures": ["processing_queue.avg_processing_seconds"]},
    )["sql"]

    async with app.database.connection() as connection:
        cursor = await connection.execute("SELECT sum(token_count) FROM document_chunks")
        [(tokens,)] = await cursor.fetchall()
        cursor = await connection.execute(
            "SELECT length(content) FROM crawled_documents WHERE url IS NOT NULL"
        )
        [(characters,)] = await cursor.fetchall()
    assert sorted(rows(database_url, sql[0])) == [("docs", 3), ("web", 1)]
    assert rows(database_url, sql[1]) == [(3,)]
    assert rows(database_url, sql[2]) == [(1, characters)]
    assert rows(database_url, sql[3]) == [(1,)]
    assert rows(database_url, sql[4]) == [("docs", 3, tokens)]
    assert rows(database_url, sql[5]) == [("https://example.org/a", 1, 0)]
    [(seconds,)] = rows(database_url, sql[6])
    assert 0 < seconds < 600
