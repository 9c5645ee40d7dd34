"""A real Neo4j server for tests of the projection, or the reason why there is none."""

from collections.abc import Iterator

import pytest

from neo4j_server import NoNeo4j, neo4j_server


@pytest.fixture(scope="session")
def neo4j_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        server = neo4j_server(tmp_path_factory.mktemp("neo4j"))
        address = server.__enter__()
    except NoNeo4j as reason:
        pytest.skip(f"no Neo4j here: {reason}")
    try:
        yield address
    finally:
        server.__exit__(None, None, None)


@pytest.fixture
def neo4j_url(neo4j_address: str) -> str:
    """The server, empty."""
    from neo4j import GraphDatabase

    with GraphDatabase.driver(neo4j_address) as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n")
    return neo4j_address
