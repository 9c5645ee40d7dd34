"""`vade fetch` killed at random moments: what is stored is whole, and in the end there once."""

import asyncio
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import psycopg

from graph.sources.host import Host, Reply
from graph.sources.test_registries import pypi
from vademecum.app import App
from vademecum.graph.nodes import ExternalDoc
from vademecum.settings import Settings
from vademecum.store.documents import content_hash

__all__ = ["pypi"]  # a fixture
COMMAND = Path(sys.executable).parent / "vade"
VERSIONS = ("1.9", "1.10", "2.0")
KILLS = 6
Result = TypeVar("Result")


def test_a_killed_fetch_is_whole_and_goes_on(house: Path, database_url: str, pypi: Host) -> None:
    seed = int(os.environ.get("KILL_SEED") or int.from_bytes(os.urandom(3)))
    print(f"KILL_SEED={seed}")
    chance = random.Random(seed)
    slow(pypi)
    settings = Settings(home=house, database_url=database_url, embedder="none")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("VADE_")},
        "VADE_HOME": str(house),
        "VADE_DATABASE_URL": database_url,
        "VADE_EMBEDDER": "none",
    }

    def fetch(version: str, *, kill: bool) -> bool:
        """Whether it was still at work when it was killed."""
        process = subprocess.Popen(
            [COMMAND, "fetch", "package", f"shop-lib=={version}"], env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        if kill:
            process.stderr.readline()  # the first sign of progress
            time.sleep(chance.uniform(0, 0.8))
            at_work = process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
            return at_work
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        return False

    at_work = 0
    for _ in range(KILLS):
        at_work += fetch(chance.choice(VERSIONS), kill=True)
        whole(settings)
    for version in VERSIONS:
        fetch(version, kill=False)
    whole(settings)
    killed = held(settings)
    run(settings, lambda app: app.graph.retract("pypi"))
    assert held(settings) == {"entities": {}, "relations": {}, "searched": 0, "statements": 0}
    for version in VERSIONS:
        fetch(version, kill=False)

    assert killed == held(settings)
    assert killed["entities"]["ExternalDoc"] == 2 * len(VERSIONS)
    assert at_work, "no run was killed while it was at work"


def slow(host: Host) -> None:
    for path, page in list(host.pages.items()):
        assert isinstance(page, tuple)
        kind, data = page

        def answer(_: Mapping[str, str], kind: str = kind, data: bytes = data) -> Reply:
            time.sleep(0.1)
            return 200, {"content-type": kind}, data

        host.pages[path] = answer


def run(settings: Settings, work: Callable[[App], Awaitable[Result]]) -> Result:
    async def inside() -> Result:
        async with App.open(settings) as app:
            return await work(app)

    return asyncio.run(inside())


def whole(settings: Settings) -> None:
    """Every document has its text, and every reply that is recorded its file."""

    async def look(app: App) -> None:
        documents = await app.graph.of_package(ExternalDoc, "pypi", "shop-lib")
        for one in documents:
            assert content_hash(app.graph.content.read(one.id) or "") == one.content_hash
            stated = {relation.kind for relation in await app.graph.relations([one.id])}
            assert "SOURCED_FROM" in stated

    run(settings, look)
    folder = settings.home / "external_knowledge" / "replies"
    files = {hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*/*")}
    with psycopg.connect(str(settings.database_url)) as connection:
        for (digest,) in connection.execute("SELECT digest FROM source_replies").fetchall():
            assert digest in files


def held(settings: Settings) -> dict[str, object]:
    counts = run(settings, lambda app: app.graph.counts())
    with psycopg.connect(str(settings.database_url)) as connection:
        [(searched,)] = connection.execute("SELECT count(*) FROM crawled_documents").fetchall()
        [(statements,)] = connection.execute("SELECT count(*) FROM graph_statements").fetchall()
    return {
        "entities": counts.entities,
        "relations": counts.relations,
        "searched": searched,
        "statements": statements,
    }
