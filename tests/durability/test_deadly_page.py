"""A page that kills whoever reads it takes few processes with it, and no other page."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import psycopg
import pytest

from cache.site import Site, send
from vademecum.store.cache import MAX_DEATHS

Start = Callable[..., "subprocess.Popen[str]"]

ENDLESS = b"*a " * 30_000
"""Takes docutils minutes to read, long enough to kill it at that."""


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def start(tmp_path: Path, database_url: str) -> Start:
    """`vade` in a home where this machine may be fetched from."""
    (tmp_path / "cache.toml").write_text('[defaults]\nprivate_network = true\nleast_ttl = "0s"\n')

    def start_vade(*arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [Path(sys.executable).parent / "vade", *arguments],
            env={
                "VADE_HOME": str(tmp_path),
                "VADE_DATABASE_URL": database_url,
                "VADE_EMBEDDER": "none",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_vade


def said(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def deadly(request: BaseHTTPRequestHandler) -> None:
    send(request, 200, ENDLESS, "text/x-rst", Cache_Control="max-age=0")


def test_a_page_that_kills_its_reader_is_left_alone(
    start: Start, site: Site, database_url: str
) -> None:
    url, other = site.url("/deadly"), site.url("/other")
    site.pages |= {"/deadly": "<h1>Lamps</h1><p>The oil is in the cellar.</p>" * 9}
    site.cache_control = "max-age=0"
    said(start("store-page", url))
    site.pages["/other"] = "<h1>Other</h1><p>The wick is in the attic.</p>" * 9
    site.answers["/deadly"] = deadly

    with psycopg.connect(database_url, autocommit=True) as connection:

        def tell(asked: str) -> None:
            connection.execute(
                "INSERT INTO web_pages (collection_id, url, due_at)"
                " SELECT id, %s, now() FROM collections"
                " ON CONFLICT (collection_id, url) DO UPDATE SET due_at = now()",
                [asked],
            )

        def column(name: str) -> object:
            row = connection.execute(
                f"SELECT {name} FROM web_pages WHERE url = %s",  # type: ignore[arg-type]
                [url],
            ).fetchone()
            return row and row[0]

        for deaths in range(MAX_DEATHS):
            tell(url)  # as when its lease has run out
            if deaths == 1:
                tell(other)
            worker = start("process-queue" if deaths < MAX_DEATHS - 1 else "refresh")
            wait_until(lambda deaths=deaths: column("deaths") == deaths + 1, worker)
            worker.kill()
            worker.communicate()
        assert "attic" in said(start("check-url", other))

        tell(url)
        said(start("process-queue"))
        assert column("due_at") is None
        asked = len(site.requests)
        assert f"{MAX_DEATHS} processes died while reading it" in said(start("status"))
        checked = json.loads(said(start("check-url", url, "--json")))
        assert checked["outcome"] == "stale"
        assert "processes died" in checked["reason"]
        assert "cellar" in checked["text"]
        said(start("process-queue"))
        assert len(site.requests) == asked
        assert f"{url}: {MAX_DEATHS} processes died" in start("refresh").communicate()[1]

        del site.answers["/deadly"]
        site.pages["/deadly"] = "<h1>Lamps</h1><p>The oil is in the barn.</p>" * 9
        said(start("store-page", url))
        assert column("deaths") == 0
        assert "barn" in said(start("check-url", url))


def wait_until(holds: Callable[[], bool], worker: "subprocess.Popen[str]") -> None:
    for _ in range(3000):
        if holds():
            return
        assert worker.poll() is None, worker.communicate()
        time.sleep(0.01)
    pytest.fail("it was never so")
