"""Projection, refresh and linking killed at random moments: done again, nothing is lost or half."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from cache.site import Site, send
from graph.environments import install, project
from graph.graph_things import CODE, FILE, FUNCTION, KNOWN, SHARED, doc
from vademecum.app import App
from vademecum.graph.nodes import ExternalDoc
from vademecum.settings import Settings
from vademecum.store.documents import content_hash

COMMAND = Path(sys.executable).parent / "vade"
KILLS = 3
Result = TypeVar("Result")


def run(settings: Settings, work: Callable[[App], Awaitable[Result]]) -> Result:
    async def inside() -> Result:
        async with App.open(settings) as app:
            return await work(app)

    return asyncio.run(inside())


def killed(arguments: list[str], environment: dict[str, str], chance: random.Random) -> bool:
    """Whether it was still at work when it was killed, some time after it started to work."""
    process = subprocess.Popen(
        [COMMAND, *arguments], env=environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    process.stderr.readline()  # the first sign of progress
    time.sleep(chance.uniform(0, 0.3))
    at_work = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    return at_work


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("KILL_SEED") or int.from_bytes(os.urandom(3)))
    print(f"KILL_SEED={seed}")
    return random.Random(seed)


@pytest.mark.xdist_group("neo4j")
def test_a_killed_projection_goes_on_where_it_was(
    settings: Settings, neo4j_url: str, chance: random.Random
) -> None:
    settings = replace(settings, embedder="none", neo4j_url=neo4j_url)
    environment = dict(
        os.environ,
        VADE_HOME=str(settings.home),
        VADE_DATABASE_URL=str(settings.database_url),
        VADE_NEO4J_URL=neo4j_url,
    )

    async def fill(app: App) -> None:
        await app.projection.rebuild()
        await app.graph.state("environment", "all", nodes=SHARED, relations=KNOWN)
        await app.graph.state(
            "link", FILE.path, project="shop", nodes=[FILE, FUNCTION], relations=CODE
        )
        for start in range(0, 4000, 2000):
            many = [doc(f"Page {number}") for number in range(start, start + 2000)]
            nodes = [replace(FILE, path=each.title) for each in many]
            await app.graph.state("many", str(start), project="shop", nodes=nodes)

    async def verified(app: App) -> tuple[int, int]:
        await app.projection.work()
        found = await app.projection.verify()
        return found.different, found.waiting

    run(settings, fill)
    hit = sum(killed(["graph", "project"], environment, chance) for _ in range(KILLS))

    assert hit
    assert run(settings, verified) == (0, 0)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


def test_a_killed_refresh_leaves_each_document_old_or_new(
    settings: Settings, tmp_path: Path, site: Site, chance: random.Random
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "cache.toml").write_text(
        '[defaults]\nprivate_network = true\nleast_ttl = "0s"\n', encoding="utf-8"
    )
    settings = replace(settings, home=home, embedder="none")
    environment = dict(
        os.environ, VADE_HOME=str(home), VADE_DATABASE_URL=str(settings.database_url)
    )
    docs = [
        doc(f"Page {n}", source_url=site.url(f"/{n}"),
            last_updated=datetime.now(UTC) - timedelta(days=40))
        for n in range(12)
    ]  # fmt: skip

    def slowly(request: object) -> None:
        time.sleep(0.05)
        body = f"<html><title>New</title><body><main><p>{'word ' * 60}</p></main></body></html>"
        send(request, 200, body.encode())  # type: ignore[arg-type]

    for number in range(len(docs)):
        site.answers[f"/{number}"] = slowly

    async def fill(app: App) -> None:
        await app.graph.state("fetch", "all", nodes=docs)
        for each in docs:
            await app.graph.record_usage(each.id, agent_id="a")

    async def look(app: App) -> list[ExternalDoc]:
        found = (await app.graph.get([each.id for each in docs])).values()
        return [node for node in found if isinstance(node, ExternalDoc)]

    async def finish(app: App) -> None:
        await app.graph.refresh()

    run(settings, fill)
    for _ in range(KILLS):
        killed(["graph", "refresh"], environment, chance)
        for node in run(settings, look):
            assert (node.title == "New") == (node.content_hash != "0" * 64)
    run(settings, finish)
    nodes = run(settings, look)
    texts = {node.id: run(settings, _content(node)) for node in nodes}

    assert [node.title for node in nodes] == ["New"] * len(docs)
    assert all(content_hash(texts[node.id] or "") == node.content_hash for node in nodes)
    assert not list((home / "external_knowledge").rglob("*.part"))


def _content(node: ExternalDoc) -> Callable[[App], Awaitable[str | None]]:
    async def read(app: App) -> str | None:
        return app.graph.content.read(node.id)

    return read


def test_killed_linking_goes_on_where_it_was(
    settings: Settings, tmp_path: Path, chance: random.Random
) -> None:
    """Each file is whole or not linked, and in the end the graph is that of an undisturbed run."""
    settings = replace(settings, embedder="none")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("VADE_")},
        "VADE_HOME": str(settings.home),
        "VADE_DATABASE_URL": str(settings.database_url),
        "VADE_EMBEDDER": "none",
    }
    library = {"lib/__init__.py": "".join(f"def f{n}(): ...\n" for n in range(200))}
    install(tmp_path / "shop" / ".venv", "lib", "1.0", library)
    calls = "".join(f"def g{n}():\n    lib.f{n}()\n" for n in range(40))
    files = {f"part{n}.py": f"import lib\n\n{calls}" for n in range(150)}
    root = project(tmp_path / "shop", files)

    async def links(app: App, name: str) -> dict[str, int]:
        """How many calls each linked file has."""
        digests = await app.graph.digests("link", project=name)
        counts = {}
        for path in digests:
            rows = await app.graph.query("neighbourhood", project=name, path=path, limit=1000)
            counts[path] = sum(row["relation"] == "USED_IN" for row in rows)
        return counts

    def kill_while_it_links() -> bool:
        """Once it has linked more than before. Whether it was still at work."""
        with psycopg.connect(str(settings.database_url), autocommit=True) as connection:

            def linked() -> int:
                [(count,)] = connection.execute(
                    "SELECT count(*) FROM graph_statements WHERE source = 'link'"
                ).fetchall()
                return int(count)

            before = linked()
            process = subprocess.Popen(
                [COMMAND, "link", root], env=environment, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            while process.poll() is None and linked() == before:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.1))
            at_work = process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
        return at_work

    at_work = 0
    for _ in range(KILLS):
        at_work += kill_while_it_links()
        assert set(run(settings, lambda app: links(app, "shop")).values()) <= {40}
    (root / "part0.py").unlink()  # also in a run that is killed and gone on with
    (root / "part1.py").write_text("import lib\n\nlib.f0()\n")
    kill_while_it_links()
    done = run(settings, lambda app: app.code.link(root))
    assert done.files == len(files) - 1
    run(settings, lambda app: app.code.link(root, project="undisturbed"))
    linked = run(settings, lambda app: links(app, "shop"))
    assert linked == run(settings, lambda app: links(app, "undisturbed"))
    assert linked["part1.py"] == 1
    counts = run(settings, lambda app: app.graph.counts(project="shop"))
    assert counts == run(settings, lambda app: app.graph.counts(project="undisturbed"))
    assert at_work, "no run was killed while it was at work"
