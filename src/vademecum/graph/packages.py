"""The packages of npm that a project has installed, and what expressions in its scripts mean there.

`@scope/name.Client().get` is the method `get` of what calling the export `Client` gives. What the
declarations do not show leads nowhere; nothing counts as removed, since declarations may lack it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vademecum.graph.api import Api, Library
from vademecum.graph.changelog import Changelog
from vademecum.graph.code import CodeFile
from vademecum.graph.resolve import Found
from vademecum.graph.sources.typescript_api import find_package, read_package, version_of
from vademecum.graph.told import told_by

_STEP = re.compile(r"\.([\w$]+)|(\(\))|(\{\})")
_BUILT_IN = re.compile(r"^(?:node:|[./])")


class Packages:
    """Read when they are first asked for."""

    def __init__(
        self, root: Path, *, changelogs: Mapping[str, Sequence[Changelog]] | None = None
    ) -> None:
        self._root = root.resolve()
        self._changelogs = changelogs or {}
        self._known: dict[str, Library | None] = {}
        self._folders: dict[str, Path | None] = {}
        self.used: dict[str, Library] = {}
        """By name."""
        self.read: dict[str, Library] = {}
        """By `npm:name@version`."""
        self.problems: list[str] = []
        """Packages that could not be read, and why."""

    def resolve(self, expression: str) -> Found | None:
        """The API that an expression means; None where it is none, or unknown."""
        split = self._split(expression)
        library = self.get(split[0]) if split is not None else None
        if split is None or library is None:
            return None
        api = self._follow(library, split[1])
        return None if api is None else Found(library=library, path=api.path, api=api)

    def library_of(self, expression: str) -> Library | None:
        """The package that an expression begins in."""
        split = self._split(expression)
        return None if split is None else self.get(split[0])

    def above(self, found: Found) -> Iterable[Api]:
        return _bases(found.library, found.api) if found.api is not None else ()

    def versions(self, file: CodeFile) -> list[str]:
        """Of the packages that a file imports, as they are installed."""
        names = {split[0] for use in file.uses if (split := self._split(use.target)) is not None}
        return [f"{name}@{version_of(self._folders[name])}" for name in sorted(names)]

    def get(self, name: str) -> Library | None:
        if name not in self._known:
            self._known[name] = None
            folder = self._folder(name)
            if folder is not None:
                try:
                    library = read_package(folder, name)
                except (OSError, ValueError) as error:
                    self.problems.append(f"{name}: {error}")
                else:
                    library = told_by(library, self._changelogs.get(f"npm:{name}", ()))
                    self._known[name] = self.used[name] = library
                    self.read[f"npm:{name}@{library.version}"] = library
        return self._known[name]

    def _folder(self, name: str) -> Path | None:
        if name not in self._folders:
            self._folders[name] = find_package(self._root, name)
        return self._folders[name]

    def _split(self, expression: str) -> tuple[str, str] | None:
        """The package and what follows; None where it is not installed, or a part of it is
        imported by its path."""
        if _BUILT_IN.match(expression):
            return None
        scope, slash, rest = expression.partition("/") if expression[:1] == "@" else ("", "", "")
        own = rest if slash else expression
        end = re.match(r"[^/(){}|]*", own)
        parts = (end[0] if end else "").split(".")
        for length in range(len(parts), 0, -1):  # names of packages may have dots
            name = scope + slash + ".".join(parts[:length])
            if self._folder(name) is not None:
                left = expression[len(name) :]
                return None if left.startswith("/") else (name, left)
        return None

    def _follow(self, library: Library, steps: str) -> Api | None:
        api: Api | None = library.apis[library.name]
        at = 0
        while api is not None and at < len(steps):
            step = _STEP.match(steps, at)
            if step is None:
                return None
            at = step.end()
            if step[1]:
                api = _member(library, api, step[1])
            elif api.kind == "function" or (api.kind == "attribute" and step[2]):
                api = library.apis.get(api.returns_path or "")
            elif api.kind != "class":
                return None
        return api


def _member(library: Library, api: Api, name: str, depth: int = 0) -> Api | None:
    """A member of a module, a class, a value or a function, its own or that of its type."""
    found = library.apis.get(f"{api.path}.{name}")
    if found is not None or depth > 10:
        return found
    if name == "default" and api.path == library.name and len(library.apis) > 1:
        return api  # as bundlers let a module without a default be its own
    above = _bases(library, api)
    if api.kind == "attribute" and (kind := library.apis.get(api.returns_path or "")) is not None:
        above = [kind]
    return next((m for one in above if (m := _member(library, one, name, depth + 1))), None)


def _bases(library: Library, api: Api) -> list[Api]:
    return [library.apis[base] for base in api.bases if base in library.apis and base != api.path]
