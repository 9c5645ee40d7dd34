"""Radar on environments that are made here: what is found, and what is not."""

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from graph.environments import install, project
from vademecum.graph.radar import Finding
from vademecum.graph.sarif import sarif
from vademecum.graph.watch import RadarReport, radar

LIBRARY = {
    "lib/__init__.py": '''
        """A library."""
        from lib._core import Client, connect, old
        from lib import extra

        __all__ = ["Client", "connect", "old"]
        ''',
    "lib/_core.py": '''
        import warnings
        from typing_extensions import Self, deprecated

        class Base:
            def close(self) -> None:
                """Close it.

                .. deprecated:: 1.5
                   Use :meth:`stop` instead. Will be removed in 3.0.
                """

            def __enter__(self) -> Self: ...

        class Client(Base):
            def __init__(self, url: str, *, retries: int | None = None) -> None:
                if retries is not None:
                    warnings.warn("retries is deprecated, use `tries`", DeprecationWarning)

            def get(self) -> "Answer": ...

        class Answer:
            @deprecated("Use `text` instead.")
            def body(self) -> str: ...

            @property
            def client(self) -> Client: ...

        def connect(url: str) -> Client: ...

        def old() -> None:
            warnings.warn(
                "old() was deprecated in 1.2 and will be removed in 2.0", DeprecationWarning
            )
        ''',
    "lib/extra.py": """
        def __getattr__(name):
            return globals()["x" + name]
        """,
}


@pytest.fixture
def scan(tmp_path: Path) -> Callable[[dict[str, str]], RadarReport]:
    install(tmp_path / "p" / ".venv", "lib", "2.1", LIBRARY)

    def scan(files: dict[str, str]) -> RadarReport:
        return radar(project(tmp_path / "p", files), home=tmp_path / "home")

    return scan


def places(findings: list[Finding]) -> list[tuple[int, str, str]]:
    return [(one.line, one.rule, one.parameter or one.api) for one in findings]


def test_uses_are_followed_to_what_they_mean(scan: Callable[[dict[str, str]], RadarReport]) -> None:
    report = scan(
        {
            "main.py": """\
            import lib as l
            from lib import connect, old as ancient

            client = connect("u")
            client.close()
            client.get().body()
            client.get().client.close()
            with l.Client("u", retries=3) as c:
                c.close()
            ancient()

            class Mine(l.Client):
                def end(self):
                    self.close()
                    super().close()

            def f(one: "l.Client | None"):
                one.close()
            """
        }
    )
    assert places(report.findings) == [
        (2, "deprecated", "lib.old"),
        (5, "deprecated", "lib._core.Base.close"),
        (6, "deprecated", "lib._core.Answer.body"),
        (7, "deprecated", "lib._core.Base.close"),
        (8, "parameter", "retries"),
        (9, "deprecated", "lib._core.Base.close"),
        (10, "deprecated", "lib.old"),
        (14, "deprecated", "lib._core.Base.close"),
        (15, "deprecated", "lib._core.Base.close"),
        (18, "deprecated", "lib._core.Base.close"),
    ]
    close = report.findings[1]
    assert (close.since, close.until, close.replacement) == ("1.5", "3.0", "stop")
    assert close.sentence.startswith(".. deprecated:: 1.5 Use :meth:`stop` instead.")
    assert close.evidence.startswith("lib/_core.py:")
    assert [one.overdue for one in report.findings if one.api == "lib.old"] == [True, True]


def test_across_files_of_the_project(scan: Callable[[dict[str, str]], RadarReport]) -> None:
    report = scan(
        {
            "src/app/__init__.py": "",
            "src/app/db.py": """\
            import lib
            from contextlib import contextmanager

            client = lib.connect("u")

            def make() -> lib.Client:
                return client

            @contextmanager
            def opened():
                yield lib.Client("u")
            """,
            "src/app/views.py": """\
            from .db import client, make, opened

            client.close()
            make().close()
            with opened() as one:
                one.close()
            """,
        }
    )
    assert [(one.file, one.line) for one in report.findings] == [
        ("src/app/views.py", 3),
        ("src/app/views.py", 4),
        ("src/app/views.py", 6),
    ]


def test_names_that_are_gone(scan: Callable[[dict[str, str]], RadarReport]) -> None:
    report = scan(
        {
            "main.py": """\
            from lib import gone
            from lib.extra import anything
            import lib

            lib.never
            lib.Client("u").vanished()
            lib.connect("u").subclass_may_have_it()
            try:
                from lib import renamed
            except ImportError:
                renamed = None
            if lib.__version__ > "2":
                lib.newer()
            """
        }
    )
    assert [(one.line, one.api, one.guarded) for one in report.findings] == [
        (1, "lib.gone", False),
        (5, "lib.never", False),
        (6, "lib.Client.vanished", False),
        (9, "lib.renamed", True),
        (13, "lib.newer", True),
    ]
    assert {one.rule for one in report.findings} == {"removed"}


def test_arguments_that_are_gone(tmp_path: Path) -> None:
    library = """
        import functools
        from abc import ABC
        from other import Unknown, wraps_it

        class Base:
            def __init__(self, url: str) -> None: ...

        class Client(Base, ABC):
            def __init__(self, url: str, *, cls: type | None = None) -> None: ...
            def get(self, path: str) -> None: ...

        class Inherits(Client): ...

        class Keeps(Base):
            def __init__(self, **more: str) -> None: ...

        class Below(Unknown):
            def __init__(self, url: str) -> None: ...

        class Made(Base):
            def __new__(cls, *args, **more): ...
            def __init__(self, url: str) -> None: ...

        class Meta(type):
            def __call__(cls, *args, **more): ...

        class Called(metaclass=Meta):
            def __init__(self, url: str) -> None: ...

        @functools.lru_cache
        def cached(url: str) -> None: ...

        @wraps_it
        def wrapped(url: str) -> None: ...

        if Unknown:
            def either(url: str, app: str) -> None: ...
        else:
            def either(url: str) -> None: ...
        """
    install(tmp_path / ".venv", "lib", "2.0", {"lib/__init__.py": library})
    root = project(
        tmp_path,
        {
            "a.py": """\
            import lib
            lib.Client("u", app=1)
            lib.Client(url="u", cls=None)
            lib.cached(url="u", app=1)
            lib.Client("u").get("p", app=1)
            lib.Client("u", **{"app": 1})
            lib.Inherits("u", app=1)
            lib.Keeps(app=1)
            lib.Below("u", app=1)
            lib.Made("u", app=1)
            lib.Called("u", app=1)
            lib.wrapped("u", app=1)
            lib.either("u", app=1)
            try:
                lib.Client("u", app=1)
            except TypeError:
                pass
            """
        },
    )
    report = radar(root, home=None)

    assert [(one.line, one.rule, one.parameter, one.guarded) for one in report.findings] == [
        (2, "removed", "app", False),
        (4, "removed", "app", False),
        (15, "removed", "app", True),
    ]
    assert report.findings[0].sentence == "lib.Client of lib 2.0 takes no argument 'app'"
    assert report.findings[0].evidence == "lib/__init__.py:9"


def test_what_is_not_a_use(scan: Callable[[dict[str, str]], RadarReport]) -> None:
    report = scan(
        {
            "main.py": """\
            from lib import Client, connect

            def old(): ...

            def f(connect):
                connect("u").close()

            old()
            client = connect("u")
            client = 3
            client.close()
            kept = Client("u").get
            print(kept, kept.__name__)
            Client("u")
            """
        }
    )
    assert report.findings == []


def test_a_lock_that_differs_and_a_package_that_is_missing_are_told(
    scan: Callable[[dict[str, str]], RadarReport],
) -> None:
    report = scan({"main.py": "import lib, elsewhere\n", "requirements.txt": "lib==1.9\n"})
    assert report.notices == [
        "lib: requirements.txt has 1.9, installed is 2.1, which was looked at;"
        " --fetch looks at the locked one",
        "not installed, not looked at: elsewhere",
    ]


def test_a_folder_means_the_same_however_it_is_named(
    scan: Callable[[dict[str, str]], RadarReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"tests/a.py": "from .helpers import one\nimport lib\n\nlib.old()\n"}
    whole = scan({**files, "more/serving.py": "one = 1\n", "main.py": "from serving import one\n"})
    monkeypatch.chdir(tmp_path / "p")
    here = radar(Path(), home=tmp_path / "home")
    assert here.findings == whole.findings
    # What a relative import or a name of the project's own lacks is no package to be installed.
    assert here.notices == whole.notices == []


def test_nothing_of_a_library_runs(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    install(
        tmp_path / "p" / ".venv",
        "lib",
        "1",
        {"lib/__init__.py": f"open({str(trap)!r}, 'w')\ndef f(): ...\n"},
    )
    (tmp_path / "p" / ".venv" / "lib" / "python3.11" / "site-packages" / "x.pth").write_text(
        f"import os; open({str(trap)!r}, 'w')\n"
    )
    radar(project(tmp_path / "p", {"main.py": "import lib\nlib.f()\n"}), home=None)
    assert not trap.exists()


def test_sarif_has_its_places(scan: Callable[[dict[str, str]], RadarReport]) -> None:
    report = scan({"a b.py": "import lib\nlib.old()\nlib.gone\n"})
    log = sarif(report.findings, root_uri="file:///p/")
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("deprecated", "warning"),
        ("removed", "error"),
    ]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "a%20b.py", "uriBaseId": "PROJECT"}
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


def test_sarif_is_valid(scan: Callable[[dict[str, str]], RadarReport]) -> None:
    # The schema of OASIS, as the npm package @microsoft/jest-sarif has it, without descriptions.
    schema = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text())
    log = sarif(scan({"a.py": "import lib\nlib.old()\n"}).findings, root_uri="file:///p/")
    kind = jsonschema.validators.validator_for(schema)
    assert list(kind(schema, format_checker=kind.FORMAT_CHECKER).iter_errors(log)) == []
    log["runs"][0]["results"][0]["level"] = "grave"
    assert len(list(kind(schema).iter_errors(log))) == 1


def test_the_command(
    tmp_path: Path, vade: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    root = project(tmp_path / "p", {"main.py": "import lib\nlib.old()\n"})
    missing = vade("radar", root)
    assert missing.returncode == 2
    assert "--python" in missing.stderr
    install(root / ".venv", "lib", "2.1", LIBRARY)
    found = vade("radar", root, "--json", "--sarif", tmp_path / "out.sarif")
    assert found.returncode == 1
    (finding,) = json.loads(found.stdout)["findings"]
    assert (finding["file"], finding["line"], finding["since"], finding["until"]) == (
        "main.py",
        2,
        "1.2",
        "2.0",
    )
    assert json.loads((tmp_path / "out.sarif").read_text())["version"] == "2.1.0"
    (root / "again.py").write_text("import lib\nlib.old()\n")
    told = vade("radar", root).stdout
    assert told.count("lib.old()\n") == 2
    assert told.count("will be removed in 2.0") == 1  # once, however many lines it concerns
    assert vade("radar", root, "--fail-on", "removed").returncode == 0
    assert vade("radar", tmp_path / "nowhere").returncode == 2
    assert vade("radar", root, "--sarif", tmp_path / "no" / "folder").returncode == 2


# --- what is locked ---------------------------------------------------------------------------

LOCK = {
    "lockfileVersion": 3,
    "packages": {
        "": {"name": "app"},
        "node_modules/request": {
            "version": "2.88.2",
            "deprecated": "request is no more.",
        },
        "node_modules/@scope/thing": {"version": "1.0.0", "deprecated": "Use @scope/other."},
        "node_modules/fine": {"version": "1.0.0"},
        "node_modules/har-validator": {"version": "5.1.5", "deprecated": "no longer supported"},
    },
}


def test_deprecated_packages_of_npm_are_found_where_they_are_imported(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        {
            "a.js": "const request = require('request');\nimport fine from 'fine';\n",
            "b.ts": "import { x } from '@scope/thing/lib';\nimport own from './request';\n",
            "package-lock.json": json.dumps(LOCK),
        },
    )
    report = radar(root, home=None)  # and there is no Python to have an environment
    assert [(f.file, f.line, f.rule, f.api, f.version, f.sentence) for f in report.findings] == [
        (
            "a.js",
            1,
            "deprecated",
            "request",
            "2.88.2",
            "request is no more.",
        ),
        ("b.ts", 1, "deprecated", "@scope/thing", "1.0.0", "Use @scope/other."),
    ]
    assert report.findings[0].evidence == "package-lock.json"
    assert report.notices == [
        "har-validator 5.1.5 is deprecated, and other packages use it: no longer supported"
    ]
    log = sarif(report.findings, root_uri="file:///x/")
    schema = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text())
    jsonschema.validate(log, schema)


def wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """A built package, as an index has it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    members = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in members) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**members, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)


OLD = {"pylib/__init__.py": "def get(): ...\ndef post(): ...\n"}
NEW = {
    "pylib/__init__.py": "import warnings\n\ndef get():\n"
    "    warnings.warn('get is deprecated since 2.0, use fetch', DeprecationWarning)\n",
}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only index that installers look at."""
    folder = tmp_path / "index"
    for variable in ("UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.setenv(variable, str(folder))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return folder


def test_a_locked_version_that_is_not_installed_is_fetched_and_read(
    tmp_path: Path, index: Path
) -> None:
    wheel(index, "pylib", "2.0", NEW)
    root = project(
        tmp_path / "p",
        {"a.py": "import pylib\n\npylib.get()\npylib.post()\n", "requirements.txt": "pylib==2.0\n"},
    )
    found = radar(root, home=tmp_path / "home", fetch=True)  # there is no environment at all
    assert [(one.line, one.rule, one.version) for one in found.findings] == [
        (3, "deprecated", "2.0"),
        (4, "removed", "2.0"),
    ]
    assert found.notices == []
    # An installed version that is not the locked one is not what will run.
    install(root / ".venv", "pylib", "1.0", OLD)
    before = radar(root, home=tmp_path / "home")
    assert before.findings == []
    assert "--fetch looks at the locked one" in before.notices[0]
    (index / "pylib-2.0-py3-none-any.whl").unlink()  # it is fetched once
    assert radar(root, home=tmp_path / "home", fetch=True).findings == found.findings


def test_what_cannot_be_fetched_is_named(tmp_path: Path, index: Path) -> None:
    index.mkdir()
    files = {"a.py": "import pylib\n", "requirements.txt": "pylib==2.0\n"}
    root = project(tmp_path / "p", files)
    found = radar(root, home=tmp_path / "home", fetch=True)
    assert found.findings == []
    assert found.notices[0].startswith("pylib 2.0 could not be fetched: ")
    assert found.notices[1].startswith("not installed, not looked at: pylib")
    assert list((tmp_path / "home" / "locked").iterdir()) == []


def test_what_only_the_stub_of_a_module_tells_is_known(tmp_path: Path) -> None:
    files = {
        "lib/__init__.py": "from lib import _c\nfrom lib.core import array\n",
        "lib/core.py": "from lib._c import *\narray.__module__ = 'lib'\n",
        "lib/core.pyi": """
            from typing import overload
            from typing_extensions import deprecated

            @overload
            @deprecated("Use `asarray`.")
            def array(x: int) -> int: ...
            @overload
            @deprecated("Use `asarray`.")
            def array(x: str) -> str: ...
            """,
        "lib/_c.so": "",
    }
    install(tmp_path / ".venv", "lib", "1.0", files)
    root = project(tmp_path, {"a.py": "import lib\n\nlib.array(1)\n"})
    found = radar(root, home=None).findings
    assert [(one.line, one.api, one.package) for one in found] == [(3, "lib.array", "lib")]


def test_an_overload_that_is_deprecated_does_not_make_the_others_so(tmp_path: Path) -> None:
    stub = """
        from typing import overload
        from typing_extensions import deprecated

        @overload
        def some(x: int) -> int: ...
        @overload
        @deprecated("Give a number.")
        def some(x: str) -> int: ...

        @overload
        @deprecated("Use `some`.")
        def all_of(x: int) -> int: ...
        @overload
        @deprecated("Use `some`.")
        def all_of(x: str) -> int: ...
        """
    install(tmp_path / ".venv", "lib", "1.0", {"lib/__init__.pyi": stub, "lib/py.typed": ""})
    root = project(tmp_path, {"a.py": "import lib\n\nlib.some(1)\nlib.all_of(1)\n"})
    report = radar(root, home=None)

    assert [(one.line, one.sentence) for one in report.findings] == [(4, "Use `some`.")]
