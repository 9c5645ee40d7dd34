"""Notes and contexts by command, HTTP and MCP: the same answers."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import httpx
from mcp import Client

from vademecum.app import App
from vademecum.surfaces.http.api import create_api
from vademecum.surfaces.mcp import build

Vade = Callable[..., "CompletedProcess[str]"]


async def test_http_and_mcp_agree(fake_app: App) -> None:
    async def opened() -> App:
        return fake_app

    transport = httpx.ASGITransport(app=create_api(fake_app))
    async with (
        Client(build(opened)) as client,
        httpx.AsyncClient(transport=transport, base_url="http://x") as http,
    ):

        async def post(path: str, **body: Any) -> dict[str, Any]:
            answer = await http.post(path, json=body)
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

        first = await post("/notes/save", project="shop", content="The pool has 6 connections.")
        called = await client.call_tool(
            "save_note", {"project": "shop", "content": "The pool has 12 connections."}
        )
        saved = called.structured_content
        assert saved is not None
        assert [one["id"] for one in saved["replaced"]] == [first["note"]["id"]]
        listed = await post("/notes/list", project="shop")
        assert [one["id"] for one in listed["notes"]] == [saved["id"]]
        found = await post("/notes/search", project="shop", query="pool connections")
        assert [one["note"]["id"] for one in found["results"]] == [saved["id"]]
        context = await post("/context", project="shop", task="The pool has 12 connections")
        called = await client.call_tool(
            "get_context", {"project": "shop", "task": "The pool has 12 connections"}
        )
        assert called.structured_content is not None
        assert called.structured_content["context"] == context["markdown"]
        assert "12 connections" in context["markdown"]
        missing = await client.call_tool("find_api", {"name": "lib.none"})
        assert missing.structured_content is not None
        assert missing.structured_content["apis"] == []
        wrong = await client.call_tool(
            "record_outcome", {"id": "x", "outcome": "success", "project": "shop"}
        )
        assert wrong.is_error
        assert (await http.post("/notes/list", json={})).status_code == 422
        gone = await http.post("/notes/remove", json={"project": "blog", "id": saved["id"]})
        assert gone.status_code == 400
        assert (await post("/notes/remove", project="shop", id=saved["id"]))["recorded"]


async def test_a_note_has_a_type_that_was_once_called_kind(lexical_app: App) -> None:
    transport = httpx.ASGITransport(app=create_api(lexical_app))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        for number, word in enumerate(("type", "kind")):
            note = {"project": "shop", "content": f"Rule {number}.", word: "convention"}
            saved = (await http.post("/notes/save", json=note)).json()
            assert saved["note"]["type"] == "convention"
            for kept, count in (("convention", number + 1), ("pattern", 0)):
                wanted = {"project": "shop", "query": "rule", word: kept}
                listed = (await http.post("/notes/list", json=wanted)).json()["notes"]
                found = (await http.post("/notes/search", json=wanted)).json()["results"]
                assert (len(listed), len(found)) == (count, count)
        schemas = (await http.get("/openapi.json")).json()["components"]["schemas"]
        assert "type" in schemas["NewNote"]["properties"]
        assert "kind" not in schemas["NewNote"]["properties"]


def test_commands(vade: Vade, tmp_path: Path) -> None:
    none = {"VADE_EMBEDDER": "none"}
    saved = vade("note", "save", "The pool has 6 connections.", "-p", "shop", "--json", **none)
    assert saved.returncode == 0, saved.stderr
    number = json.loads(saved.stdout)["note"]["id"]
    assert json.loads(saved.stdout)["note"]["type"] == "learning"
    found = vade("note", "search", "pool connections", "-p", "shop", "--json", **none)
    assert [one["note"]["id"] for one in json.loads(found.stdout)["results"]] == [number]
    trace = tmp_path / "trace.txt"
    trace.write_text("ValueError: unknown colour 'mauve'\n")
    solved = vade("note", "solve", trace, "Add mauve.", "-p", "shop", **none)
    assert solved.returncode == 0, solved.stderr
    told = vade("context", "fix it", "--error", trace, "-p", "shop", **none)
    assert "Add mauve." in told.stdout
    assert vade("note", "save", " ", "-p", "shop", **none).returncode == 2
    assert vade("note", "show", "nonsense", "-p", "shop", **none).returncode == 2
