"""A database that is away for some seconds: waited for at connect and in the middle of work."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from pooler import PGBOUNCER, Proxy, by_port, pgbouncer, proxied
from vademecum.app import App
from vademecum.errors import DatabaseLoginFailed
from vademecum.settings import Settings
from vademecum.store.db import Database
from vademecum.store.embedded import EmbeddedDatabase
from vademecum.types import Query


@pytest.fixture
def proxy(server: str) -> Iterator[Proxy]:
    with proxied(server) as proxy:
        yield proxy


async def later(seconds: float, act: object) -> None:
    await asyncio.sleep(seconds)
    await asyncio.to_thread(act)  # type: ignore[arg-type]


async def test_at_connect_it_is_waited_for(proxy: Proxy, database_url: str) -> None:
    proxy.cut()
    notices: list[str] = []
    coming = asyncio.create_task(later(2, proxy.listen))
    async with Database(by_port(database_url, proxy.port), notice=notices.append) as database:
        assert (await database.about())["pgvector"]
    await coming
    assert len(notices) == 1
    assert "does not answer" in notices[0]


async def test_what_cannot_succeed_is_not_tried_again(proxy: Proxy, database_url: str) -> None:
    notices: list[str] = []
    url = psycopg.conninfo.make_conninfo(by_port(database_url, proxy.port), dbname="nowhere")
    with pytest.raises(DatabaseLoginFailed, match="nowhere"):
        async with Database(url, notice=notices.append):
            pass
    assert notices == []


async def test_a_search_survives_connections_that_died(
    proxy: Proxy, settings: Settings, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("# Lamp\n\nLit at dusk.")
    away = replace(settings, database_url=by_port(database_url, proxy.port), embedder="none")
    async with App.open(away) as app:
        await app.ingest.store(collection="light", file=tmp_path / "a.md")
        for _ in range(3):
            await asyncio.to_thread(proxy.drop)
            found = await app.search(Query(text="lamp", collection="light"))
            assert len(found.results) == 1


async def test_an_ingest_survives_cuts_in_the_middle(
    proxy: Proxy, settings: Settings, database_url: str, tmp_path: Path
) -> None:
    for number in range(200):
        (tmp_path / f"{number}.md").write_text(f"# Page {number}\n\nAbout lamps.")
    away = replace(settings, database_url=by_port(database_url, proxy.port), embedder="none")

    async def disturb() -> int:
        cuts = 0
        while True:
            await asyncio.sleep(0.5)
            await asyncio.to_thread(proxy.cut)
            await asyncio.sleep(0.7)
            await asyncio.to_thread(proxy.listen)
            cuts += 1
            if cuts == 3:
                return cuts

    async with App.open(away) as app:
        disturbing = asyncio.create_task(disturb())
        report = await app.ingest.bulk_index(tmp_path, collection="light")
        # At least one cut fell into the work: it takes longer than the first half second.
        assert await disturbing == 3
        # A commit whose answer was lost is done again, and then counts as unchanged.
        assert (report.inserted + report.unchanged, report.failed) == (200, [])
        found = await app.search(Query(text="page 117", collection="light"))
        assert found.results[0].path == "117.md"
        (state,) = (await app.status("light")).collections
        assert state.documents == 200


async def test_a_server_that_is_stopped_and_started(settings: Settings, tmp_path: Path) -> None:
    embedded = EmbeddedDatabase(tmp_path / "other")
    url = await embedded.start()
    try:
        (tmp_path / "a.md").write_text("# Lamp\n\nLit at dusk.")
        # Connected by its address, so that it is not ours to start.
        async with App.open(replace(settings, database_url=url, embedder="none")) as app:
            await app.ingest.store(collection="light", file=tmp_path / "a.md")
            await embedded.stop()
            coming = asyncio.create_task(embedded.start())
            found = await app.search(Query(text="lamp", collection="light"))
            assert len(found.results) == 1
            await coming
    finally:
        await embedded.stop()


@pytest.mark.skipif(PGBOUNCER is None, reason="there is no pgbouncer here")
async def test_a_pooler_is_recognised(server: str, database_url: str, tmp_path: Path) -> None:
    with pgbouncer(server, tmp_path) as port:
        async with Database(by_port(database_url, port)) as pooled, Database(database_url) as not_:
            assert (pooled.pooled, not_.pooled) == (True, False)
