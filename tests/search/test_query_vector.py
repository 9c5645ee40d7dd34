"""A query is embedded while its collection is looked up, by whom its collection names now."""

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakes import FakeEmbedder
from vademecum.access import Access, acting
from vademecum.app import App
from vademecum.errors import ModelUnavailable, UnknownCollection
from vademecum.search.query_vector import QueryVector, QueryVectors
from vademecum.types import Query, Vector

Write = Callable[[dict[str, str | bytes]], Path]


class Watched(FakeEmbedder):
    """Says what it was asked, and may fail."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.fails = fails

    async def embed_query(self, text: str) -> Vector:
        self.asked.append(text)
        if self.fails:
            raise ModelUnavailable("the model is away")
        return await super().embed_query(text)


def about(text: str, *, mode: Any = "hybrid", collection: str = "docs") -> Query:
    return Query(text=text, collection=collection, mode=mode)


async def test_a_query_is_embedded_once_and_from_the_second_on_before_it_is_needed() -> None:
    vectors, embedder = QueryVectors(), Watched()
    with vectors.of(about("first")) as vector:
        await asyncio.sleep(0)
        assert not embedder.asked
        await vector.by(embedder)
    with vectors.of(about("second")) as vector:
        await asyncio.sleep(0)
        assert embedder.asked == ["first", "second"]
        expected = await FakeEmbedder().embed_query("second")
        assert (await vector.by(embedder) == expected).all()
        assert vector.by(embedder) is vector.by(embedder)
    with vectors.of(about("words", mode="lexical")), vectors.of(about("x", collection="other")):
        await asyncio.sleep(0)
    assert embedder.asked == ["first", "second"]


async def test_the_embedder_that_the_collection_names_now_has_the_say() -> None:
    vectors, old, new = QueryVectors(), Watched(fails=True), Watched()
    with vectors.of(about("one")) as vector, pytest.raises(ModelUnavailable):
        await vector.by(old)
    with vectors.of(about("two")) as vector:
        await asyncio.sleep(0)
        expected = await FakeEmbedder().embed_query("two")
        assert (await vector.by(new) == expected).all()
    with vectors.of(about("three")) as vector:
        await asyncio.sleep(0)
    assert (old.asked, new.asked) == (["one", "two"], ["two", "three"])


async def test_nothing_is_begun_for_a_collection_that_has_no_vectors_any_more() -> None:
    vectors, embedder = QueryVectors(), Watched()
    with vectors.of(about("one")) as vector:
        await vector.by(embedder)
    for text in ("two", "three"):
        with vectors.of(about(text)):
            await asyncio.sleep(0)
    assert embedder.asked == ["one", "two"]


async def test_what_nobody_waits_for_fails_in_silence() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, said: complaints.append(said))
    with QueryVector("away") as vector:
        await asyncio.wait([vector.by(Watched(fails=True))])
        vector.by(Watched())
    del vector
    await asyncio.sleep(0)
    gc.collect()
    assert not complaints


async def test_nothing_is_embedded_for_who_may_not_search(fake_app: App, write: Write) -> None:
    embedder = fake_app.embedders.opened["fake:words"] = Watched()
    await fake_app.ingest.bulk_index(write({"a.md": "# Cats\n\nA cat sleeps."}), collection="docs")
    assert (await fake_app.search(about("cat"))).results
    assert embedder.asked == ["cat"]
    with pytest.raises(UnknownCollection):
        await fake_app.search(about("cat", collection="dogs"))
    stranger = Access(name="s", scopes=frozenset({"read"}), collections=frozenset({"dogs"}))
    with acting(stranger), pytest.raises(UnknownCollection):
        await fake_app.search(about("secret"))
    await asyncio.sleep(0)
    assert embedder.asked == ["cat"]
