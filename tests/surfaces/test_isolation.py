"""One tenant tries to reach another's collection: by the library, the command, HTTP and MCP.

The command is the operator's own, and may name any collection; what it must not do is to show one
tenant's text in another's results. A key of one tenant must not even learn of the other.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from serving import Served, served

from conftest import Vade
from vademecum.access import Access, acting
from vademecum.app import App
from vademecum.errors import BadInput, NotAllowed, UnknownCollection, UnknownRun
from vademecum.types import ChunkId, Query

Write = Callable[[dict[str, str | bytes]], Path]

OURS, THEIRS = "tenant-a", "tenant-b"
SECRET = "periwinkle"
"""A word that only the other tenant's document holds."""
TEXT = "# Manual\n\nThe lamp is lit at dusk. The word of the day is {word}.\n"
OURS_ONLY = Access(
    name="key 'a'",
    scopes=frozenset(["read", "write", "admin"]),
    collections=frozenset([OURS]),
)
NAMES = (
    THEIRS,
    THEIRS.upper(),
    f"{OURS}' OR name = '{THEIRS}",
    f"{OURS},{THEIRS}",
    f"{OURS}/../{THEIRS}",
    "%",
    "*",
    "",
)
FILTERS = ("tenant=*", f"collection={THEIRS}", "book_id!=x", "id>=0", "'; SELECT 1; --=x")


class Theirs:
    """What could be known of the other tenant's document, by an old citation say."""

    def __init__(self, chunk: UUID, parent: UUID, run: int) -> None:
        self.chunk, self.parent, self.run = chunk, parent, run


@pytest.fixture
async def theirs(lexical_app: App, write: Write) -> Theirs:
    await lexical_app.ingest.bulk_index(
        write({"manual.md": TEXT.format(word="marigold")}), collection=OURS
    )
    folder = write({"secret.md": TEXT.format(word=SECRET)})
    report = await lexical_app.ingest.bulk_index(folder, collection=THEIRS)
    (hit,) = (await lexical_app.search(Query(text=SECRET, collection=THEIRS))).results
    chunk = (await lexical_app.shelf.chunk(THEIRS, hit.chunk_id)).chunk
    return Theirs(chunk.id, chunk.parent_id, report.run)


async def test_the_library_keeps_to_the_access_it_acts_with(
    lexical_app: App, theirs: Theirs, tmp_path: Path
) -> None:
    app = lexical_app
    attempts: list[Callable[[str], Awaitable[object]]] = [
        lambda name: app.search(Query(text=SECRET, collection=name)),
        lambda name: app.answer(f"What is {SECRET}?", collection=name),
        lambda name: app.collection(name),
        lambda name: app.list_collections(name),
        lambda name: app.status(name),
        lambda name: app.open_jobs(name),
        lambda name: app.knowledge_bases.recent_updates(name),
        lambda name: app.knowledge_bases.chunk_metadata(name, [ChunkId(theirs.chunk)]),
        lambda name: app.shelf.read(name, "secret.md"),
        lambda name: app.ingest.store(collection=name, url="https://example.org/"),
        lambda name: app.ingest.rebuild(name),
        lambda name: app.moves.reindex(name),
        lambda name: app.ingest.start_run(name),
        lambda name: app.delete_collection(name),
        lambda name: app.knowledge_bases.rows(name),
        lambda name: app.runs.listed(name),
        lambda name: app.shelf.listed(name),
        lambda name: app.shelf.lesson(name, theirs.parent),
        lambda name: app.shelf.chunk(name, theirs.chunk),
        lambda name: app.shelf.state(name),
    ]
    with acting(OURS_ONLY):
        for attempt in attempts:
            for name in (THEIRS, *NAMES):
                with pytest.raises(UnknownCollection) as refusal:
                    await attempt(name)
                assert f"named {name!r}" in str(refusal.value)
                assert THEIRS not in str(refusal.value.hint)
        for run in (app.runs.one, app.runs.details, app.runs.cancel, app.runs.requeue):
            with pytest.raises(UnknownRun):
                await run(theirs.run)
        for refused in (
            app.ingest.bulk_index(tmp_path, collection=OURS),
            app.ingest.start_run(OURS, folder=tmp_path),
            app.ingest.store(collection=OURS, file=tmp_path / "x.md"),
            app.process_queue(),
            app.keys.listed(),
            app.keys.create("more", scopes=["admin"]),
            app.memory.show("someone@example.org"),
        ):
            with pytest.raises(NotAllowed):
                await refused
        # In our own collection nothing of theirs is found, whatever is asked for.
        with pytest.raises(BadInput):
            await app.shelf.chunk(OURS, theirs.chunk, context=50)
        with pytest.raises(BadInput):
            await app.shelf.lesson(OURS, theirs.parent)
        assert await app.knowledge_bases.chunk_metadata(OURS, [ChunkId(theirs.chunk)]) == {}
        query = Query(text=f"{SECRET} lamp", collection=OURS, limit=100)
        assert {hit.collection for hit in (await app.search(query)).results} == {OURS}
        foreign = Query(text="lamp", collection=OURS, parent=theirs.parent)
        assert (await app.search(foreign)).results == []
        assert [one.name for one in await app.list_collections()] == [OURS]
        assert [one.name for one in (await app.status()).collections] == [OURS]
        assert {run.collection for run in await app.runs.listed()} == {OURS}
        assert await app.collection_name(None) == OURS
    assert len(await app.list_collections()) == 2


@pytest.fixture
def running(home: Path, tmp_path: Path, database_url: str, theirs: Theirs) -> Iterator[Served]:
    own = tmp_path / "home"
    own.mkdir()
    (own / "models").symlink_to(home / "models")
    with served(own, database_url, VADE_EMBEDDER="none", VADE_KEY_RATE="10000") as begun:
        yield begun


@pytest.fixture
def key(vade: Vade) -> str:
    made = vade("keys", "create", "--name", "a", "-c", OURS, "--scope", "admin", "--json")
    secret: str = json.loads(made.stdout)["key"]
    return secret


def test_http_keeps_to_the_key(running: Served, key: str, theirs: Theirs) -> None:
    bearer = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=running.address.url, headers=bearer, timeout=30) as client:
        answers = []
        for name in NAMES:
            asked = {"collection": name, "query": SECRET, "question": SECRET, "text": SECRET}
            for path in ("/search", "/answer", "/runs"):
                answers.append(client.post(path, json=asked))
            answers.append(client.post("/books/search", json=asked | {"book_id": name}))
            quoted = f"/collections/{quote(name, safe='')}"
            for path in (
                "",
                "/state",
                "/documents",
                "/document?path=secret.md",
                f"/lessons/{theirs.parent}",
                f"/chunks/{theirs.chunk}?context=50",
            ):
                if name:
                    answers.append(client.get(quoted + path))
            for path in ("/runs", "/status", "/jobs", "/events"):
                answers.append(client.get(path, params={"collection": name}))
        for filter_ in FILTERS:
            asked = {"collection": OURS, "query": SECRET, "filters": [filter_]}
            answers.append(client.post("/search", json=asked))
            answers.append(client.get(f"/collections/{OURS}/documents", params={"filter": filter_}))
        answers += [
            client.get(f"/collections/{OURS}/chunks/{theirs.chunk}?context=50"),
            client.get(f"/collections/{OURS}/lessons/{theirs.parent}"),
            client.get(f"/collections/{OURS}/document?path=secret.md"),
            client.get(f"/runs/{theirs.run}"),
            client.get(f"/runs/{theirs.run}/events"),
            client.post(f"/runs/{theirs.run}/resume"),
            client.delete(f"/collections/{THEIRS}"),
            client.post(f"/collections/{THEIRS}/pages", json={"url": "https://example.org/"}),
            client.post("/runs", json={"collection": OURS, "folder": "/etc"}),
            client.post("/memory/show", json={"user": "someone@example.org"}),
            client.get("/cache/report"),
        ]
        for answer in answers:
            assert answer.status_code in (400, 403, 404, 422), answer.request.url
            assert "word of the day" not in answer.text
            # A refusal repeats what was asked; it tells nothing else of the other tenant.
            if THEIRS not in str(answer.request.url) + answer.request.content.decode():
                assert THEIRS not in answer.text
        for path in ("/collections", "/status", "/jobs", "/runs", "/health"):
            answer = client.get(path)
            assert answer.status_code == 200, answer.text
            assert THEIRS not in answer.text
            assert "postgresql" not in answer.text
            assert "secret.md" not in answer.text
        found = client.post(
            "/search", json={"collection": OURS, "query": f"{SECRET} lamp", "limit": 100}
        )
        assert {hit["collection"] for hit in found.json()["results"]} == {OURS}
    with running.client() as operator:
        assert operator.get(f"/collections/{THEIRS}").json()["documents"] == 1


async def test_mcp_keeps_to_the_key(running: Served, key: str) -> None:
    bearer = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=bearer, timeout=30) as http:
        transport = streamable_http_client(f"{running.address.url}/mcp", http_client=http)
        async with Client(transport) as client:
            for tool, asked in (
                ("search_knowledge", {"query": SECRET}),
                ("answer_knowledge", {"query": SECRET}),
                ("get_repository_stats", {}),
                ("list_recent_updates", {}),
            ):
                for name in NAMES[:-1]:
                    told = await client.call_tool(tool, asked | {"repository": name})
                    assert told.is_error, (tool, name)
                    assert "word of the day" not in str(told)
            for tool, asked in (
                ("list_knowledge_bases", {}),
                ("search_knowledge", {"query": f"{SECRET} lamp"}),
                ("get_repository_stats", {}),
                ("health_check", {}),
            ):
                told = await client.call_tool(tool, asked)
                assert not told.is_error, told
                assert THEIRS not in str(told)
                assert SECRET not in str(told)
            for tool, asked in (
                ("recall", {"query": "x", "user": "someone@example.org"}),
                ("remember", {"fact": "Prefers short answers.", "user": "someone@example.org"}),
            ):
                assert (await client.call_tool(tool, asked)).is_error
            with pytest.raises(Exception, match=r"tenant-b|not found|Unknown|no collection"):
                await client.read_resource(f"vade://{THEIRS}/secret.md")


def test_the_command_shows_no_other_collection(vade: Vade, theirs: Theirs) -> None:
    for name in (THEIRS.upper(), f"{OURS}' OR name = '{THEIRS}"):
        for command in (
            ("search", SECRET, "-c", name),
            ("answer", SECRET, "-c", name),
            ("read", f"{name}/secret.md"),
            ("runs", "list", "-c", name),
            ("delete", "-c", name, "--yes"),
        ):
            done = vade(*command)
            assert done.returncode != 0, command
            assert "word of the day" not in done.stdout + done.stderr
    for command in (
        ("documents", "chunk", str(theirs.chunk), "--context", "50", "-c", OURS),
        ("documents", "lesson", str(theirs.parent), "-c", OURS),
        ("read", f"{OURS}/secret.md"),
        *(("search", SECRET, "-c", OURS, "--filter", filter_) for filter_ in FILTERS),
    ):
        done = vade(*command)
        assert done.returncode == 2, command
        assert "word of the day" not in done.stdout + done.stderr
    found = vade("search", f"{SECRET} lamp", "-c", OURS, "--json")
    assert {hit["collection"] for hit in json.loads(found.stdout)["results"]} == {OURS}
