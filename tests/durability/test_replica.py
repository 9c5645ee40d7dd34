"""Searches that read from a replica: while it keeps up, and not otherwise."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from replicated import Server, replicated
from vademecum.app import App
from vademecum.errors import DatabaseUnavailable
from vademecum.search.facade import ALONE
from vademecum.settings import Settings
from vademecum.store.replica import ReplicaState
from vademecum.types import Query

LAMP = "# Lamp\n\nThe lamp is lit by the keeper at dusk.\n"

Write = Callable[[dict[str, str | bytes]], Path]


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Server]]:
    with replicated() as servers:
        yield servers


@pytest.fixture
def primary(pair: tuple[Server, Server]) -> Iterator[Server]:
    yield pair[0]
    pair[0].stop()
    pair[0].start()


@pytest.fixture
def replica(pair: tuple[Server, Server]) -> Iterator[Server]:
    yield pair[1]
    pair[1].stop()
    pair[1].start()


@pytest.fixture
async def notices() -> list[str]:
    return []


@pytest.fixture
async def app(
    primary: Server, replica: Server, home: Path, notices: list[str], write: Write
) -> AsyncIterator[App]:
    """With a collection that the replica has, too, and is read from."""
    settings = Settings(home=home, database_url=primary.url, replica_url=replica.url)
    async with App.open(settings, notice=notices.append) as app:
        for one in await app.list_collections():
            await app.delete_collection(one.name)
        await app.ingest.bulk_index(
            write({"lamp.md": LAMP, "wick.md": "# Wick\n\nThe wick is trimmed at noon.\n"}),
            collection="docs",
        )
        await state(app, reading=True)
        yield app


async def state(app: App, *, reading: bool) -> ReplicaState:
    """What a look finds once it finds that."""
    for _ in range(100):
        found = await app.reads.look()
        if found.reading == reading:
            return found
        await asyncio.sleep(0.1)
    raise TimeoutError(f"{found}")


async def paths(app: App, text: str, collection: str = "docs") -> list[str]:
    found = await app.search(Query(text=text, collection=collection))
    return [hit.path for hit in found.results]


async def test_searches_go_on_without_the_primary(app: App, primary: Server) -> None:
    by_both = await app.search(Query(text="who lights the lamp", collection="docs"))
    primary.stop()
    alone = await app.search(Query(text="who lights the lamp", collection="docs"))
    assert alone.results == by_both.results != []
    assert alone.mode == "hybrid"
    assert alone.notices == []
    assert (await app.reads.look()).reason == "the primary does not answer"
    later = await app.search(Query(text="keeper at dusk", collection="docs"))
    assert later.results[0].path == "lamp.md"
    assert later.notices == [ALONE]


async def test_one_that_falls_behind_is_left_until_it_keeps_up(
    app: App, replica: Server, write: Write, notices: list[str]
) -> None:
    replica.ask("SELECT pg_wal_replay_pause()")
    folder = write({"lamp.md": LAMP, "oil.md": "# Oil\n\nOil is kept in the cellar, in barrels.\n"})
    await app.ingest.bulk_index(folder, collection="docs")
    behind = await state(app, reading=False)
    assert "bytes behind" in behind.reason
    assert "oil.md" in await paths(app, "barrels of oil")
    assert "searches read from the primary" in notices[-1]
    replica.ask("SELECT pg_wal_replay_resume()")
    await state(app, reading=True)
    assert "searches read from the replica" in notices[-1]
    assert "oil.md" in await paths(app, "barrels of oil")


async def test_a_collection_that_the_replica_has_not_got_yet_is_found(
    app: App, replica: Server, write: Write
) -> None:
    replica.ask("SELECT pg_wal_replay_pause()")
    folder = write({"rope.md": "# Rope\n\nRopes hang in the shed.\n"})
    await app.ingest.bulk_index(folder, collection="new")
    assert await paths(app, "ropes", "new") == ["rope.md"]
    replica.ask("SELECT pg_wal_replay_resume()")
    await app.delete_collection("new")


async def test_a_replica_that_is_away_costs_no_search(
    app: App, replica: Server, notices: list[str]
) -> None:
    replica.stop()
    assert "lamp.md" in await paths(app, "lamp")
    assert "searches read from the primary" in notices[-1]
    replica.start()
    await state(app, reading=True)
    assert "lamp.md" in await paths(app, "lamp")


async def test_one_that_says_nothing_is_not_waited_for(
    app: App, replica: Server, notices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without power or network answers nothing, not even that it is gone."""
    monkeypatch.setattr("vademecum.store.replica.PATIENCE_SECONDS", 0.5)
    replica.hang()
    try:
        assert "lamp.md" in await paths(app, "lamp")
        assert "no answer within" in notices[-1]
    finally:
        replica.go_on()


async def test_one_who_was_not_asked_for_long_has_to_have_everything(
    app: App, replica: Server, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vademecum.store.replica.LOOK_SECONDS", 0.0)
    replica.ask("SELECT pg_wal_replay_pause()")
    await app.ingest.bulk_index(
        write({"lamp.md": LAMP, "net.md": "# Net\n\nNets dry there.\n"}), collection="docs"
    )
    assert not (await app.reads.look()).reading
    replica.ask("SELECT pg_wal_replay_resume()")


async def test_after_a_pause_searches_read_from_the_primary_until_a_new_look(
    app: App, replica: Server, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have fallen behind meanwhile, and nobody looked."""
    monkeypatch.setattr("vademecum.store.replica.LOOK_SECONDS", 60.0)
    replica.ask("SELECT pg_wal_replay_pause()")
    await app.ingest.bulk_index(
        write({"lamp.md": LAMP, "sail.md": "# Sail\n\nSails are mended there.\n"}),
        collection="docs",
    )
    assert "sail.md" not in await paths(app, "mended sails")  # the last look counts
    monkeypatch.setattr("vademecum.store.replica.LOOK_SECONDS", 0.01)  # and is long ago
    assert "sail.md" in await paths(app, "mended sails")
    replica.ask("SELECT pg_wal_replay_resume()")
    await state(app, reading=True)
    assert "sail.md" in await paths(app, "mended sails")


async def test_a_server_that_follows_none_is_no_replica(
    app: App, primary: Server, notices: list[str]
) -> None:
    settings = replace(app.settings, replica_url=primary.url)
    async with App.open(settings) as mistaken:
        found = await mistaken.reads.look()
        assert not found.reading
        assert "is no replica" in found.reason
        assert "lamp.md" in await paths(mistaken, "lamp")


async def test_without_a_replica(home: Path, primary: Server) -> None:
    async with App.open(Settings(home=home, database_url=primary.url)) as app:
        with pytest.raises(DatabaseUnavailable, match="no replica is set"):
            await app.reads.look()
