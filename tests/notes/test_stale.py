"""Knowledge that rests on passages: stale when they change or go, and only then."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess

import httpx
import pytest
from mcp import Client

from fakes import FakeEmbedder
from vademecum.app import App
from vademecum.errors import BadInput, UnknownCollection
from vademecum.graph.nodes import APIReference, ExternalDoc
from vademecum.graph.relations import Relation
from vademecum.surfaces.http.api import create_api
from vademecum.surfaces.mcp import build

Write = Callable[[dict[str, str | bytes]], Path]
Vade = Callable[..., "CompletedProcess[str]"]
COMMAND = Path(sys.executable).parent / "vade"
POOL = "# Pool\n\n## Size\n\nThe connection pool has 6 connections.\n\n## Name\n\nIt is pgpool.\n"
OTHER = "# Ports\n\nThe port of the service is 8080.\n"


async def _index(app: App, folder: Path, **options: str) -> None:
    await app.ingest.bulk_index(folder, collection="kb", **options)  # type: ignore[arg-type]


async def _stale(app: App, collection: str | None = None) -> list[tuple[str, str, list[str]]]:
    return [(one.kind, one.title, one.why) for one in await app.stale.list_stale(collection)]


async def test_a_note_is_stale_while_its_passage_is_another(fake_app: App, write: Write) -> None:
    await _index(fake_app, write({"pool.md": POOL, "ports.md": OTHER}))
    await fake_app.notes.save(
        "shop", "Six connections.", title="Pool", evidence=["[source: kb/pool.md#size]"]
    )
    await fake_app.notes.save(
        "shop", "One port.", title="Ports", evidence=["kb/ports.md", "src/serve.py:12"]
    )
    assert await _stale(fake_app) == []
    # Another section of the same document changes: the passage stands.
    await _index(fake_app, write({"pool.md": POOL + "\nMore.\n", "ports.md": OTHER}))
    assert await _stale(fake_app) == []
    await _index(fake_app, write({"pool.md": POOL.replace("6", "12"), "ports.md": OTHER}))
    changed = [("note", "Pool", ["kb/pool.md#size has changed"])]
    assert await _stale(fake_app) == changed
    assert await _stale(fake_app, "kb") == changed
    [found] = await fake_app.notes.search("shop", "Pool", limit=1)
    assert found.note.stale == ["kb/pool.md#size has changed"]
    context = await fake_app.context.build("Pool of six connections", project="shop")
    assert "WARNING: it may no longer hold: kb/pool.md#size has changed." in context.markdown
    # Taken back, it holds as before.
    await _index(fake_app, write({"pool.md": POOL, "ports.md": OTHER}))
    assert await _stale(fake_app) == []
    await _index(fake_app, write({"pool.md": POOL}))
    assert await _stale(fake_app) == [("note", "Ports", ["kb/ports.md#ports is gone"])]
    with pytest.raises(UnknownCollection):
        await fake_app.stale.list_stale("none")


async def test_a_collection_that_goes_takes_the_ground_with_it(fake_app: App, write: Write) -> None:
    folder = write({"ports.md": OTHER})
    await _index(fake_app, folder)
    await fake_app.notes.save("shop", "One port.", evidence=["kb/ports.md"])
    await fake_app.delete_collection("kb")
    assert await _stale(fake_app) == [("note", "One port", ["kb/ports.md#ports is gone"])]
    await _index(fake_app, folder)
    assert await _stale(fake_app) == []


async def test_splitting_the_same_text_in_another_way_makes_nothing_stale(
    fake_app: App, write: Write
) -> None:
    long = "# Pool\n\n" + "\n\n".join(f"Sentence {n} about the pool." * 20 for n in range(60))
    await _index(fake_app, write({"pool.md": long}), profile="docs")
    await fake_app.notes.save("shop", "About pools.", evidence=["kb/pool.md"])
    before = await _hashes(fake_app)
    await _index(fake_app, write({"pool.md": long}), profile="kb")
    assert await _hashes(fake_app) != before
    assert await _stale(fake_app) == []


async def _hashes(app: App) -> list[str]:
    async with app.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT k.content_hash FROM document_chunks k"
            " JOIN collections c ON c.id = k.collection_id WHERE c.name = 'kb' ORDER BY 1"
        )
        return [row[0] for row in await cursor.fetchall()]


async def test_a_reference_that_names_nothing_is_refused(fake_app: App, write: Write) -> None:
    await _index(fake_app, write({"pool.md": POOL}))
    for wrong in ("source: kb/none.md", "[source: kb/pool.md#none]", "source: none/pool.md"):
        with pytest.raises(BadInput, match="names no passage"):
            await fake_app.notes.save("shop", "x", evidence=[wrong])
    assert await fake_app.notes.list_notes("shop") == []
    saved = await fake_app.notes.save("shop", "x", evidence=["kb/none.md"])  # a file, it may be
    assert saved.note.stale == []


async def test_a_note_is_confirmed(fake_app: App, write: Write) -> None:
    await _index(fake_app, write({"pool.md": POOL, "ports.md": OTHER}))
    saved = await fake_app.notes.save(
        "shop",
        "There is a pool.",
        evidence=["kb/pool.md#size", "kb/ports.md", "src/a.py:1"],
    )
    await _index(fake_app, write({"pool.md": POOL.replace("6", "12")}))
    note, _ = await fake_app.notes.show("shop", saved.note.id)
    assert note.stale == ["kb/pool.md#size has changed", "kb/ports.md#ports is gone"]
    again = await fake_app.notes.save("shop", "There is a pool.")  # says nothing of its evidence
    assert again.confirmed
    assert again.note.stale == note.stale
    kept = await fake_app.notes.confirm("shop", saved.note.id)
    assert (kept.stale, kept.evidence) == ([], ["kb/pool.md#size", "src/a.py:1"])
    assert await _stale(fake_app) == []
    with pytest.raises(BadInput):
        await fake_app.notes.confirm("blog", saved.note.id)
    await _index(fake_app, write({"pool.md": POOL}))
    assert len(await _stale(fake_app)) == 1
    await fake_app.notes.remove("shop", saved.note.id)
    assert await _stale(fake_app) == []


async def test_a_kept_answer_is_asked_again(fake_app: App, write: Write) -> None:
    await _index(fake_app, write({"pool.md": POOL, "ports.md": OTHER}))
    question = "How many connections does the connection pool have?"
    first = await fake_app.answer(question, collection="kb", keep_for="shop")
    assert first.kept is not None
    note, _ = await fake_app.notes.show("shop", first.kept)
    assert (note.type, note.title, note.content) == ("answer", question, first.answer)
    assert "kb/pool.md#size" in note.evidence
    await _index(fake_app, write({"pool.md": POOL.replace("6", "12"), "ports.md": OTHER}))
    assert [kind for kind, _, _ in await _stale(fake_app)] == ["answer"]
    done = await fake_app.stale.refresh()
    assert ([one.id for one in done.refreshed], done.left) == ([str(first.kept)], [])
    assert await _stale(fake_app) == []
    [now] = await fake_app.notes.list_notes("shop", type="answer")
    assert "12 connections" in now.content
    old, _ = await fake_app.notes.show("shop", first.kept)
    assert old.replaced_by == now.id
    # The sources answer it no more: what there is stays, with its warning.
    await _index(fake_app, write({"ports.md": OTHER}))
    done = await fake_app.stale.refresh("kb")
    assert [(one.id, why) for one, why in done.left] == [
        (str(now.id), "the sources no longer answer it")
    ]
    [found] = await fake_app.notes.search("shop", question, limit=1)
    assert found.note.stale


async def test_an_answer_that_stays_the_same_is_confirmed(fake_app: App, write: Write) -> None:
    question = "How many connections does the connection pool have?"
    await _index(fake_app, write({"pool.md": POOL}))
    first = await fake_app.answer(question, collection="kb", keep_for="shop")
    edited = POOL.replace("6 connections.", "6 connections.\n\nNobody knows the reason of that.")
    await _index(fake_app, write({"pool.md": edited}))
    assert [kind for kind, _, _ in await _stale(fake_app)] == ["answer"]
    done = await fake_app.stale.refresh()
    assert done.left == []
    [now] = await fake_app.notes.list_notes("shop", type="answer")
    assert now.id == first.kept


async def test_only_what_was_found_is_kept(fake_app: App, write: Write) -> None:
    await _index(fake_app, write({"pool.md": POOL}))
    found = await fake_app.answer("Who won the cup in 1998?", collection="kb", keep_for="shop")
    assert (found.found, found.kept) == (False, None)
    assert "nothing is kept, since there is no answer" in found.notices
    with pytest.raises(BadInput, match="200 characters"):
        await fake_app.answer("why " * 60, collection="kb", keep_for="shop")
    with pytest.raises(BadInput, match="no type 'answer'"):
        await fake_app.notes.save("shop", "x", type="answer")


async def test_a_summary_is_stale_until_its_document_is_made_again(
    fake_app: App, embedder: FakeEmbedder, write: Write
) -> None:
    await _index(fake_app, write({"pool.md": POOL}), profile="kb")
    assert await _stale(fake_app) == []
    embedder.poison = "poison"
    folder = write({"pool.md": POOL + "\nThe poison is in the pool.\n"})
    await fake_app.ingest.bulk_index(folder, collection="kb", wait=False)
    assert await _stale(fake_app, "kb") == [
        ("summary", "Summary of Pool", ["kb/pool.md has changed"])
    ]
    done = await fake_app.stale.refresh("kb")
    # Split and summarised it is; that it cannot be embedded is no fault of the summary.
    assert ([one.kind for one in done.refreshed], done.left) == (["summary"], [])


async def test_a_relation_is_stale_when_its_knowledge_changes_or_goes(fake_app: App) -> None:
    def page(text: str) -> ExternalDoc:
        return ExternalDoc(
            source="python_docs",
            source_url="https://docs.example/a",
            title="Guide",
            content_hash=text * 64,
            last_updated=datetime.now(UTC),
        )

    api = APIReference(namespace="lib", function_name="get", package="lib", version="1")
    await fake_app.graph.state("fetch", "guide", nodes=[page("a")])
    await fake_app.graph.state("environment", "lib", nodes=[api])
    trace = "ValueError: unknown colour 'mauve'"
    for number in (page("a").id, api.id):
        await fake_app.context.record(
            number, outcome="success", agent="a", project="shop", decision="So be it", error=trace
        )
    assert await _stale(fake_app) == []
    # Looked at again and found the same: only its date moves.
    await fake_app.graph.state("fetch", "guide", nodes=[page("a")])
    assert await _stale(fake_app) == []
    await fake_app.graph.state("fetch", "guide", nodes=[page("b")])
    changed = "ExternalDoc 'Guide' has changed"
    assert await _stale(fake_app) == [
        ("relation", "Guide INFORMED_DECISION So be it", [changed]),
        ("relation", "Guide SOLVES ValueError: unknown colour 'mauve'", [changed]),
    ]
    context = await fake_app.context.build("fix it", project="shop", error=trace)
    warnings = {one.title: one.warning for one in context.outside}
    assert warnings == {"Guide": "it has changed since it solved this", "lib.get": ""}
    await fake_app.context.record(  # it was right again
        page("b").id, outcome="success", agent="a", project="shop", decision="So be it", error=trace
    )
    assert await _stale(fake_app) == []
    await fake_app.graph.retract("environment", ["lib"])
    assert [why for _, _, why in await _stale(fake_app)] == [["APIReference 'lib.get' is gone"]] * 2
    refreshed = await fake_app.stale.refresh()
    assert len(refreshed.left) == 2


async def test_a_relation_that_is_restated_keeps_only_its_new_ground(fake_app: App) -> None:
    one = APIReference(namespace="lib", function_name="old", package="lib", version="1")
    two = APIReference(namespace="lib", function_name="new", package="lib", version="1")
    await fake_app.graph.state("environment", "lib", nodes=[one, two])
    replaced = Relation(kind="REPLACED_BY", start=one, end=two, rests_on=two)
    await fake_app.graph.state("page", "p", relations=[replaced])
    assert await _stale(fake_app) == []
    await fake_app.graph.state("page", "p", relations=[])
    await fake_app.graph.retract("environment")
    assert await _stale(fake_app) == []


async def test_http_and_mcp(fake_app: App, write: Write) -> None:
    await _index(fake_app, write({"pool.md": POOL}))
    question = "How many connections does the connection pool have?"

    async def opened() -> App:
        return fake_app

    transport = httpx.ASGITransport(app=create_api(fake_app))
    async with (
        Client(build(opened)) as client,
        httpx.AsyncClient(transport=transport, base_url="http://x") as http,
    ):
        await client.call_tool(
            "answer_knowledge", {"query": question, "repository": "kb", "keep_for": "shop"}
        )
        body = {"question": question, "collection": "kb", "keep_for": "blog"}
        assert (await http.post("/answer", json=body)).json()["kept"]
        assert (await http.get("/stale")).json() == {"stale": []}
        await _index(fake_app, write({"pool.md": POOL.replace("6", "12")}))
        stale = (await http.get("/stale", params={"collection": "kb"})).json()["stale"]
        assert [(one["kind"], one["project"]) for one in stale] == [
            ("answer", "blog"),
            ("answer", "shop"),
        ]
        told = await client.call_tool("get_context", {"task": question, "project": "shop"})
        assert told.structured_content is not None
        assert "WARNING: it may no longer hold" in told.structured_content["context"]
        note = {"project": "shop", "id": stale[1]["id"]}
        assert (await http.post("/notes/confirm", json=note)).json()["stale"] == []
        done = (await http.post("/stale/refresh", json={})).json()
        assert [one["project"] for one in done["refreshed"]] == ["blog"]
        assert done["left"] == []
        assert (await http.get("/stale", params={"collection": "none"})).status_code == 404


def test_by_command(vade: Vade, write: Write) -> None:
    quick = {"VADE_EMBEDDER": "none"}
    folder = write({"pool.md": POOL})
    vade("bulk-index", folder, "-c", "kb", **quick)
    question = "How many connections does the connection pool have?"
    kept = vade("answer", question, "-c", "kb", "--keep", "-p", "shop", "--json", **quick)
    assert json.loads(kept.stdout)["kept"]
    assert "Nothing is stale." in vade("stale", "--check", **quick).stderr
    write({"pool.md": POOL.replace("6", "12")})
    vade("bulk-index", folder, "-c", "kb", **quick)
    alarmed = vade("stale", "--check", "--json", **quick)
    [one] = json.loads(alarmed.stdout)["stale"]
    assert (alarmed.returncode, one["kind"], one["project"]) == (1, "answer", "shop")
    assert "stale: kb/pool.md#size has changed" in vade("note", "list", "-p", "shop").stdout
    assert "refreshed: answer of shop" in vade("stale", "--refresh", **quick).stdout
    wrong = vade("stale", "-c", "none")
    assert (wrong.returncode, "Traceback" in wrong.stderr) == (2, False)
    assert vade("answer", question, "-p", "shop").returncode == 2


def test_killed_in_between_it_is_stale_exactly_when_the_passage_is_another(
    vade: Vade, home: Path, database_url: str, write: Write
) -> None:
    """A swap that was not done leaves the old passage, and the note on it fresh."""
    quick = {"VADE_EMBEDDER": "none"}
    chance = random.Random(int(os.environ.get("KILL_SEED", "7")))
    filler = {f"page{n}.md": f"# Page {n}\n\n" + f"Words of page {n}. " * 400 for n in range(60)}
    folder = write({"zz.md": POOL, **filler})
    vade("bulk-index", folder, "-c", "kb", **quick)
    vade("note", "save", "Six.", "-p", "shop", "--evidence", "source: kb/zz.md#size", **quick)
    edited = {name: text.replace("Words", "Other words") for name, text in filler.items()}
    write({**edited, "zz.md": POOL.replace("6 connections", "12 connections")})
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("VADE_")},
        **quick,
        "VADE_HOME": str(home),
        "VADE_DATABASE_URL": database_url,
    }
    seen = set()
    for pause in sorted(chance.uniform(0.3, 2.5) for _ in range(6)):
        command = subprocess.Popen(
            [COMMAND, "bulk-index", folder, "-c", "kb", "--json"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(pause)
        command.send_signal(signal.SIGKILL)
        command.wait(timeout=60)
        old = "6 connections" in vade("read", "kb/zz.md#size").stdout
        stale = json.loads(vade("stale", "--json").stdout)["stale"]
        assert bool(stale) != old
        seen.add(old)
    vade("bulk-index", folder, "-c", "kb", **quick)
    assert "12 connections" in vade("read", "kb/zz.md#size").stdout
    [one] = json.loads(vade("stale", "--json").stdout)["stale"]
    assert one["why"] == ["kb/zz.md#size has changed"]
    assert True in seen  # some were killed before the swap
