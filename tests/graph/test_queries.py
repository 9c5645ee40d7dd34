"""The named queries, held to the same answers on every store of the graph."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from graph.graph_things import (
    ANSWER,
    CODE,
    EXAMPLE,
    FILE,
    FUNCTION,
    GET,
    GUIDE,
    KNOWN,
    NEW,
    OLD_PRACTICE,
    PRACTICE,
    SHARED,
)
from vademecum.app import App
from vademecum.errors import BadInput
from vademecum.graph.queries import QUERIES
from vademecum.projections.cypher import CYPHER
from vademecum.settings import Settings
from vademecum.store import graph_queries

Ask = Callable[..., Awaitable[list[dict[str, Any]]]]


async def fill(app: App) -> None:
    await app.graph.state("environment", "all", nodes=SHARED, relations=KNOWN)
    await app.graph.state("link", FILE.path, project="shop", nodes=[FILE, FUNCTION], relations=CODE)
    # Another project's code, that no query of the first may show.
    other = [FILE, FUNCTION]
    await app.graph.state(
        "link",
        FILE.path,
        project="rival",
        nodes=[type(node).of(node.properties() | {"in_project": "rival"}) for node in other],
    )
    for number in range(7):
        await app.graph.record_usage(
            GUIDE.id, agent_id="a", outcome="success", use=str(number), project="shop"
        )
    await app.graph.record_usage(ANSWER.id, agent_id="a", outcome="misled", use="x")


@pytest.fixture(
    params=["postgresql", pytest.param("neo4j", marks=pytest.mark.xdist_group("neo4j"))]
)
async def ask(request: pytest.FixtureRequest, settings: Settings) -> AsyncIterator[Ask]:
    """Asks the store of the parameter; both hold the same."""
    store = request.param
    url = request.getfixturevalue("neo4j_url") if store == "neo4j" else None
    async with App.open(replace(settings, embedder="none", neo4j_url=url)) as app:
        await fill(app)
        if url is not None:
            await app.projection.rebuild()
        yield partial(app.graph.query, on=store)


def column(rows: list[dict[str, Any]], *names: str) -> list[Any]:
    return [row[names[0]] if len(names) == 1 else tuple(row[n] for n in names) for row in rows]


async def test_usable_apis_compare_versions_as_numbers(ask: Ask) -> None:
    found = {
        version: column(await ask("usable_apis", package="lib", version=version), "name")
        for version in ("0.9", "1.0", "1.9", "1.10", "2.0b1", "2.0")
    }

    assert found == {
        "0.9": [],
        "1.0": ["lib.old"],
        "1.9": ["lib.middle"],
        "1.10": ["lib.new"],
        "2.0b1": ["lib.new"],
        "2.0": ["lib.coming", "lib.new"],
    }


async def test_usable_apis_are_read_from_the_nearest_version(ask: Ask) -> None:
    rows = {
        version: await ask("usable_apis", package="lib", version=version, name="lib.new")
        for version in ("1.10", "1.99", "3")
    }

    assert {version: column(each, "read_from", "signature") for version, each in rows.items()} == {
        "1.10": [("1.10", "new(old)")],
        "1.99": [("1.10", "new(old)")],
        "3": [("2.0", None)],
    }
    assert column(rows["3"], "id") == [str(NEW.id)]


async def test_language_apis(ask: Ask) -> None:
    found = {
        version: column(await ask("language_apis", language="Python", version=version), "name")
        for version in ("3.5", "3.9", "3.12")
    }

    assert found == {
        "3.5": ["asyncore.loop", "json.loads"],
        "3.9": ["json.loads", "requests.get"],
        "3.12": ["json.loads", "tomllib.loads"],
    }
    small = await ask("language_apis", language="python", version="3.5")
    assert column(small, "name") == found["3.5"]


async def test_framework_practices(ask: Ask) -> None:
    found = {
        version: column(
            await ask("framework_practices", package="fastapi", version=version), "id", "confidence"
        )
        for version in ("0.8", "0.9", "0.12", "0.99", "0.100")
    }
    good, old = (str(PRACTICE.id), 0.9), (str(OLD_PRACTICE.id), 0.7)

    assert found == {"0.8": [old], "0.9": [good, old], "0.12": [good], "0.99": [good], "0.100": []}


async def test_deprecated_apis_with_their_evidence_and_replacement(ask: Ask) -> None:
    columns = ("name", "status", "deprecation", "replacement")
    found = {
        version: column(await ask("deprecated_apis", package="lib", version=version), *columns)
        for version in ("1.8", "1.9", "2.0")
    }
    old = ("lib.old", "deprecated", "Use middle.", "lib.middle")

    assert found == {
        "1.8": [],
        "1.9": [old],
        "2.0": [("lib.middle", "removed", "Use new.", "lib.new"), old],
    }


async def test_replacements_step_by_step(ask: Ask) -> None:
    assert await ask("replacements", name="lib.old") == [
        {"step": 1, "replaced": "lib.old", "replacement": "lib.middle", "in_version": "1.9"},
        {"step": 2, "replaced": "lib.middle", "replacement": "lib.new", "in_version": "1.10"},
    ]
    assert await ask("replacements", name="lib.new") == []


async def test_effective_documents_and_sources(ask: Ask) -> None:
    [document] = await ask("effective_documents", category="guide")

    assert (document["id"], document["successes"]) == (str(GUIDE.id), 7)
    assert await ask("effective_documents", category="guide", least=7) == []
    assert await ask("effective_sources") == [
        {"source": "python_docs", "successes": 7, "failures": 0, "misled": 0, "documents": 1},
        {
            "source": "stackoverflow_accepted",
            "successes": 0,
            "failures": 0,
            "misled": 1,
            "documents": 1,
        },
    ]


async def test_top_documents_with_what_misled_below(ask: Ask) -> None:
    rows = await ask("top_documents", category="guide", language="Python")

    assert column(rows, "id") == [str(GUIDE.id), str(ANSWER.id)]
    assert rows[0]["relevance"] > 2 * rows[1]["relevance"] > 0
    assert await ask("top_documents", category="guide", language="Go") == []
    assert await ask("top_documents", category="guide") == rows


async def test_the_neighbourhood_of_a_file_and_of_a_function(ask: Ask) -> None:
    of_file = await ask("neighbourhood", project="shop", path=FILE.path)
    of_function = await ask("neighbourhood", project="shop", path=FILE.path, function="fetch")
    columns = ("step", "line_number", "relation", "kind", "name", "of")
    near = [
        (1, 12, "USED_IN", "APIReference", "requests.get", "fetch"),
        (1, 13, "OCCURS_IN", "ErrorPattern", "ReadTimeout: *", "fetch"),
        (1, None, "SIMILAR_TO", "CodeExample", "With a timeout", "fetch"),
    ]
    beyond = [
        (2, None, "DEMONSTRATES", "CodeExample", "With a timeout", "requests.get"),
        (2, None, "DOCUMENTED_IN", "ExternalDoc", "Requests guide", "requests.get"),
        (2, None, "REFERENCES", "BestPractice", "Set a timeout", "requests.get"),
        (2, None, "SOLVES", "CodeExample", "With a timeout", "ReadTimeout: *"),
    ]

    assert column(of_function, *columns) == near + beyond
    assert column(of_file, *columns) == [
        (1, 1, "EXPLAINS", "ExternalDoc", "Requests guide", FILE.path),
        *near[:2],
        (1, None, "APPLIED_IN", "BestPractice", "Set a timeout", FILE.path),
        near[2],
        *beyond,
    ]
    assert column(of_file, "id")[1] == str(GET.id)
    assert of_function[0]["context"] == "x"
    assert str(EXAMPLE.id) in column(of_file, "id")


async def test_projects_do_not_see_each_other(ask: Ask) -> None:
    assert await ask("neighbourhood", project="rival", path=FILE.path) == []
    assert await ask("api_uses", project="rival", name="requests.get") == []
    assert await ask("api_uses", project="shop", name="requests.get") == [
        {"path": FILE.path, "function": "fetch", "line_number": 12, "context": "x"}
    ]


async def test_what_cannot_be_asked(lexical_app: App) -> None:
    asked = lexical_app.graph.query
    with pytest.raises(BadInput, match="no query 'all'"):
        await asked("all")
    with pytest.raises(BadInput, match="needs version"):
        await asked("usable_apis", package="lib")
    with pytest.raises(BadInput, match="no parameter colour"):
        await asked("effective_sources", colour="red")
    with pytest.raises(BadInput, match="'latest' is no version of pypi"):
        await asked("usable_apis", package="lib", version="latest")
    with pytest.raises(BadInput, match="no ecosystem 'gem'"):
        await asked("usable_apis", package="lib", version="1", ecosystem="gem")
    with pytest.raises(BadInput, match="limit must be"):
        await asked("effective_sources", limit="many")


def test_every_query_has_its_twin_in_cypher() -> None:
    assert set(QUERIES) == set(CYPHER) == set(graph_queries.QUERIES)
