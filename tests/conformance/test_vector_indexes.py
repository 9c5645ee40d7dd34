"""One behaviour of every vector index, whatever store is behind it."""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from collections.abc import Collection as Ids
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from fakes import DIMENSIONS
from pinecone_server import KEY as PINECONE_KEY
from pinecone_server import PineconeServer
from qdrant_server import QdrantServer
from vademecum.app import App
from vademecum.profiles.profile import load_profile
from vademecum.search.filters import met, parse_filters
from vademecum.store import mirrors
from vademecum.store.mirrors import MirrorRow
from vademecum.types import ChunkId, Vector
from vademecum.vectors.feed import entries_of
from vademecum.vectors.index import Filter, IndexEntry, Mirror, VectorIndex
from vademecum.vectors.pgvector import PgvectorIndex
from vademecum.vectors.pinecone import PineconeIndex
from vademecum.vectors.pinecone import open_client as pinecone_client
from vademecum.vectors.qdrant import QdrantIndex, open_client

Write = Callable[[dict[str, str | bytes]], Path]

PROFILE = """
[chunks]
max_tokens = 60
overlap_tokens = 10
header = "{title}"

[facets.module]
type = "keyword"
front_matter = "module"

[facets.tier]
type = "integer"
front_matter = "tier"

[facets.level]
type = "level"
values = ["A1", "A2", "B1"]
front_matter = "level"

[facets.day]
type = "date"
front_matter = "day"

[facets.draft]
type = "boolean"
front_matter = "draft"

[facets.tags]
type = "keyword"
many = true
front_matter = "tags"
"""

LESSONS = {
    "a.md": "module: ros2\ntier: 1\nlevel: A1\nday: 2025-01-10\ndraft: false\ntags: [x, y]",
    "b.md": "module: ros2\ntier: 2\nlevel: A2\nday: 2025-02-10\ndraft: true\ntags: [y]",
    "c.md": "module: isaac\ntier: 3\nlevel: B1\nday: 2025-03-10\ntags: [z]",
    "d.md": "module: vla\ntier: -4",
}

FILTERS = [
    ["module=ros2"],
    ["module=ros2,vla"],
    ["module!=ros2"],
    ["tier<=2"],
    ["tier=1..2,-4"],
    ["tier!=1..2"],
    ["tier=3", "module=isaac"],
    ["tier=3", "module=ros2"],
    ["level<=A2"],
    ["level=B1"],
    ["level=*"],
    ["level!=*"],
    ["day>=2025-02-10"],
    ["day=2025-01-10"],
    ["day=2025-01-01..2025-02-28"],
    ["day!=2025-01-10"],
    ["draft=true"],
    ["draft!=true"],
    ["tags=y"],
    ["tags=x,z"],
    ["tags!=y"],
]


@dataclass(frozen=True, kw_only=True)
class Indexed:
    """An index that holds the chunks of a collection, and the entries that it was given."""

    index: VectorIndex
    entries: Sequence[IndexEntry]
    row: MirrorRow
    app: App
    others: Sequence[IndexEntry]
    """Of another collection in the same store."""

    def best(
        self, vector: Vector, entries: Sequence[IndexEntry] | None = None
    ) -> dict[ChunkId, float]:
        """What is true: the best cosine similarity of each chunk, best first."""
        found: dict[ChunkId, float] = {}
        for entry in self.entries if entries is None else entries:
            score = float(entry.vector @ vector)
            found[entry.chunk_id] = max(score, found.get(entry.chunk_id, -1.0))
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def text(name: str) -> str:
    words = [hashlib.sha256(f"{name}{n}".encode()).hexdigest()[:5] for n in range(150)]
    return "".join(
        f"# Part {part} of {name}\n\n{' '.join(words[part * 50 : part * 50 + 50])}.\n\n"
        for part in range(3)
    )


@asynccontextmanager
async def opened(kind: str, row: MirrorRow, app: App, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    if kind == "pgvector":
        yield PgvectorIndex(app.database, space=row.space_id, collection=row.collection_id)
        return
    if kind == "pinecone":
        pinecone = PineconeServer()
        pinecone.delay = 0.02
        control = pinecone_client(pinecone.url, PINECONE_KEY)
        index = PineconeIndex(
            control,
            place=row.place,
            tenant=row.tenant,
            dimensions=row.dimensions,
            cloud="aws",
            region="us-east-1",
        )
        yield Settled(index)
        await index.close()
        await control.close()
        pinecone.stop()
        return
    server = QdrantServer() if kind == "qdrant-server" else None
    client = open_client(server.url if server else str(tmp_path / "qdrant"))
    yield QdrantIndex(
        client, place=row.place, tenant=row.tenant, dimensions=row.dimensions, shown="test"
    )
    await client.close()
    if server:
        server.stop()


class Settled(PineconeIndex):
    """Reads what it wrote: each write is waited for, as those who feed a mirror do."""

    def __init__(self, index: PineconeIndex) -> None:
        self.__dict__ = index.__dict__

    async def upsert(self, entries: Sequence[IndexEntry]) -> None:
        await super().upsert(entries)
        await self.settled()

    async def delete(self, chunks: Ids[ChunkId]) -> None:
        await super().delete(chunks)
        await self.settled()


@pytest.fixture(params=["pgvector", "qdrant-folder", "qdrant-server", "pinecone"])
async def indexed(
    request: pytest.FixtureRequest, fake_app: App, write: Write, tmp_path: Path
) -> AsyncIterator[Indexed]:
    profile = tmp_path / "lessons.toml"
    profile.write_text(PROFILE)
    folder = write({name: f"---\n{front}\n---\n{text(name)}" for name, front in LESSONS.items()})
    for name in ("mine", "theirs"):
        report = await fake_app.ingest.bulk_index(folder, collection=name, profile=str(profile))
        assert report.failed == []
    rows, entries = [], []
    async with fake_app.database.transaction() as connection:
        for name in ("mine", "theirs"):
            target = await fake_app.collection(name)
            assert target.space_id is not None
            rows.append(
                await mirrors.create(
                    connection, target.id, target.space_id, store="qdrant", tenant=name
                )
            )
            chunks = await mirrors.chunk_ids(connection, rows[-1])
            entries.append(await entries_of(connection, rows[-1], chunks))
    profile_read = load_profile(target.profile, target.declaration)
    async with opened(request.param, rows[0], fake_app, tmp_path) as index:
        if request.param != "pgvector":
            await prepared(index, profile_read.facets)  # type: ignore[arg-type]
            other = index.__class__.__new__(index.__class__)
            other.__dict__.update(index.__dict__ | {"_tenant": "theirs"})
            await other.upsert(entries[1])
            await index.upsert(entries[0])
        yield Indexed(index=index, entries=entries[0], row=rows[0], app=fake_app, others=entries[1])


async def prepared(index: Mirror, facets: Sequence[object]) -> None:
    for _ in range(2):  # again is no error
        await index.prepare(facets)  # type: ignore[arg-type]


def vector(seed: int) -> Vector:
    drawn = np.random.default_rng(seed).standard_normal(DIMENSIONS)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


async def test_the_nearest_chunks_come_first_with_their_cosine_similarity(indexed: Indexed) -> None:
    assert len(indexed.entries) > len(indexed.best(vector(0)))  # some have several windows
    for seed in range(5):
        found = await indexed.index.nearest(vector(seed), limit=5)
        expected = list(indexed.best(vector(seed)).items())[:5]
        assert [scored.chunk_id for scored in found] == [chunk for chunk, _ in expected]
        assert np.allclose([s.score for s in found], [score for _, score in expected], atol=5e-3)


async def test_a_hit_names_its_document(indexed: Indexed) -> None:
    documents = {entry.chunk_id: entry.document_id for entry in indexed.entries}
    found = await indexed.index.nearest(vector(1), limit=20)
    assert {s.chunk_id: s.document_id for s in found} == documents


async def test_what_is_written_again_is_there_once(indexed: Indexed) -> None:
    before = await indexed.index.nearest(vector(2), limit=20)
    await indexed.index.upsert(indexed.entries)
    after = await indexed.index.nearest(vector(2), limit=20)
    assert [s.chunk_id for s in after] == [s.chunk_id for s in before]
    assert len(after) == len(indexed.best(vector(2)))


async def test_what_is_deleted_is_not_found(indexed: Indexed) -> None:
    gone = {entry.chunk_id for entry in indexed.entries[:4]}
    await indexed.index.delete(gone)
    found = {s.chunk_id for s in await indexed.index.nearest(vector(3), limit=50)}
    assert found == {entry.chunk_id for entry in indexed.entries} - gone
    await indexed.index.delete(gone)  # again is no error
    await indexed.index.delete(set())


async def test_windows_that_a_chunk_has_no_more_are_gone(indexed: Indexed) -> None:
    several = next(entry for entry in indexed.entries if entry.window_index == 1)
    first = next(
        e for e in indexed.entries if e.chunk_id == several.chunk_id and e.window_index == 0
    )
    moved = replace(first, vector=vector(99), input_hash=b"0" * 32)
    await indexed.index.upsert([moved])
    [nearest] = await indexed.index.nearest(vector(99), limit=1)
    assert nearest.chunk_id == first.chunk_id
    found = {s.chunk_id: s.score for s in await indexed.index.nearest(several.vector, limit=50)}
    assert found[first.chunk_id] == pytest.approx(float(vector(99) @ several.vector), abs=5e-3)


async def test_nothing_of_another_collection_is_found(indexed: Indexed) -> None:
    theirs = {entry.chunk_id for entry in indexed.others}
    for entry in indexed.others[:5]:
        found = {s.chunk_id for s in await indexed.index.nearest(entry.vector, limit=50)}
        assert not found & theirs
        assert found


async def test_filters_let_through_what_postgresql_would(indexed: Indexed) -> None:
    target = await indexed.app.collection("mine")
    profile = load_profile(target.profile, target.declaration)
    facets = await facets_of(indexed)
    found, wanted = {}, {}
    for filters in FILTERS:
        conditions = parse_filters(filters, profile)
        name = " and ".join(filters)
        hits = await indexed.index.nearest(
            vector(4), limit=50, where=Filter(conditions=tuple(conditions))
        )
        documents = {entry.chunk_id: str(entry.fields["source_file"]) for entry in indexed.entries}
        found[name] = {documents[scored.chunk_id] for scored in hits}
        wanted[name] = {
            path for path, values in facets.items() if all(met(c, values) for c in conditions)
        }
    assert found == wanted


async def facets_of(indexed: Indexed) -> dict[str, dict[str, object]]:
    async with indexed.app.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT path, facets FROM crawled_documents WHERE collection_id = %s",
            [indexed.row.collection_id],
        )
        return dict(await cursor.fetchall())
