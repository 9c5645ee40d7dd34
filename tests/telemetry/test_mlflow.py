"""Spans in a real MLflow server, found by its own client."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from conftest import Vade
from pypi import installed

VERSION = "3.17.2"
SEARCH = """
import json, sys, mlflow
mlflow.set_tracking_uri(sys.argv[1])
spans = []
for trace in mlflow.search_traces(locations=["0"], return_type="list"):
    for span in trace.data.spans:
        spans.append({"name": span.name, "kind": span.span_type, **span.attributes})
print(json.dumps({"version": mlflow.__version__, "spans": spans}, default=str))
"""


@pytest.fixture(scope="module")
def command() -> Path:
    """The command `mlflow`; where there is none it is installed once, in a folder of the user's."""
    if found := shutil.which("mlflow"):
        return Path(found).resolve()
    return installed("mlflow", VERSION) / "bin" / "mlflow"


@pytest.fixture(scope="module")
def mlflow(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of this test's own."""
    folder = tmp_path_factory.mktemp("mlflow")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [
                *(command, "server", "--backend-store-uri", f"sqlite:///{folder}/traces.db"),
                *("--artifacts-destination", folder / "artifacts", "--workers", "1"),
                *("--host", "127.0.0.1", "--port", str(port)),
            ],
            cwd=folder,
            env=_quietly(),
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(url, server, folder / "log")
        yield url
    finally:
        server.terminate()
        server.wait(30)


def test_a_page_that_is_stored_checked_and_searched_leaves_its_traces(
    mlflow: str, command: Path, vade: Vade, write: Callable[[dict[str, str | bytes]], Path]
) -> None:
    folder = write({"a.md": "# Graph\n\nBuild the graph."})
    to = {"VADE_TRACES_URL": f"{mlflow}/v1/traces"}
    for arguments in (
        ("store", "--file", str(folder / "a.md"), "-c", "docs"),
        ("search", "build the graph", "-c", "docs"),
        ("check-url", "https://example.org/a"),
    ):
        done = vade(*arguments, **to)
        assert done.returncode == 0, done.stderr

    asked = subprocess.run(
        [command.with_name("python"), "-c", SEARCH, mlflow],
        env=_quietly(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout.splitlines()[-1])
    spans = {span["name"]: span for span in answer["spans"]}

    assert tuple(int(part) for part in answer["version"].split(".")[:2]) >= (3, 9)
    assert spans["postgresql.store"]["action"] == "inserted"
    assert spans["local.embed"]["kind"] == "EMBEDDING"
    found = spans["postgresql.search"]
    assert (found["kind"], found["query"], found["results_count"]) == (
        "RETRIEVER",
        "build the graph",
        1,
    )
    checked = spans["postgresql.cache_check"]
    assert (checked["url"], checked["outcome"]) == ("https://example.org/a", "miss")
    assert all(span["latency_ms"] > 0 for span in answer["spans"])


def _wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            if httpx.get(f"{url}/health").status_code == 200:
                return
        except httpx.TransportError:
            pass
        if server.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"MLflow did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.2)


def _quietly() -> dict[str, str]:
    return os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
