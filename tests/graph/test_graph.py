"""Statements of sources: upserts, what goes when it is no longer said, and who sees what."""

import asyncio
from dataclasses import replace

import pytest

from graph.graph_things import FILE, FUNCTION, GET, GUIDE, PYTHON, USED
from vademecum.app import App
from vademecum.errors import BadInput
from vademecum.graph.nodes import APIReference, ExternalDoc, Function
from vademecum.graph.relations import Relation
from vademecum.store.graph import Written


async def test_a_node_comes_back_as_it_was_stated(lexical_app: App) -> None:
    graph = lexical_app.graph
    report = await graph.state("environment", "requests@2.31.0", nodes=[GET, GUIDE])

    assert report.entities == Written(inserted=2)
    assert await graph.find(APIReference, ["requests.get"]) == [GET]
    assert await graph.get([GET.id, GUIDE.id]) == {GET.id: GET, GUIDE.id: GUIDE}
    assert await graph.of_package(ExternalDoc, "", "requests") == [GUIDE]
    assert await graph.of_package(APIReference, "pypi", "requests", version="2.0") == []


async def test_the_same_again_changes_nothing(lexical_app: App) -> None:
    graph = lexical_app.graph
    for _ in range(2):
        report = await graph.state(
            "link", FILE.path, project="shop", nodes=[FILE, FUNCTION], relations=[USED], digest="a"
        )

    assert report.entities == report.relations == Written()
    assert report.removed == 0
    assert await graph.digests("link", project="shop") == {FILE.path: "a"}


async def test_what_a_statement_no_longer_says_goes(lexical_app: App) -> None:
    graph = lexical_app.graph
    await graph.state("environment", "requests@2.31.0", nodes=[GET])
    await graph.state("link", FILE.path, project="shop", nodes=[FILE, FUNCTION], relations=[USED])
    report = await graph.state("link", FILE.path, project="shop", nodes=[FILE])

    assert report.removed == 2  # the function and the call; the API is still stated elsewhere
    assert await graph.find(Function, ["fetch"], project="shop") == []
    assert await graph.find(APIReference, ["requests.get"]) == [GET]
    assert await graph.relations([GET.id], project="shop") == []


async def test_what_several_state_stays_until_the_last_takes_it_back(lexical_app: App) -> None:
    graph = lexical_app.graph
    await graph.state("environment", "requests@2.31.0", nodes=[GET, PYTHON])
    await graph.state("environment", "flask@3.0", nodes=[PYTHON])
    await graph.retract("environment", ["requests@2.31.0"])
    left = await graph.counts()
    await graph.retract("environment")

    assert left.entities == {"Language": 1}
    assert (await graph.counts()).entities == {}
    assert await graph.digests("environment") == {}


async def test_a_mention_does_not_overwrite_and_is_filled_by_a_statement(
    lexical_app: App,
) -> None:
    graph = lexical_app.graph
    bare = replace(GET, signature="", parameters=(), version_introduced="")
    call = replace(USED, start=bare)
    await graph.state("link", FILE.path, project="shop", nodes=[FUNCTION], relations=[call])
    mentioned = await graph.find(APIReference, ["requests.get"])
    await graph.state("environment", "requests@2.31.0", nodes=[GET])
    await graph.state("link", FILE.path, project="shop", nodes=[FUNCTION], relations=[call])

    assert mentioned == [bare]
    assert await graph.find(APIReference, ["requests.get"]) == [GET]


async def test_relations_say_who_states_them(lexical_app: App) -> None:
    graph = lexical_app.graph
    await graph.state("link", FILE.path, project="shop", nodes=[FILE, FUNCTION], relations=[USED])
    [found] = await graph.relations([FUNCTION.id], project="shop", kinds=["USED_IN"])

    assert (found.kind, found.start_id, found.end_id) == ("USED_IN", GET.id, FUNCTION.id)
    assert (found.project, found.source, found.stated_by) == ("shop", "link", FILE.path)
    assert found.properties == {"line_number": 12, "context": "x"}


async def test_a_project_does_not_see_the_code_of_another(lexical_app: App) -> None:
    graph = lexical_app.graph
    await graph.state("link", FILE.path, project="shop", nodes=[FILE, FUNCTION], relations=[USED])

    for project in ("", "other"):
        assert await graph.find(Function, ["fetch"], project=project) == []
        assert await graph.get([FUNCTION.id, GET.id], project=project) == {GET.id: replace(GET)}
        assert await graph.relations([GET.id], project=project) == []
    with pytest.raises(BadInput, match="of project 'shop'"):
        await graph.state("link", FILE.path, project="other", nodes=[FILE])


def test_relations_lead_only_from_and_to_what_they_may() -> None:
    with pytest.raises(BadInput, match="from APIReference to CodeFile"):
        Relation(kind="USED_IN", start=FILE, end=GET)
    with pytest.raises(BadInput, match="no relation 'LIKES'"):
        Relation(kind="LIKES", start=FILE, end=GET)
    with pytest.raises(BadInput, match="no property colour"):
        replace(USED, properties={"colour": "red"})


async def test_texts_that_postgresql_cannot_store_are_cleaned(lexical_app: App) -> None:
    odd = replace(GET, description="zero\0 and \ud800 half", function_name="g" * 3000)
    await lexical_app.graph.state("environment", "odd", nodes=[odd])
    [found] = await lexical_app.graph.find(APIReference, [odd.name])

    assert found.description == "zero and ? half"


async def test_writers_of_shared_nodes_at_once_lose_nothing(lexical_app: App) -> None:
    graph = lexical_app.graph

    async def coming_and_going(number: int) -> None:
        for _ in range(8):
            await graph.state("environment", f"p{number}", nodes=[GET, PYTHON, GUIDE])
            await graph.retract("environment", [f"p{number}"])
        await graph.state("environment", f"p{number}", nodes=[GET, PYTHON])

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(coming_and_going(number))

    assert (await graph.counts()).entities == {"APIReference": 1, "Language": 1}
