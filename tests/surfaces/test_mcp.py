"""MCP: in memory and over HTTP in both protocol eras, and over stdio as a client starts it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from serving import served

from vademecum.app import App
from vademecum.surfaces.http.instance import token
from vademecum.surfaces.mcp import build
from vademecum.surfaces.mcp_results import MAX_CHARACTERS

Write = Callable[[dict[str, str | bytes]], Path]
PLUGIN = Path(__file__).parents[2] / "integrations" / "claude-code"
TOOLS = {
    "list_knowledge_bases",
    "search_knowledge",
    "answer_knowledge",
    "get_repository_stats",
    "list_recent_updates",
    "health_check",
    "read_page",
    "recall",
    "remember",
    "get_context",
    "find_api",
    "save_note",
    "record_outcome",
    "check_deprecations",
    "link_code",
    "query_graph",
}
LEVELS = """
[chunks]
max_tokens = 100
overlap_tokens = 0
header = "{title}"
[facets.level]
type = "level"
values = ["A1", "A2", "B1", "B2"]
front_matter = "level"
"""
PAGE = "# Rain\n\nRain falls from clouds when drops grow heavy.\n\n## Hail\n\nHail is made of ice."


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_all_tools_in_memory(lexical_app: App, write: Write, mode: str) -> None:
    await lexical_app.ingest.bulk_index(write({"rain.md": PAGE}), collection="sky", profile="kb")

    async def opened() -> App:
        return lexical_app

    async with Client(build(opened), mode=mode) as client:  # type: ignore[arg-type]
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        listed = (await client.call_tool("list_knowledge_bases", {})).structured_content
        assert listed is not None
        assert [kb["repository"] for kb in listed["knowledge_bases"]] == ["sky"]
        found = (await client.call_tool("search_knowledge", {"query": "hail"})).structured_content
        assert found is not None
        assert found["passages"][0]["ref"] == "sky/rain.md#hail"
        assert set(found["passages"][0]) == {"ref", "title", "section", "text"}
        answered = await client.call_tool("answer_knowledge", {"query": "What is hail made of?"})
        assert answered.structured_content is not None
        assert "Hail is made of ice." in answered.structured_content["answer"]
        recent = (await client.call_tool("list_recent_updates", {"n": 5})).structured_content
        assert recent is not None
        assert [update["path"] for update in recent["updates"]] == ["rain.md"]
        stats = (await client.call_tool("get_repository_stats", {})).structured_content
        assert stats is not None
        assert stats["repositories"][0]["documents"] == 1
        health = (await client.call_tool("health_check", {})).structured_content
        assert health is not None
        assert health["status"] == "ok"
        read = await client.read_resource("vade://sky/rain.md")
        assert read.contents[0].text.startswith("# Rain")  # type: ignore[union-attr]


async def test_an_error_tells_the_model_what_to_do(lexical_app: App, write: Write) -> None:
    await lexical_app.ingest.bulk_index(write({"rain.md": PAGE}), collection="sky")

    async def opened() -> App:
        return lexical_app

    async with Client(build(opened)) as client:
        result = await client.call_tool("search_knowledge", {"query": "x", "repository": "sea"})
        assert result.is_error
        assert "sky" in result.content[0].text  # type: ignore[union-attr]
        assert (await client.call_tool("search_knowledge", {"query": "x", "k": 99})).is_error
        empty = await client.call_tool("search_knowledge", {"query": "zzzz"})
        assert empty.structured_content is not None
        assert "next" in empty.structured_content


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (
            "answer_knowledge",
            {"query": "hail", "colection": "sky", "repositry": "sky"},
            "answer_knowledge has no argument 'colection'. "
            "answer_knowledge has no argument 'repositry'. Did you mean 'repository'? "
            "It takes query, repository, k, filters, keep_for.",
        ),
        (
            "recall",
            {"user": "someone@example.org", "ctx": None},
            "recall has no argument 'ctx'. It takes user, query, project, k.",
        ),
        ("health_check", {"x": 1}, "health_check has no argument 'x'. It takes none."),
    ],
)
async def test_an_unknown_argument_is_named_beside_the_known_ones(
    lexical_app: App, tool: str, arguments: dict[str, object], said: str
) -> None:
    async def opened() -> App:
        return lexical_app

    async with Client(build(opened)) as client:
        refused = await client.call_tool(tool, arguments)
        assert (refused.is_error, refused.content[0].text) == (True, said)  # type: ignore[union-attr]


async def test_answers_keep_to_filters_and_tell_how_far_they_are(
    lexical_app: App, write: Write
) -> None:
    pages: dict[str, str | bytes] = {
        f"{level}.md": f"---\nlevel: {level}\n---\n# Hail\n\nHail {said}.\n"
        for level, said in (("A1", "is made of ice"), ("B2", "is made in strong updraughts"))
    }
    profile = write(pages | {"p/levels.toml": LEVELS}) / "p" / "levels.toml"
    await lexical_app.ingest.bulk_index(
        profile.parent.parent, collection="sky", profile=str(profile)
    )
    heard: list[float] = []

    async def opened() -> App:
        return lexical_app

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    question = {"query": "What is hail made of?"}
    async with Client(build(opened)) as client:
        for level in ("A1", "B2"):
            asked = {**question, "filters": [f"level={level}"]}
            answered = await client.call_tool("answer_knowledge", asked, progress_callback=progress)
            assert answered.structured_content is not None
            sources = [one["ref"] for one in answered.structured_content["sources"]]
            assert sources == [f"sky/{level}.md#hail"]
        assert heard == [0, 1, 0, 1]
        for wrong in ({"filters": ["shape=round"]}, {"k": 0}):
            assert (await client.call_tool("answer_knowledge", {**question, **wrong})).is_error


async def test_a_document_and_its_sections_are_read_as_resources_and_by_reference(
    lexical_app: App, write: Write
) -> None:
    long = f"# Long\n\n{'Snow falls slowly and lies long. ' * 2000}"
    await lexical_app.ingest.bulk_index(write({"rain.md": PAGE, "a/b.md": long}), collection="sky")

    async def opened() -> App:
        return lexical_app

    async with Client(build(opened)) as client:
        templates = await client.list_resource_templates()
        assert [one.uri_template for one in templates.resource_templates] == [
            "vade://{collection}/{+path}"
        ]
        hail = await client.read_resource("vade://sky/rain.md%23hail")
        assert hail.contents[0].text == "## Hail\n\nHail is made of ice."  # type: ignore[union-attr]
        for wrong in ("vade://sky/snow.md", "vade://sea/rain.md", "vade://sky/rain.md%23snow"):
            with pytest.raises(MCPError, match=r"sky"):
                await client.read_resource(wrong)

        read = await client.call_tool("read_page", {"url": "sky/rain.md#hail"})
        assert read.structured_content == {"page": "## Hail\n\nHail is made of ice."}
        whole, offset = "", 0
        while True:
            part = await client.call_tool("read_page", {"url": "sky/a/b.md", "offset": offset})
            assert part.structured_content is not None
            assert len(json.dumps(part.structured_content)) <= MAX_CHARACTERS
            whole += part.structured_content["page"]
            if "more" not in part.structured_content:
                break
            offset = int(part.structured_content["more"].removeprefix("offset="))
        assert whole.split() == long.split()
        for wrong in ("rain.md", "sky/snow.md"):
            assert (await client.call_tool("read_page", {"url": wrong})).is_error


async def test_a_stored_page_is_read_on(lexical_app: App) -> None:
    async def opened() -> App:
        return lexical_app

    url = "https://example.org/sky"
    text = f"{PAGE}\n\n## Snow\n\n" + "Snow falls slowly and lies long. " * 4000
    await lexical_app.cache.store_page(url, content=text)
    async with Client(build(opened)) as client:
        arguments: dict[str, object] = {"url": url, "section": "Snow"}
        read = (await client.call_tool("read_page", arguments)).structured_content
        assert read is not None
        assert set(read) == {"page"}
        assert "Snow falls slowly" in read["page"]
        assert "made of ice" not in read["page"]
        assert len(read["page"]) <= MAX_CHARACTERS
        offset = int(read["page"].rpartition("goes on at offset ")[2].split(".")[0])
        further = (await client.call_tool("read_page", {"url": url, "offset": offset})).content
        assert f"Characters {offset} to" in further[0].text  # type: ignore[union-attr]
        for wrong in ({"url": "https://example.org/sea"}, {"url": url, "section": "Wind"}):
            assert (await client.call_tool("read_page", wrong)).is_error


async def test_a_user_is_remembered_and_nobody_else(lexical_app: App) -> None:
    async def opened() -> App:
        return lexical_app

    async def value(tool: str, **arguments: object) -> dict[str, object]:
        found = (await client.call_tool(tool, arguments)).structured_content
        assert found is not None
        return found

    user = "someone@example.org"
    async with Client(build(opened)) as client:
        assert "next" in await value("recall", user=user)
        noted = await value("remember", user=user, fact="Prefers short answers with examples.")
        assert noted == {"remembered": True}
        assert "short answers" in str((await value("recall", user=user))["memory"])
        found = await value("recall", user=user, query="answers")
        assert found == {"memories": [{"text": "Prefers short answers with examples."}]}
        await lexical_app.memory.undo(user)
        found = await value("recall", user=user, query="answers")
        assert found["memories"] == [
            {"text": "Prefers short answers with examples.", "former": True}
        ]
        assert (await value("recall", user="other@example.org"))["memory"] == ""
        refused = await value("remember", user=user, fact="Call 613-555-0142 at once.")
        assert refused["remembered"] is False
        assert refused["left_out"]
        for wrong in ({"user": "", "fact": "x"}, {"user": user, "fact": "x" * 3000}):
            assert (await client.call_tool("remember", wrong)).is_error


async def test_over_stdio(lexical_app: App, write: Write, home: Path, database_url: str) -> None:
    await lexical_app.ingest.bulk_index(write({"rain.md": PAGE}), collection="sky")
    plugin = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["vademecum"]
    server = StdioServerParameters(
        command=str(Path(sys.executable).parent / plugin["command"]),
        args=plugin["args"],
        env={"VADE_HOME": str(home), "VADE_DATABASE_URL": database_url},
    )
    async with Client(stdio_client(server)) as client:
        found = await client.call_tool("search_knowledge", {"query": "hail"})
        assert found.structured_content is not None
        assert found.structured_content["passages"][0]["title"] == "Rain"
        wrong = await client.call_tool("search_knowledge", {"querry": "hail"})
        assert wrong.is_error
        assert "Did you mean 'query'?" in wrong.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http_with_the_token(
    lexical_app: App, write: Write, tmp_path: Path, database_url: str, mode: str
) -> None:
    await lexical_app.ingest.bulk_index(write({"rain.md": PAGE}), collection="sky")
    home = tmp_path / "served"
    home.mkdir()
    with served(home, database_url, VADE_EMBEDDER="none") as running:
        url = f"{running.address.url}/mcp"
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        hook = accept | {"Authorization": f"Bearer {token(home, 'hook-token')}"}
        bearer = {"Authorization": f"Bearer {token(home)}"}
        async with httpx2.AsyncClient(headers=bearer) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode) as client:  # type: ignore[arg-type]
                assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
                found = await client.call_tool("search_knowledge", {"query": "hail"})
                assert found.structured_content is not None
                assert found.structured_content["passages"][0]["title"] == "Rain"
                wrong = await client.call_tool("search_knowledge", {"querry": "hail"})
                assert wrong.is_error
                assert "Did you mean 'query'?" in wrong.content[0].text  # type: ignore[union-attr]
            foreign = await http.post(url, json=ask, headers=accept | {"Host": "evil.example"})
            assert foreign.status_code == 421
        async with httpx2.AsyncClient() as http:
            for headers in (accept, hook):
                refused = await http.post(url, json=ask, headers=headers)
                assert refused.status_code == 401
                assert "tools" not in json.loads(refused.content)
        code, said = running.stop()
        assert code == 0, said
        assert "Traceback" not in said
