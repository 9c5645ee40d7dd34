"""A collection in memory answers as the database does, whatever was written meanwhile."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from pydoc_data import topics
from random import Random

import numpy as np
import pytest

from fakes import FakeEmbedder
from vademecum.app import App
from vademecum.ranking import Ranking, chunk_id
from vademecum.search.pipeline import Kept, search
from vademecum.search.query_vector import QueryVector
from vademecum.store import lexical
from vademecum.store.collections import Collection
from vademecum.types import ChunkId, DocumentId, Mode, Query, Vector
from vademecum.vectors import pgvector
from vademecum.vectors.kept import LATER, KeptChunks
from vademecum.vectors.pgvector import PgvectorIndex
from vademecum.vectors.view import View

Write = Callable[[dict[str, str | bytes]], Path]

EVERYTHING = 10**9
EVERY_WINDOW = 10_000
"""Chunks asked for where all windows of all chunks are to be looked at."""


async def indexed(app: App, folder: Path) -> Collection:
    await app.ingest.bulk_index(folder, collection="python")
    return await app.collection("python")


def pages(count: int, *, seed: int = 0) -> dict[str, str | bytes]:
    """Topics of Python's reference, some of them over and over with other words at the end."""
    texts = sorted(topics.topics.items())
    random = Random(seed)
    return {
        f"{number}.md": f"# {texts[number % len(texts)][0]}\n\n"
        f"{texts[number % len(texts)][1][:3000]}\n\nword{random.randrange(10**6)}"
        for number in range(count)
    }


async def asked(app: App, collection: Collection, kept: KeptChunks) -> View | None:
    return await kept.view(app.database, collection) if kept.worth(collection) else None


async def view_of(app: App, collection: Collection, kept: KeptChunks) -> View:
    """Once it is there: what is much is read beside other searches."""
    for _ in range(500):
        if (view := await asked(app, collection, kept)) is not None:
            return view
        await asyncio.sleep(0.02)
    raise AssertionError("it is never kept")


async def all_nearest(app: App, collection: Collection, vector: Vector) -> dict[ChunkId, float]:
    """As the database has it, every vector compared."""
    assert collection.space_id is not None
    index = PgvectorIndex(app.database, space=collection.space_id, collection=collection.id)
    found = await index.exact(vector, limit=EVERY_WINDOW)
    return {one.chunk_id: one.score for one in found}


def by_chunk(ranking: Ranking) -> dict[ChunkId, float]:
    return {chunk_id(one): float(one["score"]) for one in ranking}


async def check(app: App, collection: Collection, view: View, question: str) -> None:
    """The view and the database say the same of every chunk."""
    vector = await FakeEmbedder().embed_query(question)
    expected = await all_nearest(app, collection, vector)
    assert len(expected) <= collection.chunk_count
    found = view.nearest(vector, limit=EVERY_WINDOW)
    assert by_chunk(found) == pytest.approx(expected, abs=2e-4)
    scores = found["score"].tolist()
    assert scores == sorted(scores, reverse=True)

    assert collection.space_id is not None
    numbers = np.sort(found["number"].astype(np.int64))[::3]
    async with app.database.connection() as connection:
        wanted = await lexical.chunks_of(
            connection, collection.id, numbers, sequences=True, near=(collection.space_id, vector)
        )
    read = view.chunks_of(numbers, sequences=True)
    assert read.found["number"].tolist() == wanted.found["number"].tolist()
    assert view.similarities(numbers, vector) == pytest.approx(wanted.found["score"], abs=2e-4)
    assert read.lengths.tolist() == wanted.lengths.tolist()
    assert sequences(read) == sequences(wanted)
    await check_sections(app, found)


async def check_sections(app: App, found: Ranking) -> None:
    """Chunks have the same section in memory if they have in the database, and only then."""
    async with app.database.connection() as connection:
        rows = await (
            await connection.execute("SELECT id, document_id, section_id FROM document_chunks")
        ).fetchall()
    stored = {chunk: (document, section) for chunk, document, section in rows}
    pairs = {(stored[chunk_id(one)], int(one["section"])) for one in found}
    assert len(pairs) == len(dict(pairs)) == len({section for _, section in pairs})
    assert 0 not in dict(pairs).values()
    assert len(pairs) < len(found)


def sequences(read: lexical.Numbered) -> list[list[int]]:
    starts = np.cumsum(read.lengths + 1) - read.lengths - 1
    return [
        read.sequences[start : start + length].tolist()
        for start, length in zip(starts, read.lengths, strict=True)
    ]


async def test_what_is_kept_follows_every_change(fake_app: App, write: Write) -> None:
    kept = KeptChunks(most=EVERYTHING, often=1, worth=1)
    files = pages(60)
    random = Random(5)
    for edit in range(8):
        collection = await indexed(fake_app, write(files))
        await check(fake_app, collection, await view_of(fake_app, collection, kept), "import with")
        for name in random.sample(sorted(files), 5):
            del files[name]
        for name in random.sample(sorted(files), 5):
            files[name] = f"# Another\n\nof edit {edit} in {name}\n\n" + str(files[name])[:500]
        files[f"new{edit}.md"] = f"# New\n\nyield from generator {edit}"


async def test_a_merge_of_segments_changes_nothing(fake_app: App, write: Write) -> None:
    kept = KeptChunks(most=200_000, often=1, worth=1, at_once=10)
    collection = await indexed(fake_app, write(pages(40)))
    before = await view_of(fake_app, collection, kept)
    async with fake_app.database.connection() as connection:
        first = await lexical.segments(connection, collection.id)
        await fake_app.database.retry(lambda: indexed(fake_app, write(pages(80))))
        while await lexical.merge(connection, collection.id):
            pass
        assert {one.key for one in first} != {
            one.key for one in await lexical.segments(connection, collection.id)
        }
    collection = await fake_app.collection("python")
    after = await view_of(fake_app, collection, kept)
    await check(fake_app, collection, after, "the with statement")
    assert sum(kept.sizes().values()) > 100_000  # no room for what was before, too
    vector = await FakeEmbedder().embed_query("operator precedence")
    assert len(before.nearest(vector, limit=10)) == 10  # as it was, for a search under way


@pytest.mark.parametrize("share", [1, 5, 40])
async def test_only_documents_of_a_filter_are_found(
    fake_app: App, write: Write, share: int
) -> None:
    collection = await indexed(fake_app, write(pages(60)))
    view = await view_of(fake_app, collection, KeptChunks(most=EVERYTHING, often=1, worth=1))
    async with fake_app.database.connection() as connection:
        cursor = await connection.execute("SELECT id FROM crawled_documents ORDER BY id")
        ids = [DocumentId(document) for (document,) in await cursor.fetchall()]
    documents = ids[::share]
    vector = await FakeEmbedder().embed_query("a list of expressions")
    assert collection.space_id is not None
    async with fake_app.database.connection() as connection:
        expected = await pgvector.nearest(
            connection,
            space=collection.space_id,
            collection=collection.id,
            vector=vector,
            limit=EVERY_WINDOW,
            documents=documents,
        )
    found = view.nearest(vector, limit=EVERY_WINDOW, documents=documents)
    assert set(found["document"].tolist()) <= set(documents)
    assert found["score"].tolist() == pytest.approx(expected["score"].tolist(), abs=2e-4)
    nobody = view.nearest(vector, limit=20, documents=[DocumentId(10**6)])
    assert len(nobody) == 0
    assert len(view.nearest(vector, limit=20, documents=[])) == 0


async def test_a_chunk_without_vectors_is_found_by_its_words_only(
    fake_app: App, write: Write
) -> None:
    collection = await indexed(fake_app, write(pages(20)))
    async with fake_app.database.connection() as connection:
        await connection.execute(
            "DELETE FROM embeddings_1 WHERE document_id IN"
            " (SELECT id FROM crawled_documents ORDER BY id LIMIT 10)"
        )
    view = await view_of(fake_app, collection, KeptChunks(most=EVERYTHING, often=1, worth=1))
    vector = await FakeEmbedder().embed_query("statement")
    near = view.nearest(vector, limit=EVERY_WINDOW)
    assert by_chunk(near) == pytest.approx(
        await all_nearest(fake_app, collection, vector), abs=2e-4
    )
    numbers = np.arange(collection.chunk_count)
    read = view.chunks_of(numbers, sequences=True)
    assert read.found["number"].tolist() == numbers.tolist()
    without = set(numbers.tolist()) - set(near["number"].tolist())
    assert without
    similarities = view.similarities(numbers, vector).tolist()
    scores = dict(zip(numbers.tolist(), similarities, strict=True))
    assert {scores[number] for number in without} == {0.0}


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
async def test_a_search_finds_the_same_without_it(fake_app: App, write: Write, mode: Mode) -> None:
    # A window for each chunk: the database looks at so many windows, and we at more.
    embedder = fake_app.embedders.opened["fake:words"] = FakeEmbedder(max_tokens=5000)
    collection = await indexed(fake_app, write(pages(60)))
    chunks = KeptChunks(most=EVERYTHING, often=1, worth=1)
    await view_of(fake_app, collection, chunks)
    for text in ("import statement", "yield from", "the default value of a parameter", "zzz"):
        for keyword in (None, "import"):
            query = Query(text=text, collection="python", mode=mode, limit=20, keyword=keyword)
            with QueryVector(text) as vector:
                embedding = None if mode == "lexical" else vector.by(embedder)
                hits, expected = [
                    await search(fake_app.database, collection, embedding, query, kept)
                    for kept in (Kept(chunks=chunks), Kept())
                ]
            assert [hit.score for hit in hits] == pytest.approx(
                [hit.score for hit in expected], abs=2e-4
            )
            assert [hit.text for hit in hits][:5] == [hit.text for hit in expected][:5]


async def test_searches_go_on_while_much_is_read(fake_app: App, write: Write) -> None:
    collection = await indexed(fake_app, write(pages(60)))
    kept = KeptChunks(most=EVERYTHING, often=3, worth=1, at_once=10)
    for _ in range(3):  # twice not asked often enough, and then not there at once
        assert await asked(fake_app, collection, kept) is None
    await check(fake_app, collection, await view_of(fake_app, collection, kept), "import")


async def test_what_has_no_room_is_not_kept(fake_app: App, write: Write) -> None:
    collection = await indexed(fake_app, write(pages(60)))
    kept = KeptChunks(most=20_000, often=1, worth=1, at_once=10)
    for _ in range(20):
        assert await asked(fake_app, collection, kept) is None
        await asyncio.sleep(0.05)
    none = KeptChunks(most=0, often=1, worth=1, at_once=10)
    for _ in range(3):
        assert await asked(fake_app, collection, none) is None


async def test_what_was_not_asked_for_longest_goes_first(fake_app: App, write: Write) -> None:
    folder = write(pages(30))
    collections = []
    for name in ("a", "b", "c"):
        await fake_app.ingest.bulk_index(folder, collection=name)
        collections.append(await fake_app.collection(name))
    kept = KeptChunks(most=EVERYTHING, often=1, worth=1)
    await view_of(fake_app, collections[0], kept)
    [one] = kept.sizes().values()
    little = KeptChunks(most=one - 1, often=1, worth=1)
    assert await asked(fake_app, collections[0], little) is None
    assert little.sizes() == {}
    kept = KeptChunks(most=int(2.5 * one), often=1, worth=1)
    for place in (0, 1, 0, 2):
        await view_of(fake_app, collections[place], kept)
    assert list(kept.sizes()) == [collections[0].id, collections[2].id]
    for _ in range(LATER - 1):  # not read again and again, each time in place of another
        assert await asked(fake_app, collections[1], kept) is None
    await view_of(fake_app, collections[1], kept)
    assert list(kept.sizes()) == [collections[2].id, collections[1].id]


async def test_nothing_is_read_after_the_end(fake_app: App, write: Write) -> None:
    collection = await indexed(fake_app, write(pages(60)))
    kept = KeptChunks(most=EVERYTHING, often=1, worth=1, at_once=10)
    assert await asked(fake_app, collection, kept) is None
    await kept.close()
    assert kept.sizes() == {}
