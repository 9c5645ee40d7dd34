"""The libraries of an environment, read when they are first asked for.

What was read of a version is kept in a file, so that it is read once; the files can be deleted.
"""

import gzip
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from vademecum.graph.api import Library, from_json, to_json
from vademecum.graph.changelog import Changelog
from vademecum.graph.content import write_private
from vademecum.graph.sources.environment import Environment, Installed
from vademecum.graph.told import told_by

READER = 9
"""Of what is read; raised when files read before would lack something."""


class Libraries:
    """Libraries by the first part of an import."""

    def __init__(
        self,
        environment: Environment,
        *,
        home: Path | None,
        changelogs: Mapping[str, Sequence[Changelog]] | None = None,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`home` is the folder of the files; None keeps none. `changelogs` are those that were
        fetched, by `ecosystem:package`."""
        self.environment = environment
        self._home = home
        self.changelogs = changelogs or {}
        self._notice = notice
        self._known: dict[str, Library | None] = {}
        self.used: dict[str, Library] = {}
        """By name, of those that were asked for: with all that was read of each."""
        self.read: dict[str, Library] = {}
        """The same by `ecosystem:name@version`; each module of the standard library by itself."""

    def get(self, top: str) -> Library | None:
        """The library of a top-level module; None where it is not installed."""
        if top not in self._known:
            self._known[top] = self._find(top)
        return self._known[top]

    def _find(self, top: str) -> Library | None:
        if self.environment.is_stdlib(top):
            return self._standard(top)
        owners = [
            one
            for module, one in self.environment.owners.items()
            if module.partition(".")[0] == top
        ]
        found: Library | None = None
        for one in {owner.name: owner for owner in owners}.values():
            library = self._read(one)
            found = library if found is None else _joined(found, library)
        return found

    def _standard(self, top: str) -> Library | None:
        from vademecum.graph.sources.standard import read_standard  # and with it griffe

        folder = self.environment.stdlib
        assert folder is not None
        version = self.environment.python
        library = self._kept(
            f"stdlib-{version}-{top}",
            lambda: read_standard(version, top, folder),
        )
        self.read[f"pypi:python.{top}@{version}"] = library
        known = self.used.get("python")
        self.used["python"] = _joined(known, library) if known else library
        return library

    def _read(self, one: Installed) -> Library:
        # Top-level modules, so that a library's own names lead to each other.
        tops = list(dict.fromkeys(module.partition(".")[0] for module in one.modules))
        library = self._kept(
            f"pypi-{one.name}-{one.version}-{one.record}" if one.record else None,
            lambda: self._reading(one, tops),
        )
        library = told_by(library, self.changelogs.get(f"pypi:{one.name}", ()))
        self.used[one.name] = self.read[f"pypi:{one.name}@{one.version}"] = library
        return library

    def _reading(self, one: Installed, tops: list[str]) -> Library:
        from vademecum.graph.sources.python_api import read_library

        self._notice(f"reading {one.name} {one.version}")
        return read_library(one.name, one.version, tops, self.environment.folders)

    def _kept(self, key: str | None, read: Callable[[], Library]) -> Library:
        if key is None or self._home is None:
            return read()
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        path = self._home / f"{key}-{READER}-{python}.json.gz"
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                if found := from_json(json.load(file)):
                    return found
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            pass  # missing or broken: it is read anew
        library = read()
        _write(path, library)
        return library


def _write(path: Path, library: Library) -> None:
    text = json.dumps(to_json(library), ensure_ascii=False).encode("utf-8", "replace")
    with suppress(OSError):  # a full disk only means reading again
        write_private(path, gzip.compress(text, compresslevel=1))


def _joined(one: Library, other: Library) -> Library:
    return Library(
        name=one.name,
        version=one.version,
        ecosystem=one.ecosystem,
        apis={**one.apis, **other.apis},
        aliases={**one.aliases, **other.aliases},
        gone={**one.gone, **other.gone},
    )
