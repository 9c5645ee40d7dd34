"""Linking: code to APIs and documents, incrementally, in a real database."""

import sys
from pathlib import Path

from graph.environments import install, project
from vademecum.app import App
from vademecum.graph.nodes import APIReference, CodeFile, ExternalDoc, Function

LIBRARY = {
    "lib/__init__.py": '''
        class Client:
            """Talks.

            >>> Client().get("a")
            'b'
            """

            def get(self, name: str, times: int = 1) -> str:
                """Get it.

                .. versionadded:: 1.1
                """

            def old(self) -> None:
                """.. deprecated:: 1.5 Use :meth:`get` instead."""
        ''',
}


def make(root: Path) -> Path:
    install(
        root / ".venv",
        "lib",
        "2.0",
        LIBRARY,
        Summary="A library",
        Project_URL="Documentation, https://lib.example/docs",
        readme="# lib\n\nHow to use it.",
    )
    return project(
        root,
        {
            "a.py": "import lib\n\ndef fetch():\n    return lib.Client().get('x')\n",
            "b.py": "import a\n\na.fetch()\n",
        },
    )


async def test_calls_and_imports_are_tied(app: App, tmp_path: Path) -> None:
    report = await app.code.link(make(tmp_path / "shop"))
    assert (report.project, report.files, report.linked) == ("shop", 2, 2)
    assert (report.calls, report.imports) == (2, 1)
    [get] = await app.graph.find(APIReference, ["lib.Client.get"])
    assert (get.namespace, get.function_name, get.version) == ("lib", "Client.get", "2.0")
    assert get.signature == "get(name: str, times: int = 1) -> str"
    assert get.version_introduced == "1.1"
    assert [one["name"] for one in get.parameters] == ["name", "times"]
    [client] = await app.graph.find(APIReference, ["lib.Client"])
    assert ">>> Client().get" in client.example_code
    [document] = await app.graph.find(ExternalDoc, ["lib 2.0"])
    assert document.source_url == "https://lib.example/docs"
    used = await app.graph.relations([get.id], project="shop", kinds=["USED_IN"])
    assert [(one.properties["line_number"], one.properties["context"]) for one in used] == [
        (4, "return lib.Client().get('x')")
    ]
    [fetch] = await app.graph.find(Function, ["fetch"], project="shop")
    assert used[0].end_id == fetch.id
    explained = await app.graph.relations([document.id], project="shop", kinds=["EXPLAINS"])
    [file] = await app.graph.find(CodeFile, ["a.py"], project="shop")
    assert [one.end_id for one in explained] == [file.id]


async def test_an_api_has_the_name_that_users_import_it_by(app: App, tmp_path: Path) -> None:
    library = {
        "lib/__init__.py": "from lib import _core\nfrom lib._core import make, old\n",
        "lib/_core/__init__.py": "from lib._core import shape\nfrom lib._core.shape import *\n"
        "from lib._core.shape import make, old\n",
        "lib/_core/shape.py": """
            import warnings

            def make(): ...

            def old():
                warnings.warn("Use `l.make` instead.", DeprecationWarning)
            """,
    }
    root = project(tmp_path / "shop", {"a.py": "import lib\n\nlib.make()\nlib.old()\n"})
    install(root / ".venv", "lib", "1.0", library)
    await app.code.link(root)
    uses = await app.graph.query("api_uses", project="shop", name="lib.make")
    [replaced] = await app.graph.query("replacements", name="lib.old")
    assert [row["line_number"] for row in uses] == [3]
    assert replaced["replacement"] == "lib.make"


async def test_documents_of_libraries_are_found_once_linked(app: App, tmp_path: Path) -> None:
    report = await app.code.link(make(tmp_path / "shop"))
    [found] = await app.graph.relevant("How to use lib", limit=1)
    assert report.searchable
    assert found.document.title == "lib 2.0"


async def test_packages_of_one_repository_have_each_its_document(app: App, tmp_path: Path) -> None:
    root = project(tmp_path / "shop", {"a.py": "import one, two\n\none.f()\ntwo.f()\n"})
    for name in ("one", "two"):
        install(
            root / ".venv",
            name,
            "2.0",
            {f"{name}/__init__.py": "def f(): ...\n"},
            Project_URL="Homepage, https://lib.example/",
        )
    await app.code.link(root)
    found = await app.graph.find(ExternalDoc, ["one 2.0", "two 2.0"])
    assert {one.package for one in found} == {"one", "two"}
    assert (await app.graph.analyse()).gaps == []


async def test_the_standard_library_works_with_its_version_of_python(
    app: App, tmp_path: Path
) -> None:
    root = project(tmp_path / "shop", {"a.py": "import json\n\njson.dumps(1)\n"})
    await app.code.link(root, python=Path(sys.executable))
    minor = ".".join(str(part) for part in sys.version_info[:2])
    rows = await app.graph.query("language_apis", language="python", version=minor, limit=1000)
    assert "json.dumps" in [row["name"] for row in rows]


async def test_a_deprecation_and_its_replacement_are_stated(app: App, tmp_path: Path) -> None:
    await app.code.link(make(tmp_path / "shop"))
    [old] = await app.graph.find(APIReference, ["lib.Client.old"])
    [get] = await app.graph.find(APIReference, ["lib.Client.get"])
    assert old.deprecated_in == "1.5"
    assert "Use :meth:`get` instead" in old.deprecation
    [replaced] = await app.graph.relations([old.id], kinds=["REPLACED_BY"])
    assert (replaced.end_id, replaced.properties["in_version"]) == (get.id, "1.5")


async def test_what_did_not_change_is_left_and_what_is_gone_goes(app: App, tmp_path: Path) -> None:
    root = make(tmp_path / "shop")
    await app.code.link(root)
    assert (await app.code.link(root)).unchanged == 2
    # b.py calls what a.py defines: it is looked at again when a definition changes.
    (root / "a.py").write_text("import lib\n\nfetch = lib.Client().get\n")
    assert (await app.code.link(root)).linked == 2
    (root / "b.py").write_text("x = 1\n")
    report = await app.code.link(root)
    assert (report.linked, report.unchanged) == (1, 1)
    (root / "a.py").unlink()
    report = await app.code.link(root)
    assert (report.removed, report.linked) == (1, 0)
    assert await app.graph.find(CodeFile, ["a.py"], project="shop") == []
    [get] = await app.graph.find(APIReference, ["lib.Client.get"])
    assert await app.graph.relations([get.id], project="shop", kinds=["USED_IN"]) == []


async def test_a_new_version_links_anew(app: App, tmp_path: Path) -> None:
    root = make(tmp_path / "shop")
    await app.code.link(root)
    site = root / ".venv" / "lib" / "python3.11" / "site-packages"
    for old in site.glob("lib-2.0.dist-info/*"):
        old.unlink()
    (site / "lib-2.0.dist-info").rmdir()
    install(root / ".venv", "lib", "3.0", LIBRARY)
    assert (await app.code.link(root)).linked == 2
    found = await app.graph.find(APIReference, ["lib.Client.get"])
    assert sorted(one.version for one in found) == ["2.0", "3.0"]
    for one in found:
        used = await app.graph.relations([one.id], project="shop", kinds=["USED_IN"])
        assert len(used) == (1 if one.version == "3.0" else 0)


async def test_projects_do_not_see_each_other(app: App, tmp_path: Path) -> None:
    await app.code.link(make(tmp_path / "shop"))
    await app.code.link(make(tmp_path / "other"))
    [get] = await app.graph.find(APIReference, ["lib.Client.get"])
    assert len(await app.graph.relations([get.id], project="shop", kinds=["USED_IN"])) == 1


async def test_a_part_of_a_repository_is_linked_as_part_of_it(app: App, tmp_path: Path) -> None:
    root = make(tmp_path / "shop")
    (root / ".git").mkdir()
    project(root, {"web/view.py": "import a\n\na.fetch()\n", "web/old.py": "import lib\n"})
    part = await app.code.link(root / "web")
    assert (part.project, part.files, part.linked) == ("shop", 2, 2)
    assert await app.graph.find(CodeFile, ["a.py"], project="shop") == []
    assert len(await app.graph.find(CodeFile, ["web/view.py"], project="shop")) == 1
    whole = await app.code.link(root)
    assert (whole.project, whole.linked, whole.unchanged) == ("shop", 2, 2)
    # What is gone elsewhere is not for the part to say.
    (root / "web" / "old.py").unlink()
    (root / "b.py").unlink()
    part = await app.code.link(root / "web", project="shop")
    assert (part.linked, part.unchanged, part.removed) == (0, 1, 1)
    assert len(await app.graph.find(CodeFile, ["b.py"], project="shop")) == 1


async def test_a_part_of_a_repository_may_be_a_project_of_its_own(app: App, tmp_path: Path) -> None:
    root = make(tmp_path / "shop")
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("vendor/\n")
    project(root, {"tax/rate.py": "import lib\n", "vendor/lib2/x.py": "import lib\n"})
    named = await app.code.link(root / "tax", project="tax")
    left_out = await app.code.link(root / "vendor" / "lib2")
    assert (named.project, left_out.project) == ("tax", "lib2")
    assert len(await app.graph.find(CodeFile, ["rate.py"], project="tax")) == 1
    assert len(await app.graph.find(CodeFile, ["x.py"], project="lib2")) == 1


async def test_text_that_a_database_cannot_hold(app: App, tmp_path: Path) -> None:
    root = make(tmp_path / "shop")
    (root / "a.py").write_text('import lib\nlib.Client().get("\\u0000").strip("\\\\u0000")\n')
    (root / "c.js").write_bytes(b'const x = require("y"); x.call("\x00");\n')
    report = await app.code.link(root)
    assert report.linked == 3
