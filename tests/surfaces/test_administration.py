"""What administrators do over HTTP: keys, vector indexes, moves; and what keys may not do."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from serving import BIN, Served, served

from model_server import KEY, ModelServer
from ollama_server import OllamaServer
from qdrant_server import QdrantServer
from vademecum.client import Client
from vademecum.errors import ServerProblem
from vademecum.evaluate.gold import Expectation, Question
from vademecum.surfaces.http.instance import token

Write = Callable[[dict[str, str | bytes]], Path]

PAGES: dict[str, str | bytes] = {
    "owl.md": "# Owl\n\nFeed the owl twice a day.",
    "fox.md": "# Fox\n\nBrush the fox every week.",
}
GOLD = [
    Question(id="1", query="feed the owl", expect=(Expectation(path_contains="owl.md"),)),
    Question(id="2", query="brush the fox", expect=(Expectation(path_contains="fox.md"),)),
]


@pytest.fixture(scope="module")
def qdrant() -> Iterator[QdrantServer]:
    server = QdrantServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    server = ModelServer(lambda asked: "Yes.")
    yield server
    server.close()


@pytest.fixture(scope="module")
def ollama() -> Iterator[OllamaServer]:
    server = OllamaServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
    home: Path,
    server: str,
    template: str,
    qdrant: QdrantServer,
    model: ModelServer,
    ollama: OllamaServer,
) -> Iterator[Served]:
    own = tmp_path_factory.mktemp("administration")
    (own / "models").symlink_to(home / "models")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{own.name}" TEMPLATE "{template}"')
    url = psycopg.conninfo.make_conninfo(server, dbname=own.name)
    settings = {
        "VADE_EMBEDDER": "ollama:nomic-embed-text",
        "VADE_OLLAMA_URL": ollama.url,
        "VADE_QDRANT_URL": qdrant.url,
        "VADE_MODEL": "openai:any",
        "VADE_MODEL_URL": f"{model.url}/v1",
        "VADE_MODEL_KEY": KEY,
        "VADE_SPEND_LIMIT": "inf",
    }
    with served(own, url, **settings) as begun:
        yield begun
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{own.name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def admin(running: Served) -> Iterator[Client]:
    with Client(running.address.url, token(running.home)) as client:
        yield client


def indexed(admin: Client, folder: Path, collection: str) -> None:
    *_, end = admin.follow_run(admin.start_run(collection, folder=str(folder)).id)
    assert end.state == "completed", admin.run(end.id)


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ServerProblem) as caught:
        call()
    return caught.value.status, str(caught.value)


def test_keys_are_made_listed_and_revoked(running: Served, admin: Client, write: Write) -> None:
    indexed(admin, write(PAGES), "keyed")
    secret = admin.create_key("reader", collections=["keyed"], rate=20)
    with Client(running.address.url, secret) as reader:
        assert [one.name for one in reader.collections()] == ["keyed"]
        assert refused(reader.api_keys)[0] == 403
        assert refused(lambda: reader.create_key("mine"))[0] == 403
        assert refused(lambda: reader.revoke_key("reader"))[0] == 403
    [held] = [one for one in admin.api_keys() if one.name == "reader"]
    assert (held.scopes, held.collections, held.rate) == (["read"], ["keyed"], 20)
    assert refused(lambda: admin.create_key("reader"))[0] == 400
    assert refused(lambda: admin.create_key("x", scopes=["read"], user="anna@example.org")) == (
        400,
        "400: a key for one user needs the scope memory",
    )
    admin.revoke_key("reader")
    assert [one.revoked_at is not None for one in admin.api_keys() if one.name == "reader"] == [
        True
    ]
    assert refused(lambda: admin.revoke_key("nobody"))[0] == 400


def test_nobody_hands_on_a_scope_that_they_have_not_got(running: Served, admin: Client) -> None:
    with Client(running.address.url, admin.create_key("chief", scopes=["admin"])) as chief:
        chief.create_key("second", scopes=["read", "write"])
        assert refused(lambda: chief.create_key("third", scopes=["memory"]))[0] == 403
        assert refused(lambda: chief.create_key("fourth", scopes=["spend"]))[0] == 403
    bound = admin.create_key("hers", scopes=["admin", "memory"], user="anna@example.org")
    with Client(running.address.url, bound) as hers:
        hers.create_key("also hers", scopes=["memory"], user="Anna")
        assert refused(lambda: hers.create_key("any", scopes=["memory"]))[0] == 403
        assert refused(lambda: hers.create_key("his", scopes=["memory"], user="boris"))[0] == 403
    local = admin.create_key("local chief", scopes=["admin"], collections=["keyed"])
    with Client(running.address.url, local) as one:
        assert refused(lambda: one.create_key("fifth"))[0] == 403


def test_a_key_for_one_user_names_no_other(running: Served, admin: Client) -> None:
    admin.remember("boris@example.org", "Prefers long answers.")
    secret = admin.create_key("anna", scopes=["read", "memory"], user="anna@example.org")
    with Client(running.address.url, secret) as anna:
        anna.remember("anna@example.org", "Prefers concise answers.")
        assert "concise" in anna.memory("Anna@elsewhere.example").content
        assert refused(lambda: anna.memory("boris@example.org"))[0] == 403
        assert refused(lambda: anna.remember("boris@example.org", "Likes owls."))[0] == 403
        for name in ("inject", "search", "export", "forget", "versions", "undo"):
            body = {"user": "boris", "prompt": "Be polite.", "query": "answers"}
            answer = anna._http.post(f"/memory/{name}", json=body)
            assert answer.status_code == 403, name
        assert anna._http.get("/memory/receipts").status_code == 403
    assert "long answers" in admin.memory("boris@example.org").content

    async def by_mcp(user: str) -> str:
        async with asyncio.timeout(60):
            import httpx

            bearer = {"Authorization": f"Bearer {secret}"}
            async with (
                httpx.AsyncClient(headers=bearer, timeout=60) as http,
                McpClient(
                    streamable_http_client(f"{running.address.url}/mcp", http_client=http)
                ) as agent,
            ):
                return str((await agent.call_tool("recall", {"user": user})).content)

    assert "concise" in asyncio.run(by_mcp("anna@example.org"))
    assert "lacks the scope" in asyncio.run(by_mcp("boris@example.org"))


def test_a_language_model_is_asked_only_for_who_may_spend(
    running: Served, admin: Client, model: ModelServer, write: Write
) -> None:
    indexed(admin, write(PAGES), "spent")
    reading = admin.create_key("reading", scopes=["read", "write"])
    model.asked.clear()
    with Client(running.address.url, reading) as reader:
        answer = reader.answer("How often is the owl fed?", collection="spent")
        assert answer.by == "extractive"
        [notice] = answer.notices
        assert "lacks the scope spend" in notice
        named = {"question": "owl?", "collection": "spent", "model": "openai:dear"}
        assert reader._http.post("/answer", json=named).status_code == 403
        without = named | {"model": "none"}
        assert reader._http.post("/answer", json=without).json()["notices"] == []
    assert model.asked == []

    spending = admin.create_key("spending", scopes=["read", "spend"])
    with Client(running.address.url, spending) as spender:
        spender.answer("How often is the owl fed?", collection="spent")
    assert len(model.asked) == 1


def test_a_collection_is_promoted_verified_rebuilt_and_dropped(
    running: Served, admin: Client, qdrant: QdrantServer, write: Write
) -> None:
    indexed(admin, write(PAGES), "mirrored")
    told: list[tuple[str, Mapping[str, Any]]] = []

    def note(event: str, value: Mapping[str, Any]) -> None:
        told.append((event, value))

    done = admin.promote("mirrored", "qdrant", questions=GOLD, progress=note)
    assert (done.switched, done.told) == (True, 2)
    assert done.shadow is not None
    assert done.shadow.ndcg_then == 1
    assert ("progress", {"chunks": 2}) in told
    assert [(one.store, one.state, one.waiting) for one in admin.indexes("mirrored")] == [
        ("qdrant", "serving", 0)
    ]
    assert [one.ok for one in admin.verify_indexes("mirrored")] == [True, True]

    [place] = {one.place for one in admin.indexes("mirrored")}
    qdrant.engine.delete(place, qdrant.collection(place).ids and list(qdrant.collection(place).ids))
    [wrong] = admin.verify_indexes("mirrored", "qdrant")
    assert (wrong.ok, wrong.missing) == (False, 2)
    assert {one.reference.partition("#")[0] for one in wrong.named} == {
        "mirrored/owl.md",
        "mirrored/fox.md",
    }
    assert [one.repaired for one in admin.rebuild_indexes("mirrored", "qdrant")] == [2]
    assert [one.ok for one in admin.verify_indexes("mirrored", "qdrant")] == [True]

    assert refused(lambda: admin.promote("mirrored", "abacus"))[0] == 400
    assert refused(lambda: admin.verify_indexes("nothing"))[0] == 404
    for scopes, where in ((["read", "write"], None), (["admin"], ["elsewhere"])):
        name = f"no {scopes[-1]}"
        secret = admin.create_key(name, scopes=scopes, collections=where)  # type: ignore[arg-type]
        with Client(running.address.url, secret) as other:
            for call in (
                lambda c: c.promote("mirrored", "pgvector"),
                lambda c: c.verify_indexes("mirrored"),
                lambda c: c.rebuild_indexes("mirrored"),
                lambda c: c.drop_index("mirrored", "qdrant"),
            ):
                assert refused(lambda call=call, c=other: call(c))[0] in (403, 404), scopes

    qdrant.failing = 500
    try:
        status, text = refused(lambda: admin.verify_indexes("mirrored", "qdrant"))
        assert (status, "Qdrant" in text) == (503, True)
    finally:
        qdrant.failing = None
    admin.drop_index("mirrored", "qdrant")
    assert admin.indexes("mirrored") == []


def test_a_collection_moves_to_another_embedder(admin: Client, write: Write) -> None:
    indexed(admin, write(PAGES), "moved")
    assert admin.move("moved") is None
    few = refused(lambda: admin.start_move("moved", "local:all-MiniLM-L6-v2"))
    assert few[0] == 400
    assert "logged searches" in few[1]

    run = admin.start_move("moved", "local:all-MiniLM-L6-v2", questions=GOLD)
    *_, end = admin.follow_run(run.id)
    assert end.state == "completed"
    for _ in range(100):
        move = admin.move("moved")
        assert move is not None
        if move.state != "filling":
            break
        subprocess.run(["sleep", "0.2"], check=True)
    assert (move.state, move.done, move.questions) == ("accepted", True, 2)
    assert admin.collection("moved").embedder == "local:all-MiniLM-L6-v2"
    assert refused(lambda: admin.abandon_move("moved"))[0] == 400


def test_keys_for_users_and_for_spending_are_made_on_the_command_line(
    running: Served, admin: Client
) -> None:
    done = subprocess.run(
        [BIN / "vade", "keys", "create", "--name", "cli", "--scope", "memory", "--user", "c@d"],
        env=running.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [held] = [one for one in admin.api_keys() if one.name == "cli"]
    assert (held.scopes, held.one_user) == (["memory"], True)
    with Client(running.address.url, done.stdout.strip()) as mine:
        assert mine.memory("c").version == 0
        assert refused(lambda: mine.memory("d"))[0] == 403
