"""The HTTP API against its own description."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from serving import Served, served

from conftest import Vade
from vademecum import errors
from vademecum.surfaces.http.api import create_api
from vademecum.surfaces.http.instance import token
from vademecum.surfaces.http.problems import STATUS, status_of

DESCRIPTION = create_api(None).openapi()
schema = schemathesis.openapi.from_dict(DESCRIPTION)
# Not every boundary of every field: that alone is hundreds of calls.
schema.config.phases.coverage.enabled = False


@pytest.fixture(scope="module")
def api(
    tmp_path_factory: pytest.TempPathFactory, home: Path, server: str, template: str
) -> Iterator[Served]:
    """A server on a database of this module's own."""
    own = tmp_path_factory.mktemp("api")
    (own / "models").symlink_to(home / "models")
    name = f"api_{own.name}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    url = psycopg.conninfo.make_conninfo(server, dbname=name)
    with served(own, url, VADE_EMBEDDER="none") as running:
        yield running
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


# A stream without an end is no answer to wait for: test_service.py listens to it.
@schema.exclude(path="/events").parametrize()
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_input_makes_a_server_error(case: schemathesis.Case, api: Served) -> None:
    bearer = {"Authorization": f"Bearer {token(api.home)}"}
    answer = case.call(base_url=api.address.url, headers=bearer, timeout=30)
    if case.path != "/health":  # 503 is how it tells the truth
        case.validate_response(answer, checks=[not_a_server_error])


def test_a_rate_that_the_database_cannot_hold_is_refused(api: Served) -> None:
    with api.client() as client:
        asked = {"name": "slow", "scopes": ["read"], "rate": 5e-324}
        assert client.post("/keys", json=asked).status_code == 422


def test_a_folder_that_no_system_can_have_is_not_there(api: Served) -> None:
    with api.client() as client:
        for path in ("/link", "/radar", "/radar/sarif"):
            answer = client.post(path, json={"folder": "0" * 300})
            assert (answer.status_code, answer.json()["type"]) == (400, "urn:vademecum:BadInput")


def test_every_operation_is_described() -> None:
    for path, operations in DESCRIPTION["paths"].items():
        for method, operation in operations.items():
            assert operation.get("summary"), f"{method} {path}"


def test_every_error_has_a_status() -> None:
    def classes(root: type[errors.VadeError]) -> Iterator[type[errors.VadeError]]:
        for kind in root.__subclasses__():
            yield kind
            yield from classes(kind)

    for kind in classes(errors.VadeError):
        assert any(base in STATUS for base in kind.__mro__), kind
    assert status_of(errors.UnknownProfile("x", [])) == 400


def test_openapi_is_printed(vade: Vade) -> None:
    printed = vade("openapi")
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout) == json.loads(json.dumps(DESCRIPTION))
