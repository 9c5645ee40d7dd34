"""References by the inventory of a site that Sphinx made, over a real socket."""

import stat
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from conftest import Vade
from graph.sources.host import Host
from vademecum.app import App
from vademecum.errors import UnreadableSource
from vademecum.graph.nodes import APIReference, BestPractice, CodeExample, ExternalDoc
from vademecum.graph.sources.adapter import Subject
from vademecum.graph.sources.inventory import read_inventory

SITE = Path(__file__).parent / "site"
GET = Subject(kind="api", name="shoplib.Client.get", language="python")


@pytest.fixture
def site(host: Host) -> Host:
    put_site(host, "/shoplib")
    return host


def put_site(host: Host, at: str) -> None:
    for name, kind in (
        ("objects.inv", "application/octet-stream"),
        ("api.html", "text/html; charset=utf-8"),
        ("index.html", "text/html; charset=utf-8"),
    ):
        host.put(f"{at}/{name}", (SITE / name).read_bytes(), kind)


async def apis(app: App, *names: str) -> dict[str, APIReference]:
    return {api.name: api for api in await app.graph.find(APIReference, names)}


async def test_a_page_gives_all_its_references(app: App, site: Host) -> None:
    report = await app.sources.fetch(GET)
    [document] = report.documents
    found = await apis(app, "shoplib.old", "shoplib.new", "shoplib.Client", "shoplib.Client.get")
    get, old, new = (found[f"shoplib.{name}"] for name in ("Client.get", "old", "new"))
    [told] = await app.context.find_api("shoplib.Client.get")

    assert (document.change, document.how, document.source) == ("new", "fetched", "library_docs")
    assert document.source_url == f"{site.url}/shoplib/api.html"
    assert document.apis == [
        "shoplib.Client",
        "shoplib.Client.get",
        "shoplib.Client.size",
        "shoplib.new",
        "shoplib.old",
    ]
    assert (get.namespace, get.function_name, get.version) == ("shoplib", "Client.get", "2.1")
    assert get.signature == "async get(path: str = '/', /, *more, timeout: float = 5.0) → bytes"
    assert [(one["name"], one["kind"]) for one in get.parameters] == [
        ("path", "positional-only"),
        ("more", "variadic positional"),
        ("timeout", "keyword-only"),
    ]
    assert get.parameters[2] | {"annotation": "float", "default": "5.0"} == get.parameters[2]
    assert get.return_type == "bytes"
    assert "client.get" in get.example_code
    assert (old.version_introduced, old.deprecated_in) == ("0.9", "2.0")
    assert old.deprecation == "Deprecated since version 2.0: Use new() instead."
    assert new.signature.splitlines() == [
        "shoplib.new(value, *, strict=True)",
        "shoplib.new(value, other)",
    ]
    assert new.gotchas == ("Never pass secrets as values, since they are logged.",)
    assert (told.source, told.version, told.age_days) == ("Library documentation", "shoplib 2.1", 0)
    assert told.url == document.source_url


async def test_what_replaces_an_api_is_known_with_its_evidence(app: App, site: Host) -> None:
    await app.sources.fetch(GET)
    [row] = await app.graph.query("replacements", name="shoplib.old")
    deprecated = await app.graph.query("deprecated_apis", package="shoplib", version="2.1")

    assert (row["replacement"], row["in_version"]) == ("shoplib.new", "2.0")
    assert [each["name"] for each in deprecated] == ["shoplib.old"]
    assert await app.stale.list_stale() == []


async def test_what_was_read_in_a_page_is_stale_where_the_page_says_something_else(
    app: App, site: Host
) -> None:
    report = await app.sources.fetch(GET)
    [doc] = (await app.graph.get([report.documents[0].id])).values()
    assert isinstance(doc, ExternalDoc)
    await app.graph.state("mine", "1", nodes=[replace(doc, content_hash="another")])
    stale = {one.title for one in await app.stale.list_stale()}

    assert "shoplib.old REPLACED_BY shoplib.new" in stale


async def test_examples_and_practices_stand_where_they_were_found(app: App, site: Host) -> None:
    report = await app.sources.fetch(GET)
    document = report.documents[0]
    rows = await app.graph.relations([document.id], kinds=["DOCUMENTED_IN"], outgoing=False)
    nodes = await app.graph.get([row.start_id for row in rows])
    evidence = {
        nodes[row.start_id].name: row.properties.get("evidence")
        for row in rows
        if isinstance(nodes[row.start_id], BestPractice)
    }
    example = next(
        node
        for node in nodes.values()
        if isinstance(node, CodeExample) and "client.get" in node.code
    )
    shown = await app.graph.relations([example.id], kinds=["DEMONSTRATES"])
    shows = {node.name for node in (await app.graph.get([row.end_id for row in shown])).values()}
    held = await app.graph.query("framework_practices", package="shoplib", version="2.1")

    assert set(evidence) == {
        "Always close a client when the work is done, or use it in a with block.",
        "Warning: Never pass secrets as values, since they are logged.",
    }
    assert "**Warning:** Never pass secrets as values, since they are logged." in evidence.values()
    assert {row["domain"] for row in held} == {"general", "security"}
    assert example.works_with_version == "shoplib 2.1"
    assert {"shoplib.Client", "shoplib.Client.get"} <= shows


async def test_what_is_fresh_is_not_asked_for_and_what_is_old_conditionally(
    app: App, site: Host
) -> None:
    await app.sources.fetch(GET)
    first = list(site.asked)
    again = await app.sources.fetch(GET)
    asked_again = site.asked[len(first) :]
    app.sources._now = lambda: again.documents[0].fetched_at + timedelta(days=8)
    later = await app.sources.fetch(GET)

    assert again.documents[0].how == "kept"
    assert again.documents[0].change == "unchanged"
    assert asked_again == []
    assert later.documents[0].how == "fetched"
    assert site.conditional == ["/shoplib/objects.inv", "/shoplib/api.html"]
    assert later.documents[0].fetched_at > again.documents[0].fetched_at


async def test_while_nobody_answers_what_is_old_is_used_and_said_to_be(
    app: App, site: Host
) -> None:
    before = await app.sources.fetch(GET)
    app.sources._now = lambda: before.documents[0].fetched_at + timedelta(days=30)
    site.failing = (500, {"content-type": "text/html"}, b"broken")
    after = await app.sources.fetch(GET)
    [document] = after.documents

    assert document.how == "stale"
    assert "it answered 500" in document.reason
    assert document.fetched_at == before.documents[0].fetched_at
    assert "the inventory is an old one" in after.notices[0]


async def test_a_file_that_is_not_what_its_row_says_counts_as_none(app: App, site: Host) -> None:
    await app.sources.fetch(GET)
    for file in (app.settings.home / "external_knowledge" / "replies").glob("*/*"):
        file.write_bytes(b"cut")
    report = await app.sources.fetch(GET)

    assert report.documents[0].how == "fetched"
    assert site.conditional == []


async def test_files_are_their_owners_only(app: App, site: Host) -> None:
    await app.sources.fetch(GET)
    root = app.settings.home / "external_knowledge"
    modes = {
        (path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (root, *root.rglob("*"))
    }

    assert modes == {(True, 0o700), (False, 0o600)}


async def test_a_name_may_be_short_and_a_wrong_one_is_answered_with_names_like_it(
    app: App, site: Host
) -> None:
    short = await app.sources.fetch(
        Subject(kind="api", name="Client.get", language="python", package="shoplib")
    )
    wrong = await app.sources.fetch(Subject(kind="api", name="shoplib.ald", language="python"))

    assert "shoplib.Client.get" in short.documents[0].apis
    assert wrong.documents == []
    assert "its inventory has no shoplib.ald; it lists shoplib.old" in wrong.failed[0].reason


async def test_the_site_is_found_by_the_registry_and_where_its_address_leads(
    app: App, host: Host
) -> None:
    put_site(host, "/docs/en/latest")
    host.pages["/docs/"] = lambda asked: (302, {"location": "/docs/en/latest/index.html"}, b"")
    host.put(
        "/pypi/othershop/json",
        {
            "info": {
                "name": "othershop",
                "version": "2.1",
                "project_urls": {"Documentation": f"{host.url}/docs"},
            },
            "releases": {},
        },
    )
    subject = Subject(kind="api", name="shoplib.new", language="python", package="othershop")
    report = await app.sources.fetch(subject)

    assert report.documents[0].source_url == f"{host.url}/docs/en/latest/api.html"


async def test_python_has_its_own_documentation(app: App, host: Host) -> None:
    inventory = (SITE / "objects.inv").read_bytes().replace(b"Version: 2.1", b"Version: 3.12")
    put_site(host, "/python/3.12")
    body = zlib.compress(b"json.dumps py:function 1 api.html#shoplib.new -\n")
    head = b"\n".join(inventory.split(b"\n")[:4]) + b"\n"
    host.put("/python/3.12/objects.inv", head + body, "application/octet-stream")
    subject = Subject(kind="api", name="json.dumps", language="python", version="3.12.4")
    report = await app.sources.fetch(subject)
    found = (await apis(app, "json.dumps"))["json.dumps"]
    rows = await app.graph.query("language_apis", language="Python", version="3.12")

    assert report.documents[0].source == "python_docs"
    assert (found.package, found.namespace, found.version) == ("python", "json", "3.12")
    assert [row["name"] for row in rows] == ["json.dumps"]


async def test_what_is_read_of_an_installed_package_is_not_written_over(
    app: App, site: Host
) -> None:
    exact = APIReference(
        namespace="shoplib",
        function_name="Client.get",
        ecosystem="pypi",
        package="shoplib",
        version="2.1",
        signature="get(self, path='/')",
    )
    await app.graph.state("environment", "pypi:shoplib@2.1", nodes=[exact])
    await app.sources.fetch(GET)
    found = await apis(app, "shoplib.Client.get", "shoplib.new")

    assert found["shoplib.Client.get"].signature == "get(self, path='/')"
    assert found["shoplib.new"].signature.startswith("shoplib.new(")


async def test_a_refresh_reads_the_page_anew_with_all_that_is_in_it(app: App, site: Host) -> None:
    report = await app.sources.fetch(GET)
    page = (SITE / "api.html").read_text()
    notice = (
        '<p>How large the shop is.</p><div class="deprecated"><p><span class="versionmodified'
        ' deprecated">Deprecated since version 2.1: </span>Use <code>get()</code>.</p></div>'
    )
    site.put("/shoplib/api.html", page.replace("<p>How large the shop is.</p>", notice))
    refreshed = await app.graph.refresh(ids=[report.documents[0].id])
    found = (await apis(app, "shoplib.Client.size"))["shoplib.Client.size"]
    changes = {each.change for each in await app.graph.changes()}
    site.failing = (503, {"retry-after": "7"}, b"")
    failed = await app.graph.refresh(ids=[report.documents[0].id])

    assert (refreshed.updated, refreshed.deprecated, refreshed.failed) == (1, 1, [])
    assert found.deprecated_in == "2.1"
    assert changes == {"content_updated", "deprecated"}
    assert "it answered 503, and asks to wait 7 s" in failed.failed[0][1]
    assert (await apis(app, "shoplib.new"))["shoplib.new"].version == "2.1"


async def test_a_site_that_went_on_to_another_version_supersedes(app: App, site: Host) -> None:
    old = (await app.sources.fetch(GET)).documents[0]
    newer = (SITE / "objects.inv").read_bytes().replace(b"Version: 2.1", b"Version: 2.2")
    site.put("/shoplib/objects.inv", newer, "application/octet-stream")
    await app.graph.refresh(ids=[old.id])
    documents = await app.graph.of_package(ExternalDoc, "pypi", "shoplib")
    new = next(one for one in documents if one.version == "2.2")
    [row] = await app.graph.relations([new.id], kinds=["SUPERSEDES"], incoming=False)

    assert {one.version for one in documents} == {"2.1", "2.2"}
    assert row.end_id == old.id


async def test_a_context_looks_up_what_its_task_names(app: App, site: Host) -> None:
    task = "call `shoplib.Client.get` in client.py"
    quiet = await app.context.build(task, project="shop")
    asked = list(site.asked)
    loud = await app.context.build(task, project="shop", fetch=True)
    refactoring = await app.context.build("rename `shoplib.x.y`", project="shop", fetch=True)

    assert (quiet.decision.rule, quiet.outside, asked) == ("nothing_new", [], [])
    assert loud.decision.rule == "new_apis"
    assert loud.outside[0].title == "shoplib.Client.get"
    assert refactoring.decision.rule == "refactoring"
    assert "shoplib.x" not in " ".join(refactoring.notices)


async def test_a_context_says_what_could_not_be_looked_up(app: App, host: Host) -> None:
    context = await app.context.build("call `nowhere.get`", project="shop", fetch=True)

    assert context.decision.rule == "nothing_new"
    assert "it answered 404" in context.notices[0]


def test_inventories_that_cannot_be_read() -> None:
    head = b"# Sphinx inventory version 2\n# Project: x\n# Version: 1\n# rest\n"
    first = b"# Sphinx inventory version 1\n# Project: x\n# Version: 1\nx.y function x.html\n"

    assert read_inventory(first, "u").entries["x.y"].location == "x.html#x.y"
    for data, reason in (
        (b"<html>", "no Sphinx inventory"),
        (head[:40], "ends too early"),
        (head + b"no zlib", "is broken"),
        (head + zlib.compress(b"a b:c 1 d -\n" * 90_000)[:50], "ends too early"),
        (head + zlib.compress(b"std doc std:doc -1 x -\n"), "lists no API"),
    ):
        with pytest.raises(UnreadableSource, match=reason):
            read_inventory(data, "u")


def test_the_command_finds_a_reference_and_context_tells_it(
    vade: Vade, house: Path, site: Host, write: Callable[..., Path]
) -> None:
    home = {"VADE_HOME": str(house), "VADE_EMBEDDER": "none"}
    found = vade("fetch", "api", "shoplib.Client.get", **home)
    context = vade("context", "call `shoplib.Client.get` for prices", "-p", "shop", **home)
    wrong = vade("fetch", "api", "shoplib.nothing", "--json", **home)
    nobody = vade("fetch", "api", "x.y", "--from", "pypi", **home)

    assert found.returncode == 0, found.stderr
    assert "shoplib.Client.get  [Library documentation, shoplib 2.1]" in found.stdout
    assert f"{site.url}/shoplib/api.html" in found.stdout
    assert "shoplib.Client.get" in context.stdout
    assert "[Library documentation, shoplib 2.1, read today]" in context.stdout
    assert wrong.returncode == 1
    assert '"failed"' in wrong.stdout
    assert nobody.returncode == 2
    assert "vade fetch sources" in nobody.stderr
