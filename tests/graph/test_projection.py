"""The projection to a real Neo4j: everything arrives, differences are named, nothing is lost."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from neo4j import GraphDatabase

from graph.graph_things import CODE, FILE, FUNCTION, GET, GUIDE, KNOWN, SHARED, doc
from neo4j_server import free_port
from vademecum.app import App
from vademecum.errors import BadInput, BadSetting, ProjectionUnavailable
from vademecum.settings import Settings

pytestmark = pytest.mark.xdist_group("neo4j")  # one server is enough


@pytest.fixture
async def app(settings: Settings, neo4j_url: str) -> AsyncIterator[App]:
    async with App.open(replace(settings, embedder="none", neo4j_url=neo4j_url)) as app:
        yield app


async def fill(app: App) -> None:
    await app.graph.state("environment", "all", nodes=SHARED, relations=KNOWN)
    await app.graph.state("link", FILE.path, project="shop", nodes=[FILE, FUNCTION], relations=CODE)


def run(url: str, query: str) -> list[dict[str, object]]:
    with GraphDatabase.driver(url) as driver:
        return [record.data() for record in driver.execute_query(query).records]  # type: ignore[arg-type]


async def same(app: App) -> bool:
    found = await app.projection.verify()
    return found.different == 0 and found.waiting == 0


async def test_everything_arrives_and_every_change_follows(app: App, neo4j_url: str) -> None:
    await fill(app)
    await app.projection.rebuild()
    first = await app.projection.verify()
    await app.graph.state("link", FILE.path, project="shop", nodes=[FILE])
    await app.graph.state("environment", "more", nodes=[doc("Added")])
    await app.graph.record_usage(GUIDE.id, agent_id="a", outcome="success", use="1")
    late = await app.projection.verify()
    told = await app.projection.work()

    assert (first.nodes, first.relations) == (len(SHARED) + 2, len(KNOWN) + len(CODE))
    assert (first.different, first.waiting) == (0, 0)
    assert late.different > 0
    assert late.waiting == told
    assert await same(app)
    assert await app.projection.work() == 0


async def test_nodes_look_as_the_design_document_has_them(app: App, neo4j_url: str) -> None:
    await fill(app)
    await app.projection.rebuild()
    [api] = run(neo4j_url, "MATCH (a:Entity:APIReference {name: 'requests.get'}) RETURN a")
    [guide] = run(neo4j_url, "MATCH (d:ExternalDoc {title: 'Requests guide'}) RETURN d")
    [use] = run(
        neo4j_url, "MATCH (:APIReference)-[r:USED_IN]->(f:Function) RETURN properties(r) AS r"
    )
    constraints = run(neo4j_url, "SHOW CONSTRAINTS YIELD name RETURN name")

    assert api["a"]["parameters"] == '[{"name": "url"}, {"default": "None", "name": "params"}]'  # type: ignore[index]
    assert guide["d"]["last_updated"].to_native() == GUIDE.last_updated  # type: ignore[index]
    assert guide["d"]["relevance_score"] > 0  # type: ignore[index]
    assert use["r"]["line_number"] == 12  # type: ignore[index]
    assert {"name": "vade_entity"} in constraints


async def test_differences_are_named_and_repaired(app: App, neo4j_url: str) -> None:
    await fill(app)
    await app.projection.rebuild()
    run(neo4j_url, "MATCH (a:APIReference {name: 'lib.old'}) SET a.signature = 'wrong'")
    run(neo4j_url, "MATCH (a:APIReference {name: 'tomllib.loads'}) DETACH DELETE a")
    run(neo4j_url, "MATCH (:CodeExample)-[r:SOLVES]->() DELETE r")
    run(
        neo4j_url,
        "MATCH (f:Function) CREATE (f)-[:USED_IN {id: '00000000-0000-0000-0000-000000000002'}]->"
        "(:Entity:Cat {id: '00000000-0000-0000-0000-000000000001', name: 'Tom'})",
    )
    found = await app.projection.verify()
    named = sorted((each.what, each.kind, each.detail) for each in found.differences)
    await app.projection.rebuild()

    assert named == [
        ("different", "APIReference", "signature"),
        ("missing", "APIReference", ""),
        ("missing", "COMPATIBLE_WITH", ""),
        ("missing", "SOLVES", ""),
        ("superfluous", "Cat", ""),
        ("superfluous", "USED_IN", ""),
    ]
    assert found.different == 6
    assert await same(app)


async def test_stopped_anywhere_it_goes_on(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vademecum.projections.project.BATCH", 3)
    await fill(app)
    projecting = asyncio.create_task(app.projection.rebuild())
    while not await app.projection.waiting():
        await asyncio.sleep(0.01)
    left = [await app.projection.waiting()]
    for _ in range(8):
        await asyncio.sleep(0.2)
        projecting.cancel()
        await asyncio.wait([projecting])
        left.append(await app.projection.waiting())
        projecting = asyncio.create_task(app.projection.work())
    await projecting

    assert left[0] > 0
    assert left == sorted(left, reverse=True)
    assert await same(app)


async def test_changes_made_while_it_works_are_not_lost(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vademecum.projections.project.BATCH", 2)
    await fill(app)
    await app.projection.rebuild()

    async def change() -> None:
        for number in range(6):
            nodes = [FILE, FUNCTION] if number % 2 else [FILE]
            relations = CODE if number % 2 else []
            await app.graph.state(
                "link", FILE.path, project="shop", nodes=nodes, relations=relations
            )
            text = replace(GET, description=f"{number}")
            await app.graph.state("environment", "requests", nodes=[text, doc(f"Page {number}")])

    async with asyncio.TaskGroup() as group:
        changing = group.create_task(change())
        while not changing.done():
            await app.projection.work()
    await app.projection.work()

    assert await same(app)


async def test_while_neo4j_is_away_nothing_is_lost(settings: Settings, app: App) -> None:
    await fill(app)
    await app.projection.rebuild()
    away = replace(settings, embedder="none", neo4j_url=f"bolt://127.0.0.1:{free_port()}")
    async with App.open(away) as other:
        await other.graph.state("environment", "later", nodes=[doc("Written meanwhile")])
        with pytest.raises(ProjectionUnavailable, match="Neo4j at bolt:"):
            await other.projection.work()
        with pytest.raises(ProjectionUnavailable):
            await other.graph.query("effective_sources", on="neo4j")
        assert await other.graph.query("effective_sources") == []
        waiting = await other.projection.waiting()
    await app.projection.work()

    assert waiting > 0
    assert await same(app)


async def test_stopped_for_good_no_change_waits(app: App) -> None:
    await app.projection.rebuild()
    assert await app.projection.stop()
    await fill(app)

    assert await app.projection.waiting() == 0
    assert not await app.projection.stop()
    with pytest.raises(BadInput, match="not projected"):
        await app.projection.verify()


async def test_an_address_that_is_none_is_a_bad_setting(settings: Settings) -> None:
    async with App.open(replace(settings, embedder="none", neo4j_url="localhost")) as app:
        with pytest.raises(BadSetting, match="VADE_NEO4J_URL"):
            await app.projection.rebuild()
        assert await app.projection.waiting() == 0


async def test_without_a_server_set_it_says_so(lexical_app: App) -> None:
    with pytest.raises(BadSetting, match="no Neo4j server is set"):
        _ = lexical_app.projection
    with pytest.raises(BadInput, match="not in neo4j"):
        await lexical_app.graph.query("effective_sources", on="neo4j")
