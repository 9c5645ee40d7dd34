"""Collections whose vectors are in Pinecone: what is sent, and when it counts as searchable."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from fakes import DIMENSIONS, FakeEmbedder
from pinecone_server import KEY, PineconeServer
from vademecum.app import App
from vademecum.errors import BadSetting, VectorStoreUnavailable
from vademecum.settings import Settings, load_settings
from vademecum.types import ChunkId, Condition, DocumentId, Query
from vademecum.vectors import pinecone
from vademecum.vectors.index import IndexEntry
from vademecum.vectors.pinecone import PineconeIndex, compiled, open_client

Write = Callable[[dict[str, str | bytes]], Path]

PAGES: dict[str, str | bytes] = {
    f"{word}.md": f"# {word}\n\nFeed the {word} twice a day."
    for word in ["owl", "lamp", "tree", "river", "stone"]
}


@pytest.fixture
def served() -> Iterator[PineconeServer]:
    server = PineconeServer()
    yield server
    server.stop()


@pytest.fixture
def settings_of_pinecone(settings: Settings, served: PineconeServer) -> Settings:
    return replace(settings, embedder="fake:words", pinecone_url=served.url, pinecone_key=KEY)


@pytest.fixture
async def app(settings_of_pinecone: Settings) -> AsyncIterator[App]:
    async with App.open(settings_of_pinecone) as app:
        app.embedders.opened["fake:words"] = FakeEmbedder()
        yield app


async def test_each_collection_is_a_namespace_of_one_index(
    app: App, served: PineconeServer, write: Write
) -> None:
    folder = write(PAGES)
    for name in ("one", "two"):
        await app.ingest.bulk_index(folder, collection=name)
        assert (await app.mirrors.promote(name, "pinecone")).switched
    [index] = served.indexes.values()
    assert index["schema"]["fields"]["embedding"] == {
        "type": "dense_vector",
        "dimension": DIMENSIONS,
        "metric": "cosine",
    }
    assert set(served.logs) == {"one", "two"}
    found = await app.search(Query(text="Feed the owl twice a day.", collection="one"))
    assert found.results[0].path == "owl.md"
    assert found.notices == []
    assert all(one.ok for one in await app.mirrors.verify("one"))
    await app.delete_collection("two")
    assert served.held("two") == {}
    assert len(served.held("one")) == len(PAGES)


async def test_every_key_of_the_metadata_schema_is_on_every_record(
    app: App, served: PineconeServer, write: Write
) -> None:
    await app.ingest.bulk_index(write(PAGES), profile="kb")
    assert (await app.mirrors.promote("docs", "pinecone")).switched
    for record in served.held("docs").values():
        assert {
            "kb_name",
            "namespace",
            "file_path",
            "file_name",
            "title",
            "heading_path",
            "section_id",
            "language",
            "token_count",
            "sha256",
            "last_modified",
            "keywords",
            "summary6",
            "doc_title",
            "chunk_id",
        } <= set(record)
        assert "text" not in record
        assert len(record["summary6"]) == 6


async def test_searchable_is_said_once_searches_see_it(
    app: App, served: PineconeServer, write: Write
) -> None:
    await app.ingest.bulk_index(write(PAGES))
    served.delay = 0.4
    assert (await app.mirrors.promote("docs", "pinecone")).switched
    report = await app.ingest.bulk_index(write(PAGES | {"new.md": "# New\n\nPaint the fence."}))
    assert report.pending == 0
    found = await app.search(Query(text="Paint the fence.", collection="docs", mode="dense"))
    assert "new.md" in [hit.path for hit in found.results]


async def test_what_is_never_seen_stays_pending(
    app: App, served: PineconeServer, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.ingest.bulk_index(write(PAGES))
    assert (await app.mirrors.promote("docs", "pinecone")).switched
    monkeypatch.setattr(pinecone, "SETTLE_SECONDS", 0.3)
    served.delay = 1000
    report = await app.ingest.bulk_index(write(PAGES | {"new.md": "# New\n\nPaint the fence."}))
    assert report.pending == 1
    served.delay = 0
    _, left = await app.process_queue()
    assert (await app.mirrors.waiting()).chunks == left.pending == 0


async def test_while_it_is_away_postgresql_answers(
    app: App, served: PineconeServer, write: Write
) -> None:
    await app.ingest.bulk_index(write(PAGES))
    assert (await app.mirrors.promote("docs", "pinecone")).switched
    served.stop()
    try:
        found = await app.search(Query(text="Feed the owl twice a day.", collection="docs"))
        assert found.results[0].path == "owl.md"
        assert "searched in PostgreSQL instead" in found.notices[0]
        assert KEY not in found.notices[0]
    finally:
        served.start()


def entry(number: int, dimensions: int, **fields: object) -> IndexEntry:
    vector = np.random.default_rng(number).standard_normal(dimensions).astype(np.float32)
    return IndexEntry(
        chunk_id=ChunkId(UUID(int=number)),
        window_index=0,
        document_id=DocumentId(number),
        input_hash=b"x",
        vector=vector / np.linalg.norm(vector),
        fields=fields,
    )


async def test_requests_hold_to_the_limits_of_records_and_bytes(served: PineconeServer) -> None:
    client = open_client(served.url, KEY)
    for dimensions, count in ((4, 2500), (1536, 300)):
        served.indexes.clear()
        index = PineconeIndex(
            client,
            place=f"of-{dimensions}",
            tenant=f"of-{dimensions}",
            dimensions=dimensions,
            cloud="aws",
            region="us-east-1",
        )
        await index.prepare([])
        served.sizes.clear()
        await index.upsert([entry(n, dimensions, title=f"{n}") for n in range(count)])
        assert max(records for records, _ in served.sizes) <= 1000
        assert max(size for _, size in served.sizes) <= 2_000_000
        assert len(served.held(f"of-{dimensions}")) == count
        served.most_bytes = 200_000  # it counts otherwise than we do
        await index.upsert([entry(n, dimensions, title="again") for n in range(100)])
        assert len(served.held(f"of-{dimensions}")) == count
        served.most_bytes = 2_000_000
        await index.close()
    await client.close()


async def test_too_much_metadata_loses_its_longest_fields(served: PineconeServer) -> None:
    client = open_client(served.url, KEY)
    index = PineconeIndex(
        client, place="a", tenant="a", dimensions=4, cloud="aws", region="us-east-1"
    )
    await index.prepare([])
    await index.upsert([entry(1, 4, long="x" * 50_000, title="kept", nothing=None, empty=[])])
    [record] = served.held("a").values()
    assert set(record) == {
        "_id",
        "embedding",
        "title",
        "chunk_id",
        "window_index",
        "document_id",
        "entry_hash",
    }
    await index.close()
    await client.close()


def test_conditions_in_pinecones_language() -> None:
    assert compiled([]) is None
    assert compiled([Condition(facet="day", ranges=(("2025-01-10", None),))]) == {
        "day": {"$gte": 20250110}
    }
    assert compiled([Condition(facet="tier", ranges=((1, 2),), numeric=True, negated=True)]) == {
        "$or": [
            {"tier": {"$exists": False}},
            {"$or": [{"tier": {"$lt": 1}}, {"tier": {"$gt": 2}}]},
        ]
    }
    assert compiled(
        [Condition(facet="draft", values=("true",)), Condition(facet="title", values=("x",))]
    ) == {"$and": [{"draft": {"$in": ["true"]}}, {"facet_title": {"$in": ["x"]}}]}


async def test_what_is_missing_is_said(
    settings_of_pinecone: Settings, app: App, write: Write, served: PineconeServer
) -> None:
    await app.ingest.bulk_index(write(PAGES))
    for changed, error, words in (
        ({"pinecone_key": None}, BadSetting, "needs a key"),
        ({"pinecone_region": "us-east-1"}, BadSetting, "no cloud and region"),
        ({"pinecone_key": "pcsk_wrong"}, VectorStoreUnavailable, "Invalid API Key"),
    ):
        async with App.open(replace(settings_of_pinecone, **changed)) as other:  # type: ignore[arg-type]
            other.embedders.opened["fake:words"] = FakeEmbedder()
            with pytest.raises(error, match=words) as refused:
                await other.mirrors.promote("docs", "pinecone")
            assert "pcsk_wrong" not in str(refused.value)


def test_the_key_is_for_its_own_server_only(tmp_path: Path) -> None:
    environment = {"PINECONE_API_KEY": "pcsk_secret", "VADE_HOME": str(tmp_path)}
    settings = load_settings(environment)
    assert settings.pinecone_key == "pcsk_secret"
    assert "pcsk_secret" not in repr(settings)
    elsewhere = load_settings({**environment, "VADE_PINECONE_URL": "http://127.0.0.1:1"})
    assert elsewhere.pinecone_key is None
