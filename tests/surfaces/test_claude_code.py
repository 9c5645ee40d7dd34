"""The real Claude Code, asked by a scripted model to fetch a page of a site on this machine."""

import json
import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from claude_client import Client, claude
from serving import Served, served

from anthropic_server import MessagesServer, ToolCall, ToolResult
from cache.site import Site
from conftest import Vade

FACT = "The oil of the lamp is kept in the cellar, in barrels of forty litres."
PROMPT = "Where is the oil kept?"
DIGEST = ToolResult(text="What a small model made of the page.", is_error=False)
DONE = "All done."


@pytest.fixture
def client(tmp_path: Path) -> Client:
    user = tmp_path / "user"
    (user / ".claude").mkdir(parents=True)
    # The client would ask its vendor's server whether a host is safe.
    settings = {"skipWebFetchPreflight": True}
    (user / ".claude" / "settings.json").write_text(json.dumps(settings))
    return Client(command=claude(), user=user, certificates=tmp_path / "authority.pem")


@pytest.fixture
def site(client: Client) -> Iterator[Site]:
    """Over TLS, without which the client fetches nothing."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(client.certificates)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    site = Site()
    site.server.socket = tls.wrap_socket(site.server.socket, server_side=True)
    yield site
    site.close()


def page() -> str:
    """Longer than a hit may be, with the fact in one of its sections."""
    filler = "<p>" + "Nothing in this part is about what was asked. " * 60 + "</p>"
    sections = [f"<h2>Part {number}</h2>{filler}" for number in range(30)]
    sections[17] = f"<h2>Oil</h2><p>{FACT}</p>{filler}"
    return f"<html><title>Lamps</title><body><h1>Lamps</h1>{''.join(sections)}</body></html>"


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def fetch(client: Client, url: str) -> ToolResult:
    """What the model receives when it asks for the page."""
    call = ToolCall(name="WebFetch", input={"url": url, "prompt": PROMPT})
    with MessagesServer([call, DONE], aside=DIGEST.text) as model:
        assert client.ask(model) == DONE
        (result,) = model.tool_results
    return result


def wait_for_page(running: Served, url: str) -> None:
    deadline = time.monotonic() + 60
    with running.client() as asking:
        while (
            asking.post("/cache/check", json={"url": url}).json()["outcome"] != "hit"
            or asking.get("/jobs").json()["pending"]
        ):
            assert time.monotonic() < deadline, "the page that was fetched never got stored"
            time.sleep(0.1)


def fetch_served(client: Client, site: Site, url: str) -> ToolResult:
    """As `fetch`. A busy machine may miss a hook's time limit, and then the tool runs."""
    for _ in range(4):
        before = len(site.requests)
        if (result := fetch(client, url)) != DIGEST:
            assert len(site.requests) == before
            return result
    raise AssertionError("the page is stored, and was not served")


@pytest.mark.parametrize("transport", ["http", "command"])
def test_a_page_is_fetched_once_and_then_served(
    client: Client, site: Site, vade: Vade, tmp_path: Path, database_url: str, transport: str
) -> None:
    site.pages["/lamps"] = page()
    url = f"https://127.0.0.1:{site.port}/lamps"
    home, port = tmp_path / "home", a_free_port()
    home.mkdir()
    (home / "cache.toml").write_text("[defaults]\nprivate_network = true\n")
    installed = vade(
        *("install", "claude-code", "--user", "--yes"),
        # Left alone it takes HTTP hooks, since the client on the path has them.
        *(() if transport == "http" else ("--transport", transport)),
        HOME=str(client.user),
        PATH=f"{client.command.parent}:{os.environ['PATH']}",
        VADE_HOME=str(home),
        VADE_PORT=str(port),
    )
    assert installed.returncode == 0, installed.stderr
    settings = json.loads((client.user / ".claude" / "settings.json").read_text())
    assert settings["hooks"]["PreToolUse"][0]["hooks"][0]["type"] == transport

    with served(
        home,
        database_url,
        port=port,
        VADE_EMBEDDER="none",
        VADE_HOOK_CAP_MS="1500",
        SSL_CERT_FILE=str(client.certificates),
    ) as running:
        assert fetch(client, url) == DIGEST, "a miss: the tool runs"
        wait_for_page(running, url)
        asked = [headers["user-agent"].split(" ")[0] for _, headers in site.requests]
        assert [name.split("/")[0] for name in asked] == ["Claude-User", "vademecum"]

        hit = fetch_served(client, site, url)
        assert FACT in hit.text, "a hit: the model reads the passages of the page"
        assert "from the local document cache: fetched " in hit.text
        assert len(hit.text) < len(page()) / 2

        os.kill(running.process.pid, signal.SIGSTOP)
        assert fetch(client, url) == DIGEST, "a server that does not answer holds nobody up"
        os.kill(running.process.pid, signal.SIGCONT)
        code, said = running.stop()
        assert code == 0, said

    assert fetch(client, url) == DIGEST, "without a server all is as it was before us"
