"""Upsert answers inserted, updated or unchanged, and queues exactly the work that follows."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from vademecum.errors import BadInput
from vademecum.store import collections, documents
from vademecum.store.db import Database
from vademecum.store.documents import written
from vademecum.types import Change, CollectionId, Document, DocumentId, Source


@dataclass(frozen=True)
class Shelf:
    """One collection, and what the tests do and see of it."""

    database: Database
    collection: CollectionId

    async def put(
        self,
        text: str,
        *,
        file: str | None = None,
        url: str | None = None,
        path: str | None = None,
        title: str = "Title",
        metadata: Mapping[str, object] | None = None,
        source_hash: str | None = None,
        force: bool = False,
    ) -> tuple[Change, DocumentId]:
        document = Document(
            title=title,
            text=text,
            format="markdown",
            source_hash=source_hash or text,
            metadata=metadata or {},
        )
        source = Source(path=path or url or str(file), file_path=file, url=url)
        async with self.database.transaction() as connection:
            return await documents.upsert(
                connection, self.collection, source, document, force=force
            )

    async def rows(self, columns: str) -> list[tuple[object, ...]]:
        return await self.select(f"SELECT {columns} FROM crawled_documents ORDER BY id")

    async def jobs(self) -> list[tuple[object, ...]]:
        return await self.select("SELECT document_id, status FROM processing_queue ORDER BY id")

    async def select(self, query: str) -> list[tuple[object, ...]]:
        async with self.database.connection() as connection:
            cursor = await connection.execute(query)  # type: ignore[arg-type]
            return list(await cursor.fetchall())

    async def all_processed(self) -> None:
        await self.select(
            "WITH d AS (UPDATE crawled_documents SET needs_processing = false, recipe = 'r')"
            " DELETE FROM processing_queue RETURNING id"
        )


@pytest.fixture
async def shelf(database: Database) -> Shelf:
    async with database.connection() as connection:
        made = await collections.find_or_create(connection, "c", profile="docs", embedder="none")
    return Shelf(database, made.id)


async def test_new_changed_and_unchanged(shelf: Shelf) -> None:
    assert await shelf.put("one", file="/d/a.md") == ("inserted", 1)
    assert await shelf.put("two", file="/d/a.md") == ("updated", 1)
    assert await shelf.put("two", file="/d/a.md") == ("unchanged", 1)

    assert await shelf.rows("id, content, file_path, needs_processing") == [
        (1, "two", "/d/a.md", True)
    ]
    assert await shelf.jobs() == [(1, "pending")]


async def test_many_at_once_leave_out_what_is_known_by_path_file_or_url(shelf: Shelf) -> None:
    await shelf.put("one", file="/d/a.md", path="a.md")
    await shelf.put("two", url="https://example.org/b")
    sources = [
        Source(path="a.md", file_path="/elsewhere/a.md"),
        Source(path="moved/a.md", file_path="/d/a.md"),
        Source(path="b.md", file_path="/d/b.md", url="https://example.org/b"),
        Source(path="c.md", file_path="/d/c.md", modified_at=datetime(2026, 1, 2, tzinfo=UTC)),
        Source(path="https://example.org/d", url="https://example.org/d"),
    ]
    title = 'one, {two} \\ "three" NULL'
    new = [(source, written(title, f"Of {source.path}", {"n": 1})) for source in sources]

    async with shelf.database.transaction() as connection:
        stored = await documents.insert(connection, shelf.collection, new)
        assert await documents.insert(connection, shelf.collection, []) == {}

    rows = await shelf.rows("id, path, url, file_path, title, content, metadata, last_modified_at")
    assert list(stored) == ["c.md", "https://example.org/d"]
    assert rows[2:] == [
        (
            stored["c.md"],
            "c.md",
            None,
            "/d/c.md",
            title,
            "Of c.md",
            {"n": 1},
            sources[3].modified_at,
        ),
        (
            stored["https://example.org/d"],
            "https://example.org/d",
            "https://example.org/d",
            None,
            title,
            "Of https://example.org/d",
            {"n": 1},
            None,
        ),
    ]
    assert [content for _, content in await shelf.rows("id, content")][:2] == ["one", "two"]
    assert [document for document, _ in (await shelf.jobs())[2:]] == list(stored.values())


async def test_unchanged_content_only_touches_the_fetch_time(shelf: Shelf) -> None:
    columns = "content, title, metadata, needs_processing, recipe, created_at, updated_at"
    await shelf.put("one", file="/d/a.md", source_hash="bytes")
    await shelf.all_processed()
    before = await shelf.rows(columns)
    [(fetched,)] = await shelf.rows("last_fetched_at")

    change, _ = await shelf.put("one", file="/d/a.md", source_hash="other bytes")

    assert change == "unchanged"
    assert await shelf.rows(columns) == before
    assert await shelf.rows(f"last_fetched_at > '{fetched}', source_hash") == [
        (True, "other bytes")
    ]
    assert await shelf.jobs() == []


async def test_a_changed_title_with_the_same_content_is_an_update(shelf: Shelf) -> None:
    await shelf.put("one", file="/d/a.md", title="Old")
    await shelf.all_processed()

    assert await shelf.put("one", file="/d/a.md", title="New") == ("updated", 1)

    assert await shelf.rows("title, needs_processing") == [("New", True)]
    assert await shelf.jobs() == [(1, "pending")]


async def test_changed_metadata_with_the_same_content_is_an_update(shelf: Shelf) -> None:
    await shelf.put("one", file="/d/a.md", metadata={"tags": ["a"], "level": 1})
    assert await shelf.put("one", file="/d/a.md", metadata={"level": 1, "tags": ["a"]}) == (
        "unchanged",
        1,
    )

    assert await shelf.put("one", file="/d/a.md", metadata={"tags": ["b"]}) == ("updated", 1)

    assert await shelf.rows("metadata") == [({"tags": ["b"]},)]


async def test_force_makes_the_chunks_anew_although_nothing_changed(shelf: Shelf) -> None:
    await shelf.put("one", file="/d/a.md")
    await shelf.all_processed()

    assert await shelf.put("one", file="/d/a.md", force=True) == ("updated", 1)

    assert await shelf.rows("recipe, needs_processing") == [(None, True)]
    assert await shelf.jobs() == [(1, "pending")]


async def test_many_writers_of_one_source_leave_one_document_and_one_job(
    database_url: str,
) -> None:
    async with Database(database_url, size=8) as database:
        async with database.connection() as connection:
            made = await collections.find_or_create(
                connection, "c", profile="docs", embedder="none"
            )
        shelf = Shelf(database, made.id)
        finished: list[str] = []

        async def write(text: str) -> Change:
            change, _ = await shelf.put(text, file="/d/a.md")
            finished.append(text)
            return change

        texts = [f"text {number}" for number in range(24)]
        changes = await asyncio.gather(*(write(text) for text in texts))
        rows = await shelf.rows("content, content_hash, needs_processing")

        assert sorted(changes) == ["inserted"] + ["updated"] * 23
        [(content, digest, _)] = rows
        assert rows == [(content, documents.content_hash(str(content)), True)]
        assert digest == documents.content_hash(str(content))
        assert content in finished[-8:], "a writer that ended long before the last has won"
        assert await shelf.jobs() == [(1, "pending")]


async def test_many_writers_of_many_sources_do_not_stop_each_other(database_url: str) -> None:
    async with Database(database_url, size=8) as database:
        async with database.connection() as connection:
            made = await collections.find_or_create(
                connection, "c", profile="docs", embedder="none"
            )
        shelf = Shelf(database, made.id)

        await asyncio.gather(
            *(
                shelf.put(f"text {writer}", file=f"/d/{number}.md")
                for writer in range(4)
                for number in range(6)
            )
        )

        assert len(await shelf.rows("id")) == len(await shelf.jobs()) == 6


async def test_url_and_file_that_match_two_documents_make_them_one(shelf: Shelf) -> None:
    _, page = await shelf.put("page", url="https://x/a")
    _, file = await shelf.put("file", file="/d/a.md")
    assert page != file

    assert await shelf.put("both", url="https://x/a", file="/d/a.md") == ("updated", page)

    assert await shelf.rows("id, url, file_path, content") == [
        (page, "https://x/a", "/d/a.md", "both")
    ]
    assert await shelf.jobs() == [(page, "pending")]


async def test_a_source_known_by_url_learns_its_file(shelf: Shelf) -> None:
    _, page = await shelf.put("page", url="https://x/a")

    assert await shelf.put("page", url="https://x/a", file="/d/a.md") == ("unchanged", page)
    assert await shelf.put("page", file="/d/a.md") == ("unchanged", page)

    assert await shelf.rows("url, file_path") == [("https://x/a", "/d/a.md")]


async def test_two_folders_with_the_same_relative_path_both_have_a_name(shelf: Shelf) -> None:
    await shelf.put("one", file="/home/me/one/docs/readme.md", path="readme.md")
    await shelf.put("two", file="/home/me/two/docs/readme.md", path="readme.md")
    await shelf.put("three", file="/home/you/two/docs/readme.md", path="readme.md")

    assert await shelf.rows("path, content") == [
        ("readme.md", "one"),
        ("docs/readme.md", "two"),
        ("two/docs/readme.md", "three"),
    ]


async def test_a_document_keeps_its_path_when_it_is_found_from_another_folder(
    shelf: Shelf,
) -> None:
    await shelf.put("one", file="/d/sub/a.md", path="sub/a.md")

    await shelf.put("two", file="/d/sub/a.md", path="a.md")

    assert await shelf.rows("path, content") == [("sub/a.md", "two")]


async def test_the_same_source_in_two_collections_is_two_documents(shelf: Shelf) -> None:
    async with shelf.database.connection() as connection:
        other = await collections.find_or_create(
            connection, "other", profile="docs", embedder="none"
        )
    await shelf.put("one", file="/d/a.md")

    await Shelf(shelf.database, other.id).put("two", file="/d/a.md")

    assert await shelf.rows("collection_id, content") == [
        (shelf.collection, "one"),
        (other.id, "two"),
    ]


async def test_a_document_without_url_and_file_is_refused(shelf: Shelf) -> None:
    with pytest.raises(BadInput, match="needs a url or a file"):
        await shelf.put("one", path="a.md")


async def test_a_failed_transaction_leaves_neither_document_nor_job(shelf: Shelf) -> None:
    source = Source(path="a.md", file_path="/d/a.md")
    document = Document(title="T", text="one", format="markdown", source_hash="h")

    async def store_and_fail() -> None:
        async with shelf.database.transaction() as connection:
            await documents.upsert(connection, shelf.collection, source, document)
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        await store_and_fail()

    assert (await shelf.rows("id"), await shelf.jobs()) == ([], [])


@pytest.mark.parametrize("name", ["Überblick", "文档", "a.b-c_d", "2024"])
async def test_names_of_collections(database: Database, name: str) -> None:
    async with database.connection() as connection:
        made = await collections.find_or_create(connection, name, profile="docs", embedder="none")
    assert made.name == name


@pytest.mark.parametrize("name", ["", "two words", "a/b", "x²", ".hidden", "a" * 101])
async def test_what_cannot_name_a_collection(database: Database, name: str) -> None:
    async with database.connection() as connection:
        with pytest.raises(BadInput, match="cannot name a collection"):
            await collections.find_or_create(connection, name, profile="docs", embedder="none")
