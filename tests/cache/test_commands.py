"""The cache's commands as a user runs them: a process each, a real site, a real database."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cache.site import Site
from cache.test_cache import article
from conftest import Vade

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cached(vade: Vade, tmp_path: Path) -> Run:
    """`vade` with a home where this machine may be fetched from, and without a model."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "cache.toml").write_text("[defaults]\nprivate_network = true\n")

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return vade(*arguments, VADE_HOME=str(home), VADE_EMBEDDER="none")

    return run


def test_store_check_and_read(cached: Run, site: Site) -> None:
    site.pages["/a"] = article("The port is 5432.", "The lamp is red.")
    url = site.url("/a")

    missed = cached("check-url", url)
    assert (missed.returncode, missed.stdout) == (0, "CACHE_MISS\n")
    assert "it is not stored" in missed.stderr

    stored = cached("store-page", url, "--json")
    assert json.loads(stored.stdout) == {"url": url, "action": "stored"}, stored.stderr

    hit = json.loads(cached("check-url", url, "--prompt", "which port", "--json").stdout)
    assert hit["outcome"] == "hit"
    assert "The port is 5432." in hit["text"]

    part = cached("read-page", url, "--section", "Part 1")
    assert "The lamp is red." in part.stdout
    assert "5432" not in part.stdout

    wrong = cached("read-page", url, "--section", "Part 9")
    assert wrong.returncode == 2
    assert "no section 'Part 9'" in wrong.stderr
    assert "Part 0" in wrong.stderr


def test_content_is_stored_instead_of_a_fetch(cached: Run, site: Site, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Mine\n\nThe port is 99.\n")
    url = site.url("/mine")

    assert cached("store-page", url, "--content", str(page)).stdout == f"{url}: stored\n"
    assert "The port is 99." in cached("check-url", url).stdout
    assert site.requests == []

    gone = cached("store-page", url, "--content", str(tmp_path / "none.md"))
    assert (gone.returncode, gone.stdout) == (2, "")
    assert "cannot be read" in gone.stderr


def test_refresh_updates_what_differs_and_says_what_failed(cached: Run, site: Site) -> None:
    site.pages |= {path: article(f"Of {path}.") for path in ("/a", "/b", "/c")}
    for path in list(site.pages):
        assert cached("store-page", site.url(path)).returncode == 0
    site.pages["/b"] = article("Of /b, changed.")
    del site.pages["/c"]

    assert cached("refresh", "--older-than", "1h").stdout == "0 updated, 0 unchanged\n"
    done = cached("refresh")
    assert (done.returncode, done.stdout) == (1, "1 updated, 1 unchanged\n")
    assert f"{site.url('/c')}: it answered 404" in done.stderr
    assert "Of /b, changed." in cached("check-url", site.url("/b")).stdout
    assert "Of /c." in cached("check-url", site.url("/c")).stdout

    wrong = cached("refresh", "--older-than", "yesterday")
    assert wrong.returncode == 2
    assert "must be like 90s" in wrong.stderr


def test_report_measures_and_draws(cached: Run, site: Site, tmp_path: Path) -> None:
    empty = {m["name"]: m for m in json.loads(cached("report", "--json").stdout)["metrics"]}
    assert empty["Cache hit rate after warm-up"]["verdict"] == "not measured"

    site.pages["/a"] = article("One.")
    url = site.url("/a")
    for command in ("check-url", "store-page", "check-url", "check-url"):
        assert cached(command, url).returncode == 0
    assert cached("search", "lead of the article", "-c", "web").returncode == 0
    picture = tmp_path / "report.html"
    report = json.loads(cached("report", "--json", "--html", str(picture)).stdout)

    found = {metric["name"]: metric for metric in report["metrics"]}
    assert found["Cache hit rate after warm-up"]["measured"] == "100.0 % of 2"
    assert found["Tokens saved per hit, mean"]["verdict"] == "missed"  # short pages come whole
    assert found["Search latency p95"]["measured"].endswith(" ms")
    assert found["Documents searchable"] == {
        "name": "Documents searchable",
        "target": "1",
        "measured": "1",
        "verdict": "held",
    }
    assert sum(bucket["checks"] for bucket in report["buckets"]) == 3
    assert sum(bucket["hits"] for bucket in report["buckets"]) == 2
    text = picture.read_text()
    drawings = [part.partition("</svg>")[0] + "</svg>" for part in text.split("<svg")[1:]]
    assert len([ElementTree.fromstring("<svg" + drawing) for drawing in drawings]) == 2

    table = cached("report", "--last", "1h").stdout
    assert "100.0 % of 2" in table
    nowhere = cached("report", "--html", str(tmp_path / "none" / "x.html"))
    assert (nowhere.returncode, nowhere.stdout) == (2, "")
