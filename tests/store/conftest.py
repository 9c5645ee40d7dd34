"""Everything about the store is tested twice: on the server, and through a pooler before it."""

from collections.abc import Iterator

import pytest

from pooler import PGBOUNCER, by_port, pgbouncer


@pytest.fixture(scope="session")
def pooler(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a PgBouncer in transaction mode before the server."""
    if PGBOUNCER is None:
        pytest.skip("there is no pgbouncer here: `apt-get install pgbouncer`")
    with pgbouncer(server, tmp_path_factory.mktemp("pgbouncer")) as port:
        yield port


@pytest.fixture(params=["direct", "pooled"])
def database_url(request: pytest.FixtureRequest, database_url: str) -> str:
    if request.param == "direct":
        return database_url
    return by_port(database_url, request.getfixturevalue("pooler"))
