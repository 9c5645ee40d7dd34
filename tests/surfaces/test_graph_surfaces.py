"""The graph over HTTP and MCP: the same answers as by command, and folders only for admins."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import httpx
from mcp import Client

from graph.environments import install, project
from vademecum.access import Access, acting
from vademecum.app import App
from vademecum.surfaces.http.api import create_api
from vademecum.surfaces.mcp import build

Vade = Callable[..., "CompletedProcess[str]"]
LIBRARY = {
    "lib/__init__.py": '''
        import warnings

        def fetch(name: str) -> str:
            """Get it."""

        def old() -> None:
            warnings.warn("old() is deprecated since 1.2, use `fetch`", DeprecationWarning)
        ''',
}
CODE = {"a.py": "import lib\n\n\ndef f() -> None:\n    lib.fetch('x')\n    lib.old()\n"}


async def test_http_mcp_and_command_agree(fake_app: App, vade: Vade, tmp_path: Path) -> None:
    install(tmp_path / "shop" / ".venv", "lib", "2.0", LIBRARY)
    root = project(tmp_path / "shop", CODE)

    async def opened() -> App:
        return fake_app

    transport = httpx.ASGITransport(app=create_api(fake_app))
    async with (
        Client(build(opened)) as client,
        httpx.AsyncClient(transport=transport, base_url="http://x") as http,
    ):

        async def post(path: str, **body: Any) -> Any:
            answer = await http.post(path, json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        async def get(path: str, **parameters: str) -> Any:
            answer = await http.get(path, params=parameters)
            assert answer.status_code == 200, answer.text
            return answer.json()

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            said = await client.call_tool(tool, arguments)
            assert not said.is_error, said.content
            assert said.structured_content is not None
            return said.structured_content

        linked = await post("/link", folder=str(root))
        assert (linked["project"], linked["linked"], linked["calls"]) == ("shop", 1, 2)
        again = await call("link_code", folder=str(root))
        assert (again["files_linked"], again["files_unchanged"]) == (0, 1)

        looked = await post("/radar", folder=str(root))
        [finding] = looked["findings"]
        assert (finding["line"], finding["replacement"]) == (6, "fetch")
        [told] = (await call("check_deprecations", folder=str(root)))["findings"]
        assert (told["at"], told["use"], told["sentence"]) == (
            "a.py:6",
            "fetch",
            finding["sentence"],
        )
        log = await post("/radar/sarif", folder=str(root))
        assert log["runs"][0]["results"][0]["ruleId"] == "deprecated"

        asked = {"name": "api_uses", "parameters": {"project": "shop", "name": "lib.old"}}
        rows = (await post("/graph/query", **asked))["rows"]
        assert [row["line_number"] for row in rows] == [6]
        by_tool = (await call("query_graph", **asked))["rows"]
        assert [row["line_number"] for row in by_tool] == [6]
        by_command = vade(
            *("graph", "query", "api_uses", "-p", "project=shop", "-p", "name=lib.old", "--json")
        )
        assert json.loads(by_command.stdout)["rows"] == rows
        near = {"name": "neighbourhood", "parameters": {"project": "shop", "path": "a.py"}}
        assert (await post("/graph/query", **near))["rows"]

        assert "neighbourhood" in await get("/graph/queries")
        assert (await get("/graph/status", project="shop"))["entities"]["CodeFile"] == 1
        [node] = (await get("/graph/nodes", name="lib.fetch", project="shop"))["nodes"]
        assert {one["kind"] for one in node["relations"]} >= {"USED_IN"}
        relevant = await post("/graph/relevant", text="lib")
        assert isinstance(relevant["documents"], list)
        assert (await get("/graph/changes"))["changes"] == []
        assert (await post("/graph/refresh", ids=[]))["updated"] == 0
        assert "rescored" in await post("/graph/maintain")
        assert "gaps" in await post("/graph/analyse")

        for path, body in (
            ("/graph/query", {"name": "none"}),
            ("/graph/query", {"name": "api_uses", "parameters": {"on": "x"}}),
            ("/link", {"folder": str(tmp_path / "none")}),
            ("/radar", {"folder": str(tmp_path / "none")}),
            ("/graph/verify", {}),
        ):
            wrong = await http.post(path, json=body)
            assert wrong.status_code == 400, (path, wrong.text)
        for tool, arguments in (
            ("query_graph", {"name": "none"}),
            ("check_deprecations", {"folder": str(tmp_path / "none")}),
        ):
            assert (await client.call_tool(tool, arguments)).is_error

        reader = Access(name="reader", scopes=frozenset({"read"}))
        limited = Access(
            name="limited", scopes=frozenset({"read", "write", "admin"}), collections=frozenset("a")
        )
        with acting(reader):
            assert (await http.post("/radar", json={"folder": str(root)})).status_code == 403
            assert (await http.post("/link", json={"folder": str(root)})).status_code == 403
            assert (await http.post("/graph/maintain")).status_code == 403
            assert (await http.get("/graph/status")).status_code == 200
        with acting(limited):
            for path in ("/graph/status", "/graph/changes", "/graph/nodes?name=lib.fetch"):
                assert (await http.get(path)).status_code == 403
            assert (await http.post("/graph/query", json=asked)).status_code == 403
