"""The HTTP API as its users have it: by the client of the package, against a real server."""

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest
from serving import BIN, Served, served

from vademecum.client import Client
from vademecum.errors import ServerProblem
from vademecum.search.book import BookQuery
from vademecum.surfaces.http.instance import token

Write = Callable[[dict[str, str | bytes]], Path]


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, home: Path, server: str, template: str
) -> Iterator[Served]:
    """A server on a database of this module's own; each test has collections of its own."""
    own = tmp_path_factory.mktemp("service")
    (own / "models").symlink_to(home / "models")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{own.name}" TEMPLATE "{template}"')
    url = psycopg.conninfo.make_conninfo(server, dbname=own.name)
    with served(own, url, VADE_EMBEDDER="none", VADE_KEY_RATE="1000") as begun:
        yield begun
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{own.name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def admin(running: Served) -> Iterator[Client]:
    with Client(running.address.url, token(running.home)) as client:
        yield client


def keys(running: Served, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [BIN / "vade", "keys", *arguments],
        env=running.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def key(running: Served, name: str, *arguments: str) -> str:
    made = keys(running, "create", "--name", name, "--json", *arguments)
    assert made.returncode == 0, made.stderr
    secret: str = json.loads(made.stdout)["key"]
    return secret


def lesson(number: int, *, tier: int, level: str = "A2") -> str:
    paragraphs = "\n\n".join(
        f"Paragraph {n} of lesson {number} says that nodes exchange messages by topics. " * 12
        for n in range(6)
    )
    return f"---\ntier: {tier}\nlevel: {level}\n---\n# Lesson {number}\n\n{paragraphs}\n"


def indexed(admin: Client, folder: Path, collection: str, profile: str | None = None) -> None:
    run = admin.start_run(collection, folder=str(folder), profile=profile)
    states = [seen.state for seen in admin.follow_run(run.id)]
    assert states[-1] == "completed", admin.run(run.id)


def test_a_run_started_over_http_is_followed_to_its_end(admin: Client, write: Write) -> None:
    folder = write({f"{n}.md": f"# Page {n}\n\nOf lamps." for n in range(5)} | {"x.md": b"\0\1"})
    run = admin.start_run("docs", folder=str(folder))
    assert run.state == "queued"
    *_, end = admin.follow_run(run.id)
    assert (end.state, end.files_processed, end.files_failed) == ("completed", 5, 1)
    assert [failure.path for failure in admin.run(run.id).failures] == ["x.md"]
    assert [one.id for one in admin.runs("docs")] == [run.id]
    with pytest.raises(ServerProblem, match=f"run {run.id} is completed") as refusal:
        admin.cancel_run(run.id)
    assert (refusal.value.status, refusal.value.kind) == (409, "RunNotOpen")
    again = admin.start_run("docs", mode="full")
    *_, end = admin.follow_run(again.id)
    assert (end.state, end.folder, end.files_processed) == ("completed", None, 5)
    totals = admin.state("docs")
    assert (totals.total_chunks, totals.total_documents) == (5, 5)
    assert totals.last_incremental_update is not None
    assert totals.last_full_ingest is not None


def test_lessons_are_read_in_order_and_chunks_with_their_neighbours(
    admin: Client, write: Write
) -> None:
    folder = write(
        {
            "module-1/chapter-2/01-nodes.md": lesson(1, tier=1),
            "module-1/chapter-2/02-topics.md": lesson(2, tier=3, level="B1"),
            "module-2/chapter-1/01-worlds.md": lesson(1, tier=2),
        }
    )
    indexed(admin, folder, "robots", "course")

    found = admin.search_book(
        BookQuery(text="how do nodes exchange messages", book_id="robots", hardware_tier_filter=2)
    )
    assert {result.hardware_tier for result in found.results} == {1, 2}
    assert found.total_found == 2
    scores = [result.score for result in found.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    narrow = admin.search_book(
        BookQuery(
            text="messages",
            book_id="robots",
            hardware_tier_filter=4,
            module_filter="ros2",
            chapter_min=1,
            chapter_max=2,
            lesson_filter=2,
            proficiency_levels=["B1", "B2"],
            layer_filter="L1",
            limit=20,
        )
    )
    assert {result.source_file for result in narrow.results} == {"module-1/chapter-2/02-topics.md"}
    first = narrow.results[0]
    assert (first.module, first.chapter, first.lesson) == ("ros2", 2, 2)

    assert first.parent_doc_id is not None
    whole = admin.lesson("robots", first.parent_doc_id)
    assert [chunk.chunk_index for chunk in whole.chunks] == list(range(first.total_chunks))
    assert first.total_chunks >= 3
    assert whole.chunks[first.chunk_index].text == first.text
    middle = whole.chunks[1]
    around = admin.chunk("robots", middle.id, context=1)
    assert (around.before, around.chunk, around.after) == (
        [whole.chunks[0]],
        middle,
        [whole.chunks[2]],
    )
    assert (middle.previous_id, middle.next_id) == (whole.chunks[0].id, whole.chunks[2].id)
    only = admin.search_book(
        BookQuery(
            text="messages",
            book_id="robots",
            hardware_tier_filter=4,
            parent_doc_id=first.parent_doc_id,
        )
    )
    assert {result.parent_doc_id for result in only.results} == {first.parent_doc_id}
    paths = [document.path for document in admin.documents("robots", filters=["module=ros2"])]
    assert paths == ["module-1/chapter-2/01-nodes.md", "module-1/chapter-2/02-topics.md"]
    assert "# Lesson 2" in admin.document("robots", paths[1])


def test_what_is_not_there_is_a_problem_that_says_so(admin: Client, write: Write) -> None:
    indexed(admin, write({"a.md": "# A\n\nOf lamps."}), "some")
    nowhere = "00000000-0000-0000-0000-000000000000"
    for path in (
        "/collections/none/state",
        f"/collections/some/lessons/{nowhere}",
        f"/collections/some/chunks/{nowhere}",
        "/runs/99",
        "/runs/99/events",
        "/events?collection=none",
    ):
        answer = admin._http.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"
    with pytest.raises(ServerProblem, match="has no facet 'hardware_tier'") as refusal:
        admin.search_book(BookQuery(text="lamps", book_id="some"))
    assert refusal.value.status == 400


def test_events_tell_of_every_run(admin: Client, running: Served, write: Write) -> None:
    listening = Client(running.address.url, token(running.home))
    events = listening.events()
    folder = write({"a.md": "# A\n\nOf lamps."})
    run = admin.start_run("eventful", folder=str(folder))
    seen = next(events)
    while seen.id != run.id or not seen.ended:
        seen = next(events)
    assert seen.state == "completed"
    events.close()
    listening.close()


def test_scopes_open_what_they_say(admin: Client, running: Served, write: Write) -> None:
    indexed(admin, write({"a.md": "# A\n\nOf lamps."}), "scoped")
    with ExitStack() as closing:

        def client(*arguments: str) -> Client:
            secret = key(running, f"key of {arguments}", *arguments)
            return closing.enter_context(Client(running.address.url, secret))

        reader, writer = client(), client("--scope", "write")
        manager = client("--scope", "admin", "-c", "scoped")
        rememberer = client("--scope", "memory")
        try_scopes(admin, reader, writer, manager, rememberer)


def try_scopes(
    admin: Client, reader: Client, writer: Client, manager: Client, rememberer: Client
) -> None:

    assert len(reader.search("lamps", collection="scoped").results) == 1
    assert rememberer.memory("someone@example.org").version == 0
    refused: list[tuple[str, Callable[[], object]]] = [
        ("write", lambda: reader.start_run("scoped")),
        ("write", lambda: reader.store_page("https://example.org/", collection="scoped")),
        ("admin", lambda: reader.delete_collection("scoped")),
        ("admin", lambda: writer.delete_collection("scoped")),
        ("admin of all", lambda: writer.start_run("scoped", folder="/etc")),
        ("admin of all", lambda: manager.start_run("scoped", folder="/etc")),
        ("memory", lambda: reader.memory("someone@example.org")),
        ("memory", lambda: manager.memory("someone@example.org")),
        ("read", lambda: rememberer.search("lamps", collection="scoped")),
    ]
    for scope, attempt in refused:
        with pytest.raises(ServerProblem, match=f"lacks the scope {scope}") as refusal:
            attempt()
        assert (refusal.value.status, refusal.value.kind) == (403, "NotAllowed")
    assert writer.start_run("scoped").state == "queued"
    manager.delete_collection("scoped")
    assert "scoped" not in [one.name for one in admin.collections()]


def test_a_key_is_shown_once_kept_hashed_and_revoked(
    running: Served,
) -> None:
    secret = key(running, "short", "--days", "1")
    with Client(running.address.url, secret) as client:
        assert client._http.get("/collections").status_code == 200
        listed = keys(running, "list", "--json").stdout
        assert "short" in [one["name"] for one in json.loads(listed)["keys"]]
        with psycopg.connect(running.environment["VADE_DATABASE_URL"]) as connection:
            rows = connection.execute("SELECT * FROM api_keys").fetchall()
        for told in (listed, str(rows), keys(running, "list").stdout):
            assert secret.split("_", 2)[2] not in told
        assert keys(running, "revoke", "short").returncode == 0
        deadline = time.monotonic() + 20
        while (status := client._http.get("/collections").status_code) == 200:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert status == 401
    assert keys(running, "revoke", "nobody").returncode == 2
    twice = keys(running, "create", "--name", "short")
    assert (twice.returncode, "already" in twice.stderr) == (2, True)


def test_wrong_keys_open_nothing(running: Served) -> None:
    secret = key(running, "real")
    ended = key(running, "ended", "--days", "1")
    with psycopg.connect(running.environment["VADE_DATABASE_URL"], autocommit=True) as connection:
        connection.execute("UPDATE api_keys SET expires_at = now() WHERE name = 'ended'")
    number, rest = secret.split("_", 2)[1:]
    for wrong in (
        ended,
        f"vade_{number}_{rest[:-1]}",
        f"vade_{int(number) + 7}_{rest}",
        f"vade_{number}_",
        f"vade_99999999999999999999_{rest}",
        f"vade_-1_{rest}",
        "vade_' OR 1=1 --_x",
    ):
        with Client(running.address.url, wrong) as client:
            with pytest.raises(ServerProblem) as refusal:
                client.collections()
            assert refusal.value.status == 401, wrong


def test_a_key_is_held_to_its_rate(running: Served) -> None:
    with Client(running.address.url, key(running, "slow", "--rate", "2")) as client:
        answers = [client._http.get("/collections") for _ in range(8)]
    statuses = [answer.status_code for answer in answers]
    assert statuses[:4] == [200] * 4
    assert statuses[-1] == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert answers[-1].headers["content-type"] == "application/problem+json"


def test_only_so_many_at_once(home: Path, tmp_path: Path, database_url: str) -> None:
    """Requests whose bodies have not come yet take the places of others."""
    (tmp_path / "models").symlink_to(home / "models")
    with served(tmp_path, database_url, VADE_EMBEDDER="none", VADE_MAX_REQUESTS="2") as running:
        head = (
            f"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n"
            f"Authorization: Bearer {token(tmp_path)}\r\n\r\n"
        ).encode()
        place = (running.address.host, running.address.port)
        waiting = [socket.create_connection(place) for _ in range(2)]
        for connection in waiting:
            connection.sendall(head)
        with running.client() as client:
            deadline = time.monotonic() + 10
            while (answer := client.get("/collections")).status_code != 503:
                assert time.monotonic() < deadline
            assert answer.headers["retry-after"] == "1"
            assert client.get("/health").status_code == 200
            for connection in waiting:
                connection.close()
            while client.get("/collections").status_code != 200:
                assert time.monotonic() < deadline


def test_internals_do_not_leak(admin: Client, running: Served) -> None:
    answer = httpx.get(f"{running.address.url}/nowhere", headers=admin._http.headers)
    assert answer.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "Not Found",
    }
