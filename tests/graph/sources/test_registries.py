"""Packages by registries: over a real socket in the registries' formats, and the real ones."""

import base64
import gzip
import hashlib
import io
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest

from conftest import Vade
from graph.environments import install, project
from graph.sources.host import Host
from vademecum.app import App
from vademecum.errors import UnreadableSource
from vademecum.graph.nodes import APIReference, CodeExample, ExternalDoc, Framework
from vademecum.graph.sources import archive
from vademecum.graph.sources.adapter import Subject
from vademecum.graph.sources.archive import read_archive
from vademecum.ingest.read import fetch

REQUESTS = Subject(kind="package", name="Shop_Lib", language="python")
LEFT = Subject(kind="package", name="@shop/left", language="javascript")
CHANGES = "# Changes\n\n## 2.0\n\n- `old()` is deprecated: use `new()`.\n- `gone` was removed.\n"
EXAMPLE = "import shoplib\n\nprint(shoplib.new(1))\n"


def tarball(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as folder:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            folder.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


SDIST = tarball(
    {
        "shop_lib-2.0/README.rst": "Shoplib\n=======\n\nReadme of the archive.\n",
        "shop_lib-2.0/CHANGES.md": CHANGES,
        "shop_lib-2.0/docs/changelog.md": "# All\n\n```{include} ../CHANGES.md\n:end: 1.0\n```\n",
        "shop_lib-2.0/examples/first.py": EXAMPLE,
        "shop_lib-2.0/src/shop/secret.py": "x = 1\n",
    }
)


def file(host: Host, version: str, *, yanked: str | None = None) -> dict[str, object]:
    return {
        "filename": f"shop_lib-{version}.tar.gz",
        "packagetype": "sdist",
        "url": f"{host.url}/files/shop_lib-{version}.tar.gz",
        "digests": {"sha256": hashlib.sha256(SDIST).hexdigest()},
        "upload_time_iso_8601": f"2026-0{version[0]}-01T10:00:00.000000Z",
        "yanked": yanked is not None,
        "yanked_reason": yanked,
    }


def info(version: str, readme: str) -> dict[str, object]:
    return {
        "name": "shop-lib",
        "version": version,
        "summary": "A client for shops.",
        "description": readme,
        "description_content_type": "text/markdown",
        "requires_python": ">=3.9",
        "home_page": "",
        "project_urls": {"Source": "https://git.example/shop"},
    }


@pytest.fixture
def pypi(host: Host) -> Host:
    """As https://docs.pypi.org/api/json/ describes it."""
    releases = {
        "1.9": [file(host, "1.9", yanked="lost\n prices")],
        "1.10": [file(host, "1.10")],
        "2.0": [file(host, "2.0")],
    }
    whole = {"info": info("2.0", "# Shoplib\n\nThe newest readme."), "releases": releases}
    host.put("/pypi/shop-lib/json", whole)
    older = {"info": info("1.9", "# Shoplib\n\nThe older readme."), "urls": releases["1.9"]}
    host.put("/pypi/shop-lib/1.9/json", older)
    for version in releases:
        host.put(f"/files/shop_lib-{version}.tar.gz", SDIST, "application/octet-stream")
    return host


async def frameworks(app: App, name: str) -> dict[str, str]:
    return {one.version: one.withdrawn for one in await app.graph.find(Framework, [name])}


async def test_a_package_of_pypi(app: App, pypi: Host) -> None:
    pypi.gzip = True
    report = await app.sources.fetch(REQUESTS)
    [main, changes] = report.documents
    text = app.graph.content.read(main.id) or ""
    examples = await app.graph.find(CodeExample, ["shop-lib: examples/first.py"])

    assert report.failed == report.notices == []
    assert (main.title, main.version, main.source) == ("shop-lib 2.0", "2.0", "pypi")
    assert "The newest readme." in text
    assert "- Yanked versions: 1.9 (lost prices)" in text
    assert "- Versions: 2.0, 1.10, 1.9" in text
    assert "- Needs: Python >=3.9" in text
    assert "- Source: https://git.example/shop" in text
    assert changes.title == "shop-lib 2.0 CHANGES.md"
    assert "`old()` is deprecated" in (app.graph.content.read(changes.id) or "")
    assert [one.code for one in examples] == [EXAMPLE.strip()]
    assert await frameworks(app, "shop-lib") == {"1.9": "Yanked: lost prices", "2.0": ""}


async def test_a_yanked_version_says_so_first(app: App, pypi: Host) -> None:
    subject = Subject(kind="package", name="shop-lib", language="python", version="1.9")
    report = await app.sources.fetch(subject)
    documents = await app.graph.get([report.documents[0].id])
    [document] = [one for one in documents.values() if isinstance(one, ExternalDoc)]

    assert document.summary.startswith("Yanked: lost prices. The newest version is 2.0.")
    assert "The older readme." in (app.graph.content.read(document.id) or "")


async def test_a_newer_version_supersedes_the_older_one(app: App, pypi: Host) -> None:
    old = Subject(kind="package", name="shop-lib", language="python", version="1.9")
    before = (await app.sources.fetch(old)).documents[0]
    after = (await app.sources.fetch(REQUESTS)).documents[0]
    [row] = await app.graph.relations([after.id], kinds=["SUPERSEDES"], incoming=False)

    assert row.end_id == before.id


async def test_an_index_without_the_json_api_and_an_archive_with_the_readme(
    app: App, host: Host
) -> None:
    """As PEP 691 describes it; mirrors have no more."""
    listed = [
        {
            "filename": f"shop_lib-{version}.tar.gz",
            "url": f"{host.url}/files/{version}",
            "hashes": {"sha256": hashlib.sha256(SDIST).hexdigest()},
            "yanked": yanked,
            "requires-python": ">=3.9",
        }
        for version, yanked in (("1.0", False), ("2.0", False), ("2.1", "broken"))
    ]
    host.put("/simple/shop-lib/", b"", "")
    data = {"meta": {"api-version": "1.1"}, "name": "shop-lib", "files": listed}
    host.put("/simple/shop-lib/", data)
    kind = "application/vnd.pypi.simple.v1+json"
    host.pages["/simple/shop-lib/"] = (kind, host.pages["/simple/shop-lib/"][1])  # type: ignore[index]
    host.put("/files/2.0", SDIST, "application/x-gzip")
    report = await app.sources.fetch(REQUESTS)
    text = app.graph.content.read(report.documents[0].id) or ""

    assert report.documents[0].version == "2.0"
    assert "Readme of the archive." in text
    assert "- Yanked versions: 2.1 (broken)" in text


async def test_an_archive_that_is_not_the_listed_one_is_not_read(app: App, pypi: Host) -> None:
    other = tarball({"x/CHANGES.md": "forged"})
    pypi.put("/files/shop_lib-2.0.tar.gz", other, "application/octet-stream")
    report = await app.sources.fetch(REQUESTS)

    assert [one.title for one in report.documents] == ["shop-lib 2.0"]
    assert "it is not the file that the registry lists" in report.notices[0]


async def test_what_a_registry_does_not_list(app: App, pypi: Host) -> None:
    unknown = await app.sources.fetch(
        Subject(kind="package", name="shop-lib", language="python", version="9")
    )
    nothing = await app.sources.fetch(Subject(kind="package", name="no", language="python"))
    wrong = await app.sources.fetch(Subject(kind="package", name="../x", language="python"))

    assert "it lists no version 9 (the newest are 2.0, 1.10, 1.9)" in unknown.failed[0].reason
    assert "it answered 404" in nothing.failed[0].reason
    assert wrong.failed[0].reason == "../x: it is no name of a package"


async def test_a_package_of_npm(app: App, host: Host) -> None:
    data = tarball({"package/CHANGELOG.md": CHANGES, "package/index.js": "x"})
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    dist = {"tarball": f"{host.url}/left-2.0.0.tgz", "integrity": f"sha512-{digest}"}
    host.put("/left-2.0.0.tgz", data, "application/octet-stream")
    host.put(
        "/npm/@shop%2Fleft",
        {
            "name": "@shop/left",
            "dist-tags": {"latest": "2.0.0", "next": "3.0.0-rc.1"},
            "versions": {
                "1.10.0": {"deprecated": "It loses prices. Use 2."},
                "1.9.0": {},
                "2.0.0": {
                    "description": "Pads.",
                    "dist": dist,
                    "engines": {"node": ">=18"},
                    "repository": {"type": "git", "url": "git+https://git.example/left.git"},
                },
                "3.0.0-rc.1": {},
            },
            "time": {"2.0.0": "2026-01-01T00:00:00.000Z"},
            "readme": "# left\n\nPads on the left.",
        },
    )
    report = await app.sources.fetch(LEFT)
    [main, changes] = report.documents
    text = app.graph.content.read(main.id) or ""

    assert (main.title, main.source) == ("@shop/left 2.0.0", "npm")
    assert "- Released: 2026-01-01" in text
    assert "- Deprecated versions: 1.10.0 (It loses prices. Use 2.)" in text
    assert "- Versions: 3.0.0-rc.1, 2.0.0, 1.10.0, 1.9.0" in text
    assert "Pads on the left." in text
    assert changes.title == "@shop/left 2.0.0 CHANGELOG.md"
    assert (await frameworks(app, "@shop/left"))["1.10.0"].startswith("Deprecated: It loses")


async def test_a_refresh_asks_the_registry_and_not_the_page(app: App, pypi: Host) -> None:
    main = (await app.sources.fetch(REQUESTS)).documents[0]
    releases = {"2.0": [file(pypi, "2.0", yanked="leaks")]}
    pypi.put("/pypi/shop-lib/json", {"info": info("2.0", "# Shoplib"), "releases": releases})
    report = await app.graph.refresh(ids=[main.id])
    again = await app.graph.refresh(ids=[main.id])

    assert (report.updated, report.failed) == (1, [])
    assert (again.updated, again.unchanged) == (0, 1)
    assert (await frameworks(app, "shop-lib"))["2.0"] == "Yanked: leaks"


@pytest.mark.parametrize(
    ("status", "headers", "reason"),
    [
        (403, {}, "it answered 403"),
        (429, {"retry-after": "120"}, "it answered 429, and asks to wait 120 s"),
        (503, {}, "it answered 503"),
        (500, {}, "it answered 500"),
    ],
)
async def test_failures_of_a_registry_are_told_and_patience_is_kept(
    app: App, pypi: Host, status: int, headers: dict[str, str], reason: str
) -> None:
    pypi.failing = (status, {"content-type": "text/html"} | headers, b"no")
    first = await app.sources.fetch(REQUESTS)
    asked = len(pypi.asked)
    second = await app.sources.fetch(REQUESTS)

    assert reason in first.failed[0].reason
    if status in (429, 503):
        assert len(pypi.asked) == asked, "a host that asks to be left alone is left alone"
        assert "its server asked to be left alone" in second.failed[0].reason


async def test_private_addresses_are_refused(app: App, pypi: Host) -> None:
    (app.settings.home / "cache.toml").unlink()
    app.cache.state.__dict__.pop("rules", None)
    report = await app.sources.fetch(REQUESTS)

    assert "in a private network (127.0.0.1), which only a rule of" in report.failed[0].reason
    assert pypi.asked == []


async def test_replies_that_are_old_are_removed_by_the_maintenance(app: App, pypi: Host) -> None:
    report = await app.sources.fetch(REQUESTS)
    folder = app.settings.home / "external_knowledge" / "replies"
    before = len(list(folder.glob("*/*")))
    app.sources._now = lambda: report.documents[0].fetched_at + timedelta(days=91)
    gone = await app.sources.clean()

    assert before == gone == 1  # the archive is not kept
    assert list(folder.glob("*/*")) == []


def test_archives_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b"", b"no archive", SDIST[:200], b"PK\x03\x04"):
        with pytest.raises(UnreadableSource, match="the archive is broken"):
            read_archive(data, "u")
    monkeypatch.setattr(archive, "UNPACKED", 10_000)
    with pytest.raises(UnreadableSource, match="holds more than"):
        read_archive(gzip.compress(tarfile_of_zeros()), "u")


def tarfile_of_zeros() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as folder:
        member = tarfile.TarInfo("x/large.bin")
        member.size = 1_000_000
        folder.addfile(member, io.BytesIO(bytes(1_000_000)))
    return data.getvalue()


@pytest.mark.parametrize(
    ("subject", "address", "title", "changelog"),
    [
        (
            Subject(kind="package", name="requests", language="python", version="2.32.0"),
            "https://pypi.org/simple/requests/",
            "requests 2.32.0",
            "HISTORY.md",
        ),
        (
            Subject(kind="package", name="request", language="javascript", version="2.88.2"),
            "https://registry.npmjs.org/request",
            "request 2.88.2",
            "CHANGELOG.md",
        ),
    ],
)
async def test_the_real_registry(
    app: App, subject: Subject, address: str, title: str, changelog: str
) -> None:
    try:
        await fetch(address, max_bytes=50_000_000, allow_private=True, timeout=20.0)
    except UnreadableSource as error:
        if "it is not a document" not in error.reason:
            pytest.skip(f"the registry is not reachable: {error}")
    path: Path = app.settings.home / "sources.toml"
    path.write_text("")
    report = await app.sources.fetch(subject)

    assert report.failed == []
    assert [one.title for one in report.documents] == [title, f"{title} {changelog}"]
    if subject.language == "python":
        assert (await frameworks(app, "requests"))["2.32.0"].startswith("Yanked: Yanked due to")


async def test_a_changelog_marks_what_is_known_of_its_package(app: App, pypi: Host) -> None:
    def api(name: str, version: str) -> APIReference:
        return APIReference(
            namespace="shoplib",
            function_name=name,
            ecosystem="pypi",
            package="shop-lib",
            version=version,
        )

    top = APIReference(function_name="shoplib", ecosystem="pypi", package="shop-lib")
    known = [top, api("old", "1.9"), api("new", "1.9"), api("Client.old", "1.9"), api("old", "2.0")]
    await app.graph.state("test", "1", nodes=known)
    first = await app.sources.fetch(REQUESTS)
    again = await app.sources.fetch(REQUESTS)
    found = {
        (one.function_name, one.version): one
        for one in await app.graph.of_package(APIReference, "pypi", "shop-lib")
    }
    rows = await app.graph.query("deprecated_apis", package="shop-lib", version="2.0")
    relations = await app.graph.relations([known[1].id], incoming=False)

    assert [one.deprecated for one in first.documents] == [0, 2]
    assert [one.deprecated for one in again.documents] == [0, 0]
    assert found["old", "1.9"].deprecated_in == found["old", "2.0"].deprecated_in == "2.0"
    assert found["old", "1.9"].deprecation == "`old()` is deprecated: use `new()`."
    assert found["new", "1.9"].deprecation == found["Client.old", "1.9"].deprecation == ""
    assert [(row["name"], row["replacement"]) for row in rows] == [("shoplib.old", "shoplib.new")]
    assert {one.kind: one.properties["evidence"] for one in relations} == {
        "DOCUMENTED_IN": "`old()` is deprecated: use `new()`.",
        "REPLACED_BY": "`old()` is deprecated: use `new()`.",
    }


async def test_a_changelog_is_looked_at_again_in_its_archive(app: App, pypi: Host) -> None:
    changes = (await app.sources.fetch(REQUESTS)).documents[1]
    report = await app.graph.refresh(ids=[changes.id])

    assert (report.unchanged, report.updated, report.failed) == (1, 0, [])


async def test_a_mirror_may_say_where_an_archive_is_beside_its_list(app: App, pypi: Host) -> None:
    listed = file(pypi, "2.0") | {"url": "../../files/shop_lib-2.0.tar.gz"}
    whole = {"info": info("2.0", "# Shoplib"), "releases": {"2.0": [listed]}}
    pypi.put("/pypi/shop-lib/json", whole)
    report = await app.sources.fetch(REQUESTS)

    assert report.notices == []
    assert [one.title for one in report.documents][1:] == ["shop-lib 2.0 CHANGES.md"]


async def test_radar_and_link_know_fetched_changelogs(
    app: App, pypi: Host, tmp_path: Path, vade: Vade
) -> None:
    root = project(
        tmp_path / "code",
        {"app.py": "import shoplib\nshoplib.old()\nshoplib.new()\nshoplib.gone()\n"},
    )
    library = {"shoplib/__init__.py": "def old():\n    pass\n\ndef new():\n    pass\n"}
    install(root / ".venv", "shop-lib", "2.0", library)
    before = await app.code.radar(root)
    report = await app.sources.fetch(REQUESTS)
    after = await app.code.radar(root)
    command = vade("radar", root, VADE_HOME=str(app.settings.home))
    await app.code.link(root, project="shop")
    [old] = await app.graph.find(APIReference, ["shoplib.old"])

    assert [(one.rule, one.line) for one in before.findings] == [("removed", 4)]
    found = [(one.rule, one.line, one.since, one.replacement) for one in after.findings]
    assert found == [("deprecated", 2, "2.0", "new()"), ("removed", 4, None, None)]
    assert after.findings[0].sentence == "`old()` is deprecated: use `new()`."
    assert after.findings[0].evidence == report.documents[1].source_url
    assert after.findings[1].sentence == "`gone` was removed."
    assert command.returncode == 1
    assert "`gone` was removed." in command.stdout
    assert (old.deprecated_in, old.deprecation) == ("2.0", after.findings[0].sentence)
