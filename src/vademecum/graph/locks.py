"""The versions that a project has locked."""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """One package at one version, and the file that says so."""

    name: str
    version: str
    ecosystem: str
    file: str
    deprecated: str = ""
    """What the registry says against this version, where the lock repeats it."""


def locked(root: Path) -> tuple[dict[str, Locked], list[str]]:
    """Packages of all lock files in a folder, by `ecosystem:name`, the first file's counting.

    Files that cannot be read are named in the second value.
    """
    found: dict[str, Locked] = {}
    failed = []
    for pattern, read in _READERS.items():
        for path in sorted(root.glob(pattern)):
            try:
                rows = read(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                failed.append(f"{path.name}: {error}")
                continue
            ecosystem = (
                "npm" if path.name in ("package-lock.json", "npm-shrinkwrap.json") else "pypi"
            )
            for name, version, deprecated in rows:
                if ecosystem == "pypi":
                    name = canonicalize_name(name)
                one = Locked(
                    name=name,
                    version=version,
                    ecosystem=ecosystem,
                    file=path.name,
                    deprecated=deprecated,
                )
                found.setdefault(f"{ecosystem}:{name}", one)
    return found, failed


Row = tuple[str, str, str]


def _toml(key: str) -> Callable[[str], list[Row]]:
    def read(text: str) -> list[Row]:
        packages = tomllib.loads(text).get(key, [])
        return [(p["name"], str(p["version"]), "") for p in packages if p.get("version")]

    return read


def _pipfile(text: str) -> list[Row]:
    value = json.loads(text)
    rows = []
    for part in ("default", "develop"):
        for name, entry in value.get(part, {}).items():
            version = str(entry.get("version", ""))
            if version.startswith("=="):
                rows.append((name, version[2:], ""))
    return rows


def _requirements(text: str) -> list[Row]:
    rows = []
    for line in text.replace("\\\n", " ").splitlines():
        stated = re.sub(r"(^|\s)(#.*|--hash=\S+)", " ", line).strip()
        if not stated or stated.startswith("-"):
            continue
        try:
            requirement = Requirement(stated)
        except InvalidRequirement:
            continue
        pins = [one.version for one in requirement.specifier if one.operator in ("==", "===")]
        if len(pins) == 1 and "*" not in pins[0]:
            rows.append((requirement.name, pins[0], ""))
    return rows


def _npm(text: str) -> list[Row]:
    value: dict[str, Any] = json.loads(text)
    rows = []
    for path, entry in value.get("packages", {}).items():
        name = path.rpartition("node_modules/")[2]
        if name and entry.get("version") and path.count("node_modules/") == 1:
            rows.append((name, str(entry["version"]), str(entry.get("deprecated") or "")))
    for name, entry in value.get("dependencies", {}).items() if not rows else ():
        if isinstance(entry, dict) and entry.get("version"):
            rows.append((name, str(entry["version"]), str(entry.get("deprecated") or "")))
    return rows


_READERS: dict[str, Callable[[str], list[Row]]] = {
    "uv.lock": _toml("package"),
    "poetry.lock": _toml("package"),
    "pdm.lock": _toml("package"),
    "pylock*.toml": _toml("packages"),
    "Pipfile.lock": _pipfile,
    "requirements*.txt": _requirements,
    "requirements/*.txt": _requirements,
    "package-lock.json": _npm,
    "npm-shrinkwrap.json": _npm,
}
