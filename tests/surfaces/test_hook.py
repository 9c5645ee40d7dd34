"""vade-hook: whatever happens, the agent carries on."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from serving import BIN, Served, served

from vademecum.surfaces.hooks import project_of
from vademecum.surfaces.http.instance import Address, announced, folder, token

Done = subprocess.CompletedProcess[bytes]
SOURCE = Path(__file__).parents[2] / "src"
ASKED = json.dumps(
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "WebFetch",
        "tool_input": {"url": "https://example.org/page", "prompt": "what?"},
        "cwd": "/",
    }
)


def hook(home: Path, given: str | bytes = ASKED, event: str = "pre-tool-use") -> Done:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VADE_")}
    return subprocess.run(
        [BIN / "vade-hook", event],
        input=given.encode() if isinstance(given, str) else given,
        env=environment | {"VADE_HOME": str(home)},
        capture_output=True,
        timeout=60,
        check=False,
    )


CARRIED_ON = (0, b"", b"")


def outcome(done: Done) -> tuple[int, bytes, bytes]:
    return done.returncode, done.stdout, done.stderr


def log(home: Path) -> str:
    return (home / "serve" / "hooks.log").read_text()


@pytest.fixture
def running(tmp_path: Path, database_url: str) -> Iterator[Served]:
    with served(tmp_path / "home", database_url, VADE_EMBEDDER="none") as one:
        yield one


@contextmanager
def peer(home: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """Something else that listens where the home says its server is."""
    token(home, "hook-token")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=run)
        thread.start()
        port = listener.getsockname()[1]
        with announced(home, Address(host="127.0.0.1", port=port, pid=1, cap_ms=300)):
            yield
        thread.join()


def test_nothing_was_ever_set_up(tmp_path: Path) -> None:
    assert outcome(hook(tmp_path)) == CARRIED_ON
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given", ["", "{", "[]", "null", "1", '{"tool_name": 3}', "\x00", "[" * 100_000, b"\xff\xfe"]
)
def test_malformed_input(running: Served, given: str | bytes) -> None:
    assert outcome(hook(running.home, given)) == CARRIED_ON
    assert outcome(hook(running.home, given, "post-tool-use")) == CARRIED_ON
    assert running.process.poll() is None


def test_an_event_that_is_not_ours(running: Served) -> None:
    assert outcome(hook(running.home, event="../collections")) == CARRIED_ON
    assert "no such event" in log(running.home)


def test_the_server_was_stopped(running: Served) -> None:
    running.stop()
    assert outcome(hook(running.home)) == CARRIED_ON
    assert "no server is running" in log(running.home)


def test_the_server_was_killed(running: Served) -> None:
    running.process.kill()
    running.process.wait()
    assert outcome(hook(running.home)) == CARRIED_ON
    assert "no server is running" in log(running.home)


def test_a_wrong_token(running: Served) -> None:
    (running.home / "serve" / "hook-token").write_text("wrong\n")
    assert outcome(hook(running.home)) == CARRIED_ON
    assert "401" in log(running.home)


def test_a_server_that_hangs(tmp_path: Path) -> None:
    folder(tmp_path)
    release = threading.Event()
    with peer(tmp_path, lambda connection: (release.wait(30), None)[1]):
        done = hook(tmp_path)
        release.set()
    assert outcome(done) == CARRIED_ON
    assert "no answer within 300 ms" in log(tmp_path)


def test_a_server_that_drips(tmp_path: Path) -> None:
    """Each piece comes in time, the whole does not."""

    def drip(connection: socket.socket) -> None:
        try:
            for _ in range(100):
                connection.sendall(b"H")
                time.sleep(0.02)
        except OSError:
            pass

    with peer(tmp_path, drip):
        done = hook(tmp_path)
    assert outcome(done) == CARRIED_ON
    assert "no answer within 300 ms" in log(tmp_path)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage",
        b"HTTP/1.1 500 Oh\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"half": ',
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
    ],
)
def test_an_answer_that_is_none(tmp_path: Path, answer: bytes) -> None:
    def say(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(answer)

    with peer(tmp_path, say):
        done = hook(tmp_path)
    assert outcome(done) == CARRIED_ON
    assert log(tmp_path)


def test_it_passes_on_what_the_server_says(tmp_path: Path) -> None:
    received = []

    def say(connection: socket.socket) -> None:
        while not (b"\r\n\r\n" in (got := b"".join(received)) and got.endswith(b"}")):
            received.append(connection.recv(1 << 16))
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"a": 1}')

    with peer(tmp_path, say):
        done = hook(tmp_path)
    assert outcome(done) == (0, b'{"a": 1}', b"")
    head, _, body = b"".join(received).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hooks/pre-tool-use HTTP/1.1\r\n")
    assert token(tmp_path, "hook-token").encode() in head
    assert body == ASKED.encode()


def test_it_imports_nothing_that_takes_long() -> None:
    told = subprocess.run(
        [
            sys.executable, "-I", "-S", "-c",
            f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import vademecum.hook, _socket; "
            "print(sorted({'json', 're', 'socket', 'http', 'numpy', 'enum'} & set(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )  # fmt: skip
    assert told.stdout.strip() == "[]"


def test_the_project_is_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert project_of({"cwd": str(tmp_path / "a" / "b")}) == str(tmp_path)
    assert project_of({"cwd": 3}) is None
