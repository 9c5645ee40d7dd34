"""The inventory of a Sphinx site: which name is documented where. The format is Sphinx's."""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from vademecum.errors import UnreadableSource

LARGEST = 64 * 2**20
"""Bytes of an inventory when it is unpacked."""
LANGUAGES = {"py": "python", "js": "javascript", "c": "c", "cpp": "c++"}
"""Domains of Sphinx whose objects are APIs, with their language."""
_LINE = re.compile(r"(.+?)\s+(\S+)\s+(-?\d+)\s+?(\S*)\s+(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One documented object."""

    name: str
    domain: str
    role: str
    """`function`, `method`, `class`, `module` …"""
    location: str
    """Relative to the site, with the anchor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    project: str
    version: str
    entries: Mapping[str, Entry]
    """By name; where several objects share one, the first that is an API."""

    def find(self, name: str) -> Entry | None:
        """The entry of a name; or of the only one that ends so, such as `Session.get`."""
        if name in self.entries:
            return self.entries[name]
        ending = [one for known, one in self.entries.items() if known.endswith(f".{name}")]
        return ending[0] if len(ending) == 1 else None

    def like(self, name: str) -> list[str]:
        """Names that are written much alike, or that end alike."""
        last = name.rpartition(".")[2]
        ends = [known for known in self.entries if known.rpartition(".")[2] == last]
        return list(dict.fromkeys([*get_close_matches(name, self.entries, 3), *ends]))[:5]

    def on_page(self, path: str) -> dict[str, Entry]:
        """The entries of a page, relative to the site, by their anchors."""
        parts = ((one.location.partition("#"), one) for one in self.entries.values())
        return {anchor: one for (page, _, anchor), one in parts if page == path}

    def module_of(self, name: str) -> str:
        """The longest documented module that a name begins with; else all but its last part."""
        parts = name.split(".")
        for length in range(len(parts) - 1, 0, -1):
            known = self.entries.get(".".join(parts[:length]))
            if known is not None and known.role == "module":
                return known.name
        # Without an entry for the module: classes begin with a capital letter, modules do not.
        module = [part for part in parts[:-1] if not part[:1].isupper()]
        return ".".join(module)


def read_inventory(data: bytes, url: str) -> Inventory:
    """Both versions of the format. Raises UnreadableSource."""
    head, _, rest = data.partition(b"\n")
    if head.strip() == b"# Sphinx inventory version 2":
        project, version, body = _header(rest, url, lines=3)
        return _inventory(project, version, _unpacked(body, url), url)
    if head.strip() == b"# Sphinx inventory version 1":
        project, version, body = _header(rest, url, lines=2)
        return _first_version(project, version, body.decode("utf-8", "replace"))
    raise UnreadableSource(url, "it is no Sphinx inventory")


def _header(rest: bytes, url: str, *, lines: int) -> tuple[str, str, bytes]:
    parts = rest.split(b"\n", lines)
    if len(parts) <= lines:
        raise UnreadableSource(url, "its inventory ends too early")
    project, version = (part.decode("utf-8", "replace").strip() for part in parts[:2])
    return project.removeprefix("# Project: "), version.removeprefix("# Version: "), parts[lines]


def _unpacked(body: bytes, url: str) -> str:
    unpack = zlib.decompressobj()
    try:
        text = unpack.decompress(body, LARGEST)
    except zlib.error as error:
        raise UnreadableSource(url, "its inventory is broken") from error
    if not unpack.eof:
        raise UnreadableSource(url, "its inventory is too large, or ends too early")
    return text.decode("utf-8", "replace")


def _inventory(project: str, version: str, text: str, url: str) -> Inventory:
    entries: dict[str, Entry] = {}
    for line in text.splitlines():
        match = _LINE.match(line.rstrip())
        if match is None:
            continue
        name, kind, _, location, _ = match.groups()
        domain, _, role = kind.partition(":")
        if domain not in LANGUAGES:
            continue
        if location.endswith("$"):
            location = location[:-1] + name
        entry = Entry(name=name, domain=domain, role=role, location=location)
        known = entries.get(name)
        if known is None or (known.role == "module" and role != "module"):
            entries[name] = entry
    if not entries:
        raise UnreadableSource(url, "its inventory lists no API")
    return Inventory(project=project, version=version, entries=entries)


def _first_version(project: str, version: str, text: str) -> Inventory:
    entries: dict[str, Entry] = {}
    for line in text.splitlines():
        parts = line.rstrip().split(None, 2)
        if len(parts) != 3:
            continue
        name, role, location = parts
        anchor = f"module-{name}" if role == "mod" else name
        role = {"mod": "module"}.get(role, role)
        entries.setdefault(
            name, Entry(name=name, domain="py", role=role, location=f"{location}#{anchor}")
        )
    return Inventory(project=project, version=version, entries=entries)
