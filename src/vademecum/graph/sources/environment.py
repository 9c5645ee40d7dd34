"""The environment of a project: its interpreter and the packages installed for it.

Nothing of it is imported or run: folders and metadata are read.
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import cast

from packaging.utils import canonicalize_name

from vademecum.errors import BadInput

_VENVS = (".venv", "venv", "env", ".env")
_CODE = (".py", ".pyi", ".so", ".pyd")
_NOT_CODE = re.compile(r"(^|/)(\.\.|__pycache__|[^/]+\.(dist-info|egg-info|data))(/|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One installed distribution, as its metadata describes it."""

    name: str
    """Normalised: `typing-extensions`."""
    version: str
    summary: str
    readme: str
    """Markdown or reStructuredText, as the package has it; may be ''."""
    urls: dict[str, str] = field(default_factory=dict)
    record: str = ""
    """A digest of the list of its files; '' of one that has none, or that may change in place."""
    modules: tuple[str, ...] = ()
    """What it lets one import: top-level names, or deeper ones of namespace packages."""


@dataclass(frozen=True)
class Environment:
    """Where a project's packages are."""

    root: Path
    """The virtual environment, or the prefix of an interpreter."""
    python: str
    """`3.12`, or `3.12.4` where that is known."""
    folders: tuple[Path, ...]
    """Searched in this order for packages."""
    stdlib: Path | None

    @cached_property
    def installed(self) -> dict[str, Installed]:
        """All distributions, by normalised name; the first of a name counts, as in imports."""
        found: dict[str, Installed] = {}
        for one in metadata.distributions(path=[str(folder) for folder in self.folders]):
            described = _describe(one)
            if described is not None:
                found.setdefault(described.name, described)
        return found

    @cached_property
    def owners(self) -> dict[str, Installed]:
        """By importable name, the distribution it is of."""
        return {module: one for one in self.installed.values() for module in one.modules}

    def owner(self, path: str) -> Installed | None:
        """The distribution that a dotted path is of."""
        parts = path.split(".")
        for length in range(min(len(parts), 4), 0, -1):
            if one := self.owners.get(".".join(parts[:length])):
                return one
        return None

    def package_of(self, path: str) -> Installed | None:
        """As `owner`, without reading all distributions where the name tells which it is."""
        top = path.partition(".")[0]
        if not any(any(folder.glob(f"{top}*")) for folder in self.folders):
            return None
        for one in metadata.distributions(name=top, path=[str(f) for f in self.folders]):
            described = _describe(one)
            if described is not None and top in (m.partition(".")[0] for m in described.modules):
                return described
        return self.owner(path)

    def is_stdlib(self, path: str) -> bool:
        top = path.partition(".")[0]
        return top in sys.stdlib_module_names and self.stdlib is not None


def find(project: Path, interpreter: Path | None = None) -> Environment:
    """The environment of a project, or that of a named interpreter or environment folder.

    Raises BadInput where there is none.
    """
    if interpreter is not None:
        found = _of_interpreter(interpreter)
        if found is None:
            raise BadInput(
                f"{interpreter} is no Python interpreter or environment",
                hint="Name its folder (the one with pyvenv.cfg) or its bin/python.",
            )
        return found
    for folder in _upwards(project.resolve()):
        for name in _VENVS:
            if (folder / name / "pyvenv.cfg").is_file():
                found = _of_folder(folder / name)
                if found is not None:
                    return found
    raise BadInput(
        f"no virtual environment was found for {project}",
        hint="Make one in .venv, or name an interpreter with --python PATH.",
    )


def _upwards(folder: Path) -> Iterator[Path]:
    """The folder and those above it, up to the root of its repository."""
    for one in (folder, *folder.parents):
        yield one
        if (one / ".git").exists() or one == Path.home():
            return


def _of_interpreter(path: Path) -> Environment | None:
    if path.is_dir():
        return _of_folder(path)
    if not path.is_file():
        return None
    prefix = path.parent.parent
    if (prefix / "pyvenv.cfg").is_file():
        return _of_folder(prefix)
    return _of_folder(path.resolve().parent.parent, path.resolve().name.removeprefix("python"))


def _of_folder(root: Path, version: str = "") -> Environment | None:
    config = _read_config(root / "pyvenv.cfg")
    libraries = [*sorted(root.glob("lib*/python3*")), root / "Lib"]
    if re.fullmatch(r"3\.\d+", version):
        libraries = [one for one in libraries if one.name in (f"python{version}", "Lib")]
    folders: list[Path] = []
    for library in libraries:
        for name in ("site-packages", "dist-packages"):
            if (library / name).is_dir():
                folders.append((library / name).resolve())
    if not folders:
        return None
    folders = list(dict.fromkeys(folders))
    named = next((one.name.removeprefix("python") for one in libraries if one.is_dir()), "")
    python = config.get("version_info") or config.get("version") or named
    python = ".".join(python.split(".")[:3])
    home = Path(config["home"]).parent if "home" in config else root
    return Environment(
        root=root,
        python=python,
        folders=(*folders, *_from_pth(folders)),
        stdlib=stdlib_of(home, ".".join(python.split(".")[:2])),
    )


def _read_config(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _from_pth(folders: list[Path]) -> list[Path]:
    """Folders that `.pth` files add, as editable installs do; their code lines are not run."""
    found = []
    for folder in folders:
        for file in sorted(folder.glob("*.pth")):
            try:
                lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                continue
            for line in lines:
                added = folder / line.strip()
                if (
                    line.strip()
                    and not line.startswith(("#", "import ", "import\t"))
                    and added.is_dir()
                ):
                    found.append(added.resolve())
    return found


def stdlib_of(prefix: Path, version: str) -> Path | None:
    """The standard library under a prefix, where it is."""
    for folder in (prefix / "lib" / f"python{version}", prefix / "Lib"):
        if (folder / "os.py").is_file():
            return folder
    return None


def _describe(one: metadata.Distribution) -> Installed | None:
    try:
        described = cast(Message, one.metadata)
        name = described["Name"]
    except (OSError, UnicodeDecodeError, KeyError):
        return None
    if not name:
        return None
    payload = described.get_payload()
    readme = str(described.get("Description") or (payload if isinstance(payload, str) else ""))
    urls = {}
    for entry in described.get_all("Project-URL") or []:
        label, _, url = str(entry).partition(",")
        urls[label.strip()] = url.strip()
    if home := described.get("Home-page"):
        urls.setdefault("Homepage", str(home))
    return Installed(
        name=canonicalize_name(name),
        version=str(described["Version"] or ""),
        summary=str(described.get("Summary") or ""),
        readme=readme.strip(),
        urls=urls,
        record=_record(one),
        modules=_modules(one),
    )


def _record(one: metadata.Distribution) -> str:
    text = one.read_text("RECORD") or ""
    if not text or "direct_url.json" in text:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _modules(one: metadata.Distribution) -> tuple[str, ...]:
    """The packages and modules that the recorded files make importable."""
    files = [os.fspath(file) for file in one.files or ()]
    code = [f for f in files if f.endswith(_CODE) and not _NOT_CODE.search(f)]
    packages = {f.rpartition("/")[0] for f in code if f.rpartition("/")[2].startswith("__init__.")}
    found = set()
    for file in code:
        parts = file.split("/")
        folders = ["/".join(parts[:n]) for n in range(1, len(parts))]
        package = next((folder for folder in folders if folder in packages), None)
        if package is not None:
            found.add(package.replace("/", "."))
        elif len(parts) == 1 or len(parts) <= 3:
            found.add(".".join([*parts[:-1], parts[-1].partition(".")[0]]))
    if not found and (listed := one.read_text("top_level.txt")):
        found = set(listed.split())
    return tuple(sorted(name for name in found if all(p.isidentifier() for p in name.split("."))))
