"""Collections whose vectors are in Qdrant too: told of every change, searched there, repaired."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import models

from fakes import DIMENSIONS, FakeEmbedder
from qdrant_server import KEY, QdrantServer
from vademecum.app import App
from vademecum.errors import (
    BadInput,
    BadSetting,
    MissingExtra,
    NoVectors,
    VectorStoreUnavailable,
)
from vademecum.evaluate.gold import Expectation, Question
from vademecum.settings import Settings
from vademecum.types import Query
from vademecum.vectors import fallback
from vademecum.vectors.qdrant import open_client

Write = Callable[[dict[str, str | bytes]], Path]

WORDS = ["owl", "lamp", "tree", "river", "stone", "cloud", "bread", "wheel", "horn", "salt"]
PAGES: dict[str, str | bytes] = {
    f"{word}.md": f"# {word}\n\nFeed the {word} twice a day.\n\n## More of {word}\n\nIt is {word}."
    for word in WORDS
}


@pytest.fixture
def qdrant() -> Iterator[QdrantServer]:
    server = QdrantServer(key=KEY)
    yield server
    server.stop()


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[App]:
    async with App.open(settings) as app:
        app.embedders.opened["fake:words"] = FakeEmbedder()
        app.embedders.opened["fake:others"] = FakeEmbedder(model="others")
        yield app


@pytest.fixture
def settings_of_qdrant(settings: Settings, qdrant: QdrantServer) -> Settings:
    return replace(settings, embedder="fake:words", qdrant_url=qdrant.url, qdrant_key=KEY)


@pytest.fixture
async def app(settings_of_qdrant: Settings) -> AsyncIterator[App]:
    async with opened(settings_of_qdrant) as app:
        yield app


@pytest.fixture
async def promoted(app: App, write: Write) -> App:
    await app.ingest.bulk_index(write(PAGES))
    done = await app.mirrors.promote("docs", "qdrant")
    assert done.switched
    return app


async def points(qdrant: QdrantServer, place: str) -> list[models.Record]:
    client = open_client(qdrant.url, KEY)
    found, _ = await client.scroll(place, limit=10_000, with_payload=True)
    await client.close()
    return found


async def place_of(app: App) -> str:
    [state] = await app.mirrors.states("docs")
    return state.place


async def dense(app: App, text: str) -> list[str]:
    found = await app.search(Query(text=text, collection="docs", mode="dense"))
    assert found.notices == []
    return [hit.path for hit in found.results]


async def test_a_promoted_collection_answers_as_before(
    app: App, qdrant: QdrantServer, write: Write
) -> None:
    await app.ingest.bulk_index(write(PAGES))
    before = [
        (await app.search(Query(text=f"Feed the {word}", collection="docs"))).results
        for word in WORDS
    ]
    done = await app.mirrors.promote("docs", "qdrant")
    assert done.switched
    assert done.shadow is not None
    assert (done.shadow.recall_now, done.shadow.recall_then) == (1.0, 1.0)
    qdrant.asked.clear()
    after = [
        (await app.search(Query(text=f"Feed the {word}", collection="docs"))).results
        for word in WORDS
    ]
    assert [[hit.chunk_id for hit in hits] for hits in after] == [
        [hit.chunk_id for hit in hits] for hits in before
    ]
    assert len([path for _, path in qdrant.asked if path.endswith("/points/query")]) == len(WORDS)


async def test_the_payload_and_its_indexes_are_those_of_the_data_model(
    app: App, qdrant: QdrantServer, write: Write
) -> None:
    front = "---\nhardware_tier: 2\nlayer: L2\n---\n"
    folder = write({"module-1/chapter-2/03-nodes.md": f"{front}# Nodes\n\nA node is a process."})
    await app.ingest.bulk_index(folder, profile="course")
    assert (await app.mirrors.promote("docs", "qdrant")).switched
    place = await place_of(app)
    assert next(iter(qdrant.indexes[place])) == "book_id"
    assert qdrant.indexes[place]["book_id"].is_tenant
    types = {field: str(schema.type.value) for field, schema in qdrant.indexes[place].items()}
    assert (
        types
        | {
            "book_id": "keyword",
            "module": "keyword",
            "chapter": "integer",
            "lesson": "integer",
            "hardware_tier": "integer",
            "proficiency_level": "keyword",
            "layer": "keyword",
            "parent_doc_id": "keyword",
            "content_hash": "keyword",
            "source_file_hash": "keyword",
        }
        == types
    )
    [point] = await points(qdrant, place)
    payload = point.payload or {}
    assert (
        payload
        | {
            "book_id": "docs",
            "module": "ros2",
            "chapter": 2,
            "lesson": 3,
            "hardware_tier": 2,
            "proficiency_level": "A2",
            "layer": "L2",
            "text": "# Nodes\n\nA node is a process.",
            "section_title": "Nodes",
            "source_file": "module-1/chapter-2/03-nodes.md",
            "chunk_index": 0,
            "total_chunks": 1,
            "prev_chunk_id": None,
            "next_chunk_id": None,
            "version": 1,
        }
        == payload
    )
    assert payload["token_count"] > 0
    assert payload["word_count"] > 0
    assert {"parent_doc_id", "content_hash", "source_file_hash", "created_at", "updated_at"} <= set(
        payload
    )
    # A tenant's own graph, and none over all of them.
    assert qdrant.configs[place].hnsw_config.m == 0  # type: ignore[union-attr]
    assert point.id == payload["chunk_id"]


async def test_what_changes_is_told_with_the_documents(
    promoted: App, qdrant: QdrantServer, write: Write
) -> None:
    place = await place_of(promoted)
    before = {str(point.id) for point in await points(qdrant, place)}
    folder = write(PAGES | {"new.md": "# New\n\nPaint the fence."})
    (folder / "owl.md").write_text("# owl\n\nThe owl sleeps at noon.")
    (folder / "lamp.md").unlink()
    report = await promoted.ingest.bulk_index(folder)
    assert report.pending == 0
    payloads = [point.payload or {} for point in await points(qdrant, place)]
    texts = {
        p["source_file"]: p["text"] for p in payloads if p["source_file"] in ("owl.md", "new.md")
    }
    assert texts == {
        "owl.md": "# owl\n\nThe owl sleeps at noon.",
        "new.md": "# New\n\nPaint the fence.",
    }
    assert not [p for p in payloads if p["source_file"] == "lamp.md"]
    assert len(before) == len(payloads) + 2  # 2 of lamp and 1 of owl less, 1 of new more
    assert (await dense(promoted, "The owl sleeps at noon."))[0] == "owl.md"
    [_, verified] = await promoted.mirrors.verify("docs")
    assert verified.ok


async def test_while_the_store_is_away_postgresql_answers_and_says_so(
    promoted: App, qdrant: QdrantServer, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fallback, "LOOK_AGAIN_SECONDS", 0.0)
    folder = write(PAGES | {"new.md": "# New\n\nPaint the fence."})
    qdrant.stop()
    try:
        report = await promoted.ingest.bulk_index(folder)
        assert (report.inserted, report.pending) == (1, 1)
        for mode in ("hybrid", "dense"):
            found = await promoted.search(
                Query(text="Paint the fence.", collection="docs", mode=mode)  # type: ignore[arg-type]
            )
            assert "new.md" in [hit.path for hit in found.results]
            [notice] = found.notices
            assert "searched in PostgreSQL instead" in notice
            assert KEY not in notice
    finally:
        qdrant.start()
    _, left = await promoted.process_queue()
    assert left.pending == 0
    assert (await promoted.mirrors.waiting()).chunks == 0
    assert "new.md" in await dense(promoted, "Paint the fence.")


async def test_a_store_that_fails_is_not_asked_by_every_search(
    promoted: App, qdrant: QdrantServer
) -> None:
    qdrant.failing = 500
    qdrant.asked.clear()
    for _ in range(5):
        found = await promoted.search(Query(text="Feed the owl", collection="docs"))
        assert found.results[0].path == "owl.md"
        assert "500" in found.notices[0]
    assert len(qdrant.asked) == 1


async def test_an_id_that_postgresql_does_not_know_reaches_no_reader(
    promoted: App, qdrant: QdrantServer
) -> None:
    place = await place_of(promoted)
    [stolen, *_] = await points(qdrant, place)
    foreign = "00000000-0000-4000-8000-000000000001"
    vector = await FakeEmbedder().embed_query("secret of others")
    client = open_client(qdrant.url, KEY)
    payload = {**(stolen.payload or {}), "chunk_id": foreign, "text": "secret", "entry_hash": "x"}
    await client.upsert(
        place, [models.PointStruct(id=foreign, vector=vector.tolist(), payload=payload)]
    )
    await client.close()
    found = await promoted.search(Query(text="secret of others", collection="docs", mode="dense"))
    assert foreign not in {str(hit.chunk_id) for hit in found.results}
    assert all("secret" not in hit.text for hit in found.results)
    [_, wrong] = await promoted.mirrors.verify("docs")
    assert (wrong.missing, wrong.extra, wrong.changed) == (0, 1, 0)
    assert str(wrong.named[0].chunk_id) == foreign


async def test_verify_names_the_difference_and_rebuild_repairs_it(
    promoted: App, qdrant: QdrantServer
) -> None:
    place = await place_of(promoted)
    held = await points(qdrant, place)
    gone, changed = held[0], held[1]
    client = open_client(qdrant.url, KEY)
    await client.delete(place, models.PointIdsList(points=[gone.id]))
    payload = {**(changed.payload or {}), "module": "forged", "entry_hash": "other"}
    await client.upsert(
        place,
        [models.PointStruct(id=changed.id, vector=np.ones(DIMENSIONS).tolist(), payload=payload)],
    )
    await client.close()
    [own, wrong] = await promoted.mirrors.verify("docs")
    assert own.ok
    assert (wrong.missing, wrong.extra, wrong.changed) == (1, 0, 1)
    named = {one.kind: one for one in wrong.named}
    assert str(named["missing"].chunk_id) == gone.id
    assert named["changed"].reference.startswith(f"docs/{(changed.payload or {})['source_file']}#")
    rebuilt = await promoted.mirrors.rebuild("docs", "qdrant")
    assert [one.repaired for one in rebuilt] == [2]
    assert all(one.ok for one in await promoted.mirrors.verify("docs"))


async def test_a_lost_place_is_made_again(promoted: App, qdrant: QdrantServer) -> None:
    place = await place_of(promoted)
    qdrant.engine.delete_collection(place)
    with pytest.raises(VectorStoreUnavailable, match="404") as lost:
        await promoted.mirrors.verify("docs", "qdrant")
    assert "vade index rebuild" in str(lost.value.hint)
    [rebuilt] = await promoted.mirrors.rebuild("docs", "qdrant", everything=True)
    assert rebuilt.repaired == 2 * len(WORDS)
    assert all(one.ok for one in await promoted.mirrors.verify("docs"))


async def test_postgresqls_own_index_is_verified_and_rebuilt(app: App, write: Write) -> None:
    await app.ingest.bulk_index(write(PAGES))
    async with app.database.connection() as connection:
        cursor = await connection.execute("SELECT space_id FROM collections")
        [(space,)] = await cursor.fetchall()
        await connection.execute(
            f"DELETE FROM embeddings_{space} WHERE chunk_id IN"
            f" (SELECT chunk_id FROM embeddings_{space} ORDER BY 1 LIMIT 3)"
        )
    [wrong] = await app.mirrors.verify("docs")
    assert (wrong.missing, wrong.ok, len(wrong.named)) == (3, False, 3)
    await app.mirrors.rebuild("docs")
    await app.process_queue()
    [right] = await app.mirrors.verify("docs")
    assert right.ok
    with pytest.raises(BadInput, match="is not in qdrant"):
        await app.mirrors.verify("docs", "qdrant")


async def test_a_store_that_answers_worse_is_not_switched_to(
    app: App, qdrant: QdrantServer, write: Write
) -> None:
    await app.ingest.bulk_index(write(PAGES))
    question = Question(id="1", query="Feed the owl", expect=(Expectation(path_contains="owl"),))
    real = qdrant._result

    def forgetful(method: str, name: str, rest: str, body: object) -> object:
        result = real(method, name, rest, body)
        if rest == "/points/query":
            result.points = result.points[5:]
        return result

    qdrant._result = forgetful  # type: ignore[method-assign]
    done = await app.mirrors.promote("docs", "qdrant", questions=[question])
    assert not done.switched
    assert done.shadow is not None
    assert done.shadow.recall_then < 0.95
    assert (await app.collection("docs")).mirror_id is None
    qdrant._result = real  # type: ignore[method-assign]
    done = await app.mirrors.promote("docs", "qdrant", questions=[question])
    assert done.switched
    assert done.shadow is not None
    assert done.shadow.ndcg_then == done.shadow.ndcg_now == 1.0


async def test_no_read_fails_while_a_collection_is_promoted_and_brought_back(
    app: App, write: Write
) -> None:
    await app.ingest.bulk_index(write(PAGES))
    done = False
    reads = 0

    async def read() -> None:
        nonlocal reads
        while not done:
            word = WORDS[reads % len(WORDS)]
            found = await app.search(Query(text=f"Feed the {word}", collection="docs"))
            assert found.results[0].path == f"{word}.md"
            assert found.notices == []
            reads += 1

    reading = asyncio.create_task(read())
    try:
        for store in ("qdrant", "pgvector", "qdrant"):
            assert (await app.mirrors.promote("docs", store)).switched
            await asyncio.sleep(0.2)
    finally:
        done = True
        await reading
    assert reads > 10


async def test_a_killed_promotion_goes_on_where_it_was(
    app: App, qdrant: QdrantServer, write: Write
) -> None:
    await app.ingest.bulk_index(write(PAGES))
    qdrant.failing = 503
    with pytest.raises(VectorStoreUnavailable):
        await app.mirrors.promote("docs", "qdrant")
    assert (await app.collection("docs")).mirror_id is None
    qdrant.failing = None
    assert (await app.mirrors.promote("docs", "qdrant")).switched
    [_, verified] = await app.mirrors.verify("docs")
    assert (verified.ok, verified.entries) == (True, 2 * len(WORDS))


async def test_a_deleted_collection_is_gone_from_the_store_too(
    promoted: App, qdrant: QdrantServer, write: Write
) -> None:
    place = await place_of(promoted)
    await promoted.ingest.bulk_index(write({"a.md": "# Other\n\nAnother one."}), collection="other")
    assert (await promoted.mirrors.promote("other", "qdrant")).switched
    await promoted.delete_collection("docs")
    assert {(p.payload or {})["book_id"] for p in await points(qdrant, place)} == {"other"}
    async with promoted.database.connection() as connection:
        cursor = await connection.execute("SELECT tenant FROM mirrors")
        assert await cursor.fetchall() == [("other",)]


async def test_another_model_is_followed_into_a_place_of_its_own(
    promoted: App, qdrant: QdrantServer
) -> None:
    old = await place_of(promoted)
    await promoted.moves.reindex("docs", embedder="fake:others", unchecked=True)
    await promoted.mirrors.feed()
    [state] = await promoted.mirrors.states("docs")
    assert (state.state, state.waiting) == ("serving", 0)
    assert state.place != old
    assert await points(qdrant, old) == []
    qdrant.asked.clear()
    assert (await dense(promoted, "Feed the owl twice a day."))[0] == "owl.md"
    assert qdrant.asked == [("POST", f"/collections/{state.place}/points/query")]
    assert all(one.ok for one in await promoted.mirrors.verify("docs"))


async def test_what_is_missing_is_said(settings: Settings, app: App, write: Write) -> None:
    await app.ingest.bulk_index(write(PAGES))
    with pytest.raises(BadSetting, match="no vector store 'weaviate'"):
        await app.mirrors.promote("docs", "weaviate")
    with pytest.raises(BadSetting, match="no vector store 'weaviate'"):
        await app.mirrors.verify("docs", "weaviate")
    async with opened(replace(settings, embedder="fake:words")) as elsewhere:
        with pytest.raises(BadSetting, match="where Qdrant is"):
            await elsewhere.mirrors.promote("docs", "qdrant")
    async with opened(replace(settings, embedder="none")) as words_only:
        await words_only.ingest.bulk_index(write(PAGES), collection="words")
        with pytest.raises(NoVectors, match="has no vectors"):
            await words_only.mirrors.promote("words", "qdrant")


async def test_a_wrong_key_is_said_without_showing_it(
    settings_of_qdrant: Settings, write: Write
) -> None:
    async with opened(replace(settings_of_qdrant, qdrant_key="wrong-key")) as app:
        await app.ingest.bulk_index(write(PAGES))
        with pytest.raises(VectorStoreUnavailable, match="401") as refused:
            await app.mirrors.promote("docs", "qdrant")
        assert "VADE_QDRANT_KEY" in str(refused.value.hint)
        assert "wrong-key" not in str(refused.value)


@pytest.mark.parametrize(
    ("store", "package"), [("qdrant", "qdrant_client"), ("pinecone", "pinecone")]
)
async def test_a_missing_package_is_said_with_the_command_that_installs_it(
    settings_of_qdrant: Settings,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    store: str,
    package: str,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"vademecum.vectors.{store}", raising=False)
    async with opened(replace(settings_of_qdrant, pinecone_key="pcsk_any")) as app:
        await app.ingest.bulk_index(write(PAGES))
        with pytest.raises(MissingExtra) as missing:
            await app.mirrors.promote("docs", store)
    assert f"uv sync --extra {store}" in str(missing.value.hint)
