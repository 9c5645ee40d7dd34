"""Documents looked at again over real sockets; maintenance and analysis."""

import asyncio
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from cache.site import Site, send
from graph.graph_things import CODE, ERROR, FILE, FUNCTION, NEW, OLD, api, doc
from vademecum.app import App
from vademecum.cache.polite import Politeness
from vademecum.cache.rules import Rule, Rules
from vademecum.errors import BadInput
from vademecum.graph.nodes import APIReference, ExternalDoc
from vademecum.graph.page_notices import notices
from vademecum.graph.relations import Relation
from vademecum.graph.upkeep import UNUSED_DAYS
from vademecum.store.documents import content_hash

NOW = datetime.now(UTC)
PAGE = """<html><head><title>The lib</title></head><body><main><h1>The lib</h1>
<p>A library that does what is needed, and has been doing it for a long time by now.</p>
<h2>lib.old(value)</h2><p>Makes an old thing of a value, as it always did.</p>{notice}
<h2>lib.new(value)</h2><p>Makes a new thing of a value.</p></main></body></html>"""
NOTICE = "<p>Deprecated since version 1.9: use <code>lib.new()</code> instead.</p>"


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def app(lexical_app: App) -> App:
    """May fetch from this machine, and does not pause."""
    cache = lexical_app.cache
    cache.state.rules = Rules(defaults=Rule(private_network=True, least_ttl=timedelta(0)))
    cache.state.fetcher = replace(
        cache.state.fetcher, politeness=Politeness(lexical_app.database, 0)
    )
    return lexical_app


def page(site: Site, name: str, **of: object) -> ExternalDoc:
    old = {"last_updated": NOW - timedelta(days=40), "source_url": site.url(f"/{name}")}
    return doc(name, **(old | of))


async def stored(app: App, node: ExternalDoc) -> ExternalDoc:
    found = (await app.graph.get([node.id]))[node.id]
    assert isinstance(found, ExternalDoc)
    return found


async def test_only_what_is_stale_and_valued_is_due(app: App, site: Site) -> None:
    def old(name: str, source: str, days: int) -> ExternalDoc:
        return page(site, name, source=source, last_updated=NOW - timedelta(days=days))

    stale = [
        old("official", "mdn", 31),
        old("tutorial", "real_python", 91),
        old("answer", "stackoverflow_accepted", 8),
        old("package", "pypi", 15),
    ]
    fresh = [
        old("official 2", "mdn", 29),
        old("tutorial 2", "real_python", 89),
        old("answer 2", "stackoverflow_accepted", 6),
        old("package 2", "pypi", 13),
        old("installed", "environment", 400),  # its home may tell of another version
    ]
    unused = [old(f"unused {n}", "mdn", 400) for n in range(3)]
    await app.graph.state("fetch", "all", nodes=[*stale, *fresh, *unused])
    for node in (*stale, *fresh):
        await app.graph.record_usage(node.id, agent_id="a")
    lately = set(await app.graph.due())
    # A month on nobody used them lately; what is used more than most is still valued.
    for _ in range(3):
        await app.graph.record_usage(stale[0].id, agent_id="a")
    app.graph._now = lambda: NOW + timedelta(days=8)
    valued = await app.graph.due()

    assert lately == {node.id for node in stale}
    assert valued == [stale[0].id]
    for number, why in ((fresh[-1].id, "installed package"), (UUID(int=1), "no document")):
        with pytest.raises(BadInput, match=why):
            await app.graph.refresh(ids=[number])


async def test_a_changed_page_is_taken_over_and_what_it_deprecates_is_noticed(
    app: App, site: Site
) -> None:
    known = replace(OLD, deprecated_in=None, deprecation="")
    node = page(site, "lib")
    await app.graph.state(
        "fetch",
        "lib",
        nodes=[node, known, NEW],
        relations=[Relation(kind="DOCUMENTED_IN", start=each, end=node) for each in (known, NEW)],
    )
    await app.graph.record_usage(node.id, agent_id="a")
    site.pages["/lib"] = PAGE.format(notice=NOTICE)
    report = await app.graph.refresh()
    after = await stored(app, node)
    [marked] = await app.graph.find(APIReference, ["lib.old"])
    rows = await app.graph.query("deprecated_apis", package="lib", version="1.10")
    text = app.graph.content.read(node.id)
    mode = stat.S_IMODE(os.stat(app.graph.content.path(node.id)).st_mode)
    log = [(each.change, each.name) for each in await app.graph.changes()]

    assert (report.updated, report.deprecated, report.failed) == (1, 1, [])
    assert text is not None
    assert after.content_hash == content_hash(text)
    assert after.title == "The lib"
    assert after.summary.startswith("A library that does what is needed")
    assert after.last_updated > NOW
    assert mode == 0o600
    assert marked.deprecated_in == "1.9"
    assert [(row["name"], row["replacement"]) for row in rows] == [("lib.old", "lib.new")]
    assert "Deprecated since version 1.9" in rows[0]["deprecation"]
    assert log == [("deprecated", "lib.old"), ("content_updated", "The lib")]


async def test_an_unchanged_page_is_fresh_again_and_nothing_is_logged(app: App, site: Site) -> None:
    site.pages["/lib"] = PAGE.format(notice="")
    node = page(site, "lib")
    await app.graph.state("fetch", "lib", nodes=[node])
    await app.graph.record_usage(node.id, agent_id="a")
    first = await app.graph.refresh(ids=[node.id])
    again = await app.graph.refresh(ids=[node.id])

    assert (first.updated, again.unchanged) == (1, 1)
    assert len(await app.graph.changes()) == 1
    assert await app.graph.due() == []


async def test_a_failed_fetch_keeps_the_old_and_says_so_and_is_not_tried_again_at_once(
    app: App, site: Site
) -> None:
    def broken(request: object) -> None:
        send(request, 500, b"broken")  # type: ignore[arg-type]

    site.answers["/lib"] = broken
    node = page(site, "lib")
    await app.graph.state("fetch", "lib", nodes=[node])
    await app.graph.record_usage(node.id, agent_id="a")
    before = await stored(app, node)
    report = await app.graph.refresh()
    [change] = await app.graph.changes(number=node.id)
    tried = await app.graph.due()
    app.graph._now = lambda: NOW + timedelta(days=1)

    assert report.failed[0][0] == node.source_url
    assert "500" in report.failed[0][1]
    assert (change.change, change.name) == ("fetch_failed", "lib")
    assert await stored(app, node) == before
    assert tried == []
    assert await app.graph.due() == [node.id]


async def test_a_document_taken_back_while_it_is_fetched_stays_away(app: App, site: Site) -> None:
    site.pages["/lib"] = PAGE.format(notice="")
    node = page(site, "lib")
    await app.graph.state("fetch", "lib", nodes=[node])
    docs = [await stored(app, node)]
    await app.graph.retract("fetch")
    await app.graph._refresher.refresh(docs, lambda done, total: None)

    assert await app.graph.get([node.id]) == {}
    assert await app.graph.changes() == []


async def test_maintenance_twice_does_the_same_as_once(app: App, site: Site) -> None:
    site.pages["/lib"] = PAGE.format(notice="")
    node = page(site, "lib")
    await app.graph.state("fetch", "lib", nodes=[node])
    await app.graph.record_usage(node.id, agent_id="a")
    app.graph.content.write(OLD.id, "read by nobody")
    killed, writing = (app.graph.content.folder / "replies" / name for name in ("a.part", "b.part"))
    killed.parent.mkdir(parents=True)
    killed.write_text("half")
    writing.write_text("half")
    os.utime(killed, (time.time() - 4000,) * 2)
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86_400
    os.utime(app.graph.content.path(OLD.id), (long_ago, long_ago))
    first = await app.graph.maintain()
    second = await app.graph.maintain()

    assert (first.refreshed.updated, first.content_removed) == (1, 2)
    assert writing.exists()
    assert not killed.exists()
    assert (second.refreshed.updated, second.refreshed.unchanged, second.content_removed) == (
        0,
    ) * 3
    assert second.rescored == 0
    assert app.graph.content.read(node.id) is not None


async def test_several_servers_take_one_turn_a_day(app: App) -> None:
    async def look() -> None:
        app.graph._upkeep_looked = -1e9
        await app.graph.upkeep_if_due()

    await asyncio.gather(*(look() for _ in range(5)))
    app.graph._now = lambda: NOW + timedelta(hours=25)
    await look()
    turns = [each.change for each in await app.graph.changes()]

    assert sorted(turns) == [
        "daily_maintenance",
        "daily_maintenance",
        "daily_maintenance_done",
        "daily_maintenance_done",
        "weekly_analysis",
        "weekly_analysis_done",
    ]


async def test_the_analysis_names_what_is_used_unused_and_missing(app: App, site: Site) -> None:
    used, misleading, unused = page(site, "used"), page(site, "misleading"), page(site, "unused")
    await app.graph.state("fetch", "all", nodes=[used, misleading, unused])
    await app.graph.state(
        "link", FILE.path, project="shop", nodes=[FILE, FUNCTION], relations=CODE[:2]
    )
    await app.graph.state("errors", "all", nodes=[ERROR])
    await app.graph.record_usage(used.id, agent_id="a", outcome="success")
    await app.graph.record_usage(misleading.id, agent_id="a", outcome="misled")
    app.graph._now = lambda: NOW + timedelta(days=UNUSED_DAYS + 1)
    found = await app.graph.analyse()

    assert [row["name"] for row in found.top] == ["used", "misleading"]
    assert [row["name"] for row in found.unused] == ["unused"]
    assert found.sources[0]["successes"] == 1
    assert {(row["gap"], row["name"]) for row in found.gaps} == {
        ("package without documents", "requests"),
        ("error without solution", ERROR.pattern),
        ("misled, and nothing helped", "misleading"),
    }


def test_notices_are_of_the_api_they_stand_by() -> None:
    text = """# Functions

### `old(value)`

Does it.

Deprecated since version 3.4, will be removed in 4.0: use `newer()` instead.

### `newer(value)`

Does it better than `lib.old`, which is deprecated.

`lib.third` was removed in version 5.
"""
    apis = [api(f"lib.{name}", package="lib") for name in ("old", "newer", "third", "fourth")]
    found = [
        (each.api.name, each.since, each.until, each.replacement) for each in notices(text, apis)
    ]

    assert found[0] == ("lib.old", "3.4", "4.0", "newer()")
    assert found[1:] == [("lib.third", None, "5", None)]
