"""The server as a process: its door, its lock, its end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from serving import BIN, Served, environment_of, served, start

from conftest import Vade
from vademecum.surfaces.claude_code import settings as claude
from vademecum.surfaces.http.guard import MAX_BODY_BYTES
from vademecum.surfaces.http.instance import find, is_served, token

Write = Callable[[dict[str, str | bytes]], Path]
PAGE = "# The lamp\n\nThe oil is kept in the cellar, in barrels of forty litres.\n"


@pytest.fixture
def own_home(tmp_path: Path, home: Path) -> Path:
    own = tmp_path / "home"
    own.mkdir()
    (own / "models").symlink_to(home / "models")
    return own


@pytest.fixture
def server_process(own_home: Path, database_url: str) -> Iterator[Served]:
    with served(own_home, database_url, VADE_EMBEDDER="none") as running:
        yield running


def queue(database_url: str) -> dict[str, int]:
    with psycopg.connect(database_url) as connection:
        return dict(
            connection.execute(
                "SELECT status, count(*) FROM processing_queue GROUP BY status"
            ).fetchall()
        )


def exchange(to: Served, headers: str, body: bytes) -> bytes:
    """The first line of the answer to a POST that is refused before all of it is sent."""
    head = (
        f"POST /search HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {token(to.home)}\r\n"
        f"Content-Type: application/json\r\n{headers}\r\n\r\n"
    )
    with socket.create_connection((to.address.host, to.address.port), timeout=30) as connection:
        connection.sendall(head.encode())
        with contextlib.suppress(OSError):
            connection.sendall(body)
        return connection.recv(4096).split(b"\r\n")[0]


def test_without_a_token_nothing_opens(server_process: Served) -> None:
    url = server_process.address.url
    for path in ("/status", "/collections", "/openapi.json", "/hooks/pre-tool-use", "/no-such"):
        refused = httpx.get(url + path)
        assert refused.status_code == 401
        assert refused.headers["content-type"] == "application/problem+json"
    assert httpx.get(url + "/health").json() == {"status": "ok"}
    wrong = {"Authorization": "Bearer wrongé".encode()}
    assert httpx.get(url + "/status", headers=wrong).status_code == 401


def test_the_hook_token_opens_only_the_hooks(server_process: Served) -> None:
    with server_process.client("hook-token") as client:
        assert client.get("/status").status_code == 401
        assert client.post("/hooks/post-tool-use", json={}).status_code == 200


def test_tokens_are_for_their_owner_only(server_process: Served) -> None:
    for name in ("token", "hook-token"):
        assert (server_process.home / "serve" / name).stat().st_mode & 0o777 == 0o600


def test_a_foreign_host_name_is_refused(server_process: Served) -> None:
    with server_process.client() as client:
        for host in ("evil.example", "evil.example:8233", "127.0.0.1.evil.example", ""):
            assert client.get("/status", headers={"Host": host}).status_code in (400, 421)
        assert client.get("/status", headers={"Host": "localhost:1"}).status_code == 200


def test_a_body_that_is_too_large_is_refused(server_process: Served) -> None:
    with server_process.client() as client:
        for headers, sent in (
            (f"Content-Length: {MAX_BODY_BYTES + 1}", b""),
            ("Transfer-Encoding: chunked", b"%x\r\n%b\r\n" % (9_000_000, b" " * 9_000_000)),
        ):
            assert b" 413 " in exchange(server_process, headers, sent)
        assert client.get("/status").status_code == 200


def test_health_tells_of_a_database_that_is_gone(own_home: Path, database_url: str) -> None:
    with (
        served(own_home, database_url, VADE_EMBEDDER="none") as running,
        running.client() as client,
    ):
        assert client.get("/health").json()["database"]["ok"]
        name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
        elsewhere = psycopg.conninfo.make_conninfo(database_url, dbname="postgres")
        with psycopg.connect(elsewhere, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
            failing = client.get("/health")
            assert failing.status_code == 503
            assert failing.json()["status"] == "failing"
            assert not failing.json()["database"]["ok"]
            hook = client.post("/hooks/pre-tool-use", json={"tool_name": "WebFetch"})
            assert (hook.status_code, hook.content) == (200, b"")
            connection.execute(f'CREATE DATABASE "{name}"')  # for the fixture to drop


def test_one_server_a_home(server_process: Served) -> None:
    second = subprocess.run(
        [BIN / "vade", "serve", "--port", "0", "--json"],
        env=server_process.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert second.returncode == 2
    assert json.loads(second.stdout)["error"] == "AlreadyServing"
    assert find(server_process.home) == server_process.address


def test_a_killed_server_leaves_no_lock(own_home: Path, database_url: str) -> None:
    for _ in range(3):
        with served(own_home, database_url, VADE_EMBEDDER="none") as running:
            os.kill(running.process.pid, signal.SIGKILL)
            running.process.wait()
            assert not is_served(own_home)
            assert find(own_home) is None


def test_it_ends_clean_on_sigterm(server_process: Served) -> None:
    code, said = server_process.stop()
    assert code == 0, said
    assert "Traceback" not in said
    assert find(server_process.home) is None
    assert not (server_process.home / "serve" / "address").exists()


def test_a_worker_of_the_server_works_off_jobs_and_returns_them_when_stopped(
    own_home: Path, database_url: str, vade: Vade, write: Write
) -> None:
    folder = write({f"page{number}.md": PAGE * 40 for number in range(300)})
    stored = vade("bulk-index", folder, "-c", "light", "--no-wait")
    assert stored.returncode == 0, stored.stderr
    with served(own_home, database_url) as running:
        deadline = time.monotonic() + 60
        while not queue(database_url).get("processing") and time.monotonic() < deadline:
            time.sleep(0.01)
        code, said = running.stop()
        assert code == 0, said
        left = queue(database_url)
        assert "processing" not in left
        assert left["pending"] > 0, "it was done too soon for this test to show anything"


def test_the_server_searches_what_it_worked_off(
    own_home: Path, database_url: str, vade: Vade, write: Write
) -> None:
    vade("bulk-index", write({"lamp.md": PAGE}), "-c", "light", "--no-wait")
    with served(own_home, database_url) as running, running.client() as client:
        deadline = time.monotonic() + 60
        while client.get("/status").json()["collections"][0]["chunks"] == 0:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        question = {"query": "where is the oil?", "collection": "light"}
        served_hits = client.post("/search", json=question).json()["results"]
        told = json.loads(vade("search", question["query"], "-c", "light", "--json").stdout)
        assert [hit["text"] for hit in served_hits] == [hit["text"] for hit in told["results"]]
        answer = client.post(
            "/answer", json={"question": "Where is the oil kept?", "collection": "light"}
        )
        assert "cellar" in answer.json()["answer"]
        unknown = client.post("/search", json=question | {"collection": "dark"})
        assert unknown.status_code == 404
        assert unknown.json()["type"] == "urn:vademecum:UnknownCollection"


def test_it_ends_when_idle(own_home: Path, database_url: str) -> None:
    idle = start(own_home, database_url, "--idle-exit", "0.01", VADE_EMBEDDER="none")
    _, said = idle.process.communicate(timeout=60)
    assert idle.process.returncode == 0, said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "--expose"),
        (["--host", "example.org"], "not an IP address"),
        (["--port", "70000"], "cannot be used"),
        (["--workers", "-1"], "workers"),
    ],
)
def test_what_cannot_be_served_is_refused(vade: Vade, arguments: list[str], says: str) -> None:
    refused = vade("serve", *arguments)
    assert refused.returncode == 2
    assert says in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_port_in_use_is_named(vade: Vade) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = vade("serve", "--port", port)
    assert refused.returncode == 2
    assert port in refused.stderr


def test_a_worker_works_until_it_is_stopped(
    own_home: Path, database_url: str, vade: Vade, write: Write, server_process: Served
) -> None:
    server_process.stop()
    vade("bulk-index", write({"lamp.md": PAGE}), "-c", "light", "--no-wait", VADE_EMBEDDER="none")
    worker = subprocess.Popen(
        [BIN / "vade", "worker"], env=server_process.environment, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while {"pending", "processing"} & queue(database_url).keys():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        worker.terminate()
        _, said = worker.communicate(timeout=60)
    finally:
        worker.kill()
    assert worker.returncode == 0, said
    assert not queue(database_url).get("pending")


def test_the_token_is_printed_only_on_request(server_process: Served) -> None:
    printed = subprocess.run(
        [BIN / "vade", "token"],
        env=server_process.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.strip()
    assert printed == token(server_process.home)
    _, said = server_process.stop()
    assert printed not in said


def test_the_cache_over_http(server_process: Served) -> None:
    url = "https://example.org/lamp"
    with server_process.client() as client:
        missed = client.post("/cache/check", json={"url": url})
        assert missed.json()["outcome"] == "miss"
        unread = client.post("/cache/read", json={"url": url})
        assert (unread.status_code, unread.json()["type"]) == (400, "urn:vademecum:BadInput")
        stored = client.post("/cache/pages", json={"url": url, "content": PAGE})
        assert stored.json() == {"url": url, "action": "stored"}
        hit = client.post("/cache/check", json={"url": url, "prompt": "where is the oil?"}).json()
        assert hit["outcome"] == "hit"
        assert "cellar" in hit["text"]
        assert "cellar" in client.post("/cache/read", json={"url": url}).json()["text"]
        refused = client.post("/cache/pages", json={"url": "http://127.0.0.1/secret"})
        assert refused.status_code == 403
        asked = {"tool_name": "WebFetch", "tool_input": {"url": url, "prompt": "oil"}}
        said = client.post("/hooks/pre-tool-use", json=asked).json()["hookSpecificOutput"]
        assert said["permissionDecision"] == "deny"
        assert "cellar" in said["permissionDecisionReason"]


def test_commands_of_the_cache_ask_the_server(server_process: Served) -> None:
    url = "https://example.org/lamp"

    def vade(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [BIN / "vade", *arguments],
            env=server_process.environment | variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    with server_process.client() as client:
        client.post("/cache/pages", json={"url": url, "content": PAGE}).raise_for_status()
        client.post("/cache/check", json={"url": url}).raise_for_status()
    # Rules that the server has read, and that no other process can.
    (server_process.home / "cache.toml").write_text("these are no rules")

    assert "forty litres" in vade("check-url", url).stdout
    assert "forty litres" in vade("read-page", url, "--offset", "0").stdout
    missed = vade("check-url", "https://example.org/other")
    assert (missed.returncode, missed.stdout) == (0, "CACHE_MISS\n")
    assert json.loads(vade("check-url", url, "--json").stdout)["outcome"] == "hit"

    # What it cannot answer, and another database, are a process's own affair.
    assert "cache.toml" in vade("read-page", url, "--offset", "-1").stderr
    other = server_process.environment["VADE_DATABASE_URL"] + " application_name=other"
    assert "cache.toml" in vade("check-url", url, VADE_DATABASE_URL=other).stderr
    server_process.process.send_signal(signal.SIGSTOP)
    assert "cache.toml" in vade("check-url", url).stderr
    server_process.process.send_signal(signal.SIGCONT)


def test_doctor_says_where_the_chain_is_broken(server_process: Served, tmp_path: Path) -> None:
    environment = server_process.environment | {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    settings = tmp_path / "settings.json"

    def doctor() -> tuple[int, dict[str, str], dict[str, Any]]:
        done = subprocess.run(
            [BIN / "vade", "doctor", "--json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=tmp_path,
        )
        report = json.loads(done.stdout)
        details = {check["name"]: check["detail"] for check in report["checks"]}
        return done.returncode, details, report

    def install(port: int, hook_token: str) -> None:
        hook = claude.http_hook("pre-tool-use", port=port, token=hook_token)
        settings.write_text(json.dumps(claude.with_hooks({}, {"PreToolUse": hook}, "")))

    port, secret = server_process.address.port, token(server_process.home, "hook-token")
    install(port, secret)
    code, details, _ = doctor()
    assert code == 0, details
    assert "hit in" in details["cache"]
    assert server_process.address.url in details["server"]
    assert details["agent"] == "Claude Code: PreToolUse (user, http)"

    install(port, "old")
    code, details, _ = doctor()
    assert (code, "the token in" in details["agent"]) == (1, True)

    with socket.create_server(("127.0.0.1", 0)) as unused:
        other = unused.getsockname()[1]
    install(other, secret)
    code, details, _ = doctor()
    assert (code, f"{other}/hooks/pre-tool-use, where nothing answers" in details["agent"]) == (
        1,
        True,
    )

    settings.write_text("{}")
    (server_process.home / "serve" / "hook-token").write_text("wrong\n")
    code, details, broken = doctor()
    assert code == 1
    assert "nothing is installed" in details["agent"]
    assert "401" in details["server"]
    assert "401" in broken["hooks_log"][-1]


def test_stopped_before_it_began_it_ends_in_good_order(own_home: Path, database_url: str) -> None:
    environment = environment_of(own_home, database_url, VADE_EMBEDDER="none")
    for command in (["worker"], ["serve", "--port", "0"]):
        for delay in (0.15, 0.3, 0.6):
            process = subprocess.Popen(
                [BIN / "vade", *command], env=environment, stderr=subprocess.PIPE, text=True
            )
            time.sleep(delay)
            process.terminate()
            _, said = process.communicate(timeout=60)
            # Before the command is known the interpreter itself ends, as any does.
            assert process.returncode in (0, -signal.SIGTERM), said
            assert "Traceback" not in said
