"""Reindexing: everything is made anew, and whoever searches meanwhile notices nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fakes import FakeEmbedder
from vademecum.app import App
from vademecum.errors import BadSetting, ModelUnavailable
from vademecum.ingest.report import Listener
from vademecum.settings import Settings
from vademecum.types import Query

Write = Callable[[dict[str, str | bytes]], Path]

ANIMALS = [f"animal{number}" for number in range(70)]
TEXT = "Feed the animal7 twice a day."
PAGES: dict[str, str | bytes] = {
    f"{name}.md": f"# {name}\n\nAll about {name}.\n\n## Care\n\nFeed the {name} twice a day.\n"
    for name in ANIMALS
}


class SlowEmbedder(FakeEmbedder):
    """Takes its time, so that others search meanwhile."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        await asyncio.sleep(0.02)
        return await super().embed(texts)


@asynccontextmanager
async def opened(settings: Settings, embedders: dict[str, FakeEmbedder]) -> AsyncIterator[App]:
    async with App.open(settings) as app:
        app.embedders.opened.update(embedders)
        yield app


@pytest.fixture
def embedders() -> dict[str, FakeEmbedder]:
    return {"fake:words": SlowEmbedder(model="fake"), "fake:better": SlowEmbedder(model="better")}


@pytest.fixture
async def indexed(
    settings: Settings, embedders: dict[str, FakeEmbedder], write: Write
) -> AsyncIterator[App]:
    async with opened(replace(settings, embedder="fake:words"), embedders) as app:
        await app.ingest.bulk_index(write(PAGES))
        yield app


async def one(app: App, query: str) -> list[tuple[object, ...]]:
    async with app.database.connection() as connection:
        return list(await (await connection.execute(query)).fetchall())  # type: ignore[arg-type]


async def first_hit(app: App, text: str, mode: str = "dense") -> str:
    query = Query(text=text, collection="docs", mode=mode)  # type: ignore[arg-type]
    result = await app.search(query)
    assert (result.mode, result.notices) == (mode, [])
    return result.results[0].path


async def search_until(app: App, done: "asyncio.Task[object]", wanted: dict[str, str]) -> int:
    """Search by each retriever again and again: every search must find what it found before."""
    searched = 0
    while not done.done():
        text = list(wanted)[searched % len(wanted)]
        for mode in ("lexical", "dense", "hybrid"):
            assert await first_hit(app, text, mode) == wanted[text], mode
        searched += 1
    return searched


@pytest.mark.parametrize("embedder", [None, "fake:better"])
async def test_searches_go_on_while_everything_is_embedded_again(
    indexed: App, settings: Settings, embedders: dict[str, FakeEmbedder], embedder: str | None
) -> None:
    for one_embedder in embedders.values():
        one_embedder.embedded.clear()

    async with opened(settings, embedders) as reader:
        wanted = {}
        for name in ANIMALS:  # the fake's vectors tell most of them apart, not all
            text = f"Feed the {name} twice a day."
            if await first_hit(reader, text) == f"{name}.md":
                wanted[text] = f"{name}.md"
        assert len(wanted) > 10
        work = asyncio.create_task(indexed.moves.reindex("docs", embedder=embedder, unchecked=True))
        searched = await search_until(reader, work, wanted)
        report = await work

    assert searched > 5
    assert (report.updated, report.embedded, report.reused) == (70, 140, 0)
    assert (report.failed, report.pending) == ([], 0)
    assert len(embedders[embedder or "fake:words"].embedded) == 140
    after = await indexed.collection("docs")
    assert (after.embedder, after.next_embedder) == (embedder or "fake:words", None)


async def test_vectors_of_the_same_model_are_really_renewed(indexed: App) -> None:
    before = await first_hit(indexed, TEXT)
    await one(
        indexed,
        "UPDATE embeddings_1 SET embedding = (SELECT embedding FROM embeddings_1 LIMIT 1)"
        " RETURNING chunk_id",
    )

    await indexed.moves.reindex("docs")

    assert await first_hit(indexed, TEXT) == before


async def test_what_the_collection_left_is_purged(indexed: App) -> None:
    await indexed.moves.reindex("docs", embedder="fake:better", unchecked=True)

    assert await one(indexed, "SELECT count(*) FROM embeddings_1") == [(0,)]
    assert await one(indexed, "SELECT count(*) FROM embeddings_2") == [(140,)]


async def test_the_old_model_serves_as_long_as_a_document_lacks_new_vectors(
    indexed: App, embedders: dict[str, FakeEmbedder]
) -> None:
    before = await first_hit(indexed, TEXT)
    embedders["fake:better"].poison = "animal7 "
    said: list[str] = []

    report = await indexed.moves.reindex(
        "docs", embedder="fake:better", unchecked=True, listener=Listener(notice=said.append)
    )

    assert [failure.path for failure in report.failed] == ["animal7.md"]
    assert "still searched with fake:words" in said[-1]
    assert await first_hit(indexed, TEXT) == before

    embedders["fake:better"].poison = None
    await indexed.moves.reindex("docs")
    assert (await indexed.collection("docs")).embedder == "fake:better"


async def test_a_model_that_cannot_be_had_changes_nothing(
    indexed: App, embedders: dict[str, FakeEmbedder]
) -> None:
    embedders["fake:better"].available = False
    before = await one(indexed, "SELECT id, recipe, updated_at FROM crawled_documents ORDER BY id")

    with pytest.raises(ModelUnavailable):
        await indexed.moves.reindex("docs", embedder="fake:better", unchecked=True)
    with pytest.raises(BadSetting):
        await indexed.moves.reindex("docs", embedder="psychic:one")

    assert (await indexed.collection("docs")).next_embedder is None
    assert (
        await one(indexed, "SELECT id, recipe, updated_at FROM crawled_documents ORDER BY id")
        == before
    )


async def test_words_only_and_back(indexed: App) -> None:
    await indexed.moves.reindex("docs", embedder="none")
    words = await indexed.search(Query(text="Feed the animal7", collection="docs"))
    assert (words.mode, words.results[0].path) == ("lexical", "animal7.md")
    assert await one(indexed, "SELECT count(*) FROM embeddings_1") == [(0,)]

    await indexed.moves.reindex("docs", embedder="fake:words")
    both = await indexed.search(Query(text="Feed the animal7", collection="docs"))
    assert (both.mode, both.results[0].path) == ("hybrid", "animal7.md")


class Letters:
    """Counts three letters at a time, as a model with another vocabulary would."""

    def starts(self, text: str) -> list[int]:
        return list(range(0, len(text), 3))

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [-(-len(text) // 3) for text in texts]


class OtherWords(FakeEmbedder):
    """An embedder with a tokenizer of its own."""

    @property
    def tokenizer(self) -> Letters:
        return Letters()


async def test_chunks_keep_the_vectors_they_are_searched_by_whatever_the_new_model_counts(
    settings: Settings, write: Write
) -> None:
    embedders = {
        "fake:words": FakeEmbedder(max_tokens=400),
        "fake:letters": OtherWords(model="letters", max_tokens=200),
    }
    long = " ".join(f"word{number} is said here." for number in range(600))
    folder = write({"long.md": f"# Long\n\n{long}", "bad.md": "# Bad\n\nSome poison here."})
    async with opened(replace(settings, embedder="fake:words"), embedders) as app:
        await app.ingest.bulk_index(folder)
        chunks = await one(app, "SELECT id FROM document_chunks ORDER BY id")
        vectors = await one(app, "SELECT chunk_id, window_index FROM embeddings_1 ORDER BY 1, 2")
        assert len(chunks) > 3
        embedders["fake:letters"].poison = "poison"

        await app.moves.reindex(
            "docs", embedder="fake:letters", unchecked=True
        )  # held up by one document

        assert await one(app, "SELECT id FROM document_chunks ORDER BY id") == chunks
        assert vectors == await one(
            app, "SELECT chunk_id, window_index FROM embeddings_1 ORDER BY 1, 2"
        )
        assert await first_hit(app, "word500 is said here.") == "long.md"

        embedders["fake:letters"].poison = None
        await app.moves.reindex("docs")
        assert (await app.collection("docs")).embedder == "fake:letters"
        assert await first_hit(app, "word500 is said here.") == "long.md"
