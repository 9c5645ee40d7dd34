"""The standard library: its sources say what is deprecated, typeshed's stubs say the rest.

Much of it is written in C and has no source to read; the stubs have all signatures and types.
"""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from vademecum.graph.api import Api, Library
from vademecum.graph.sources.python_api import read_library


def read_standard(version: str, top: str, folder: Path) -> Library:
    """A top-level module of the standard library whose sources are in `folder`."""
    source = read_library("python", version, [top], [folder], stdlib=True)
    stubs = _stubs()
    if stubs is None:
        return source
    typed = read_library("python", version, [top], [stubs], stdlib=True)
    apis: dict[str, Api] = {**source.apis}
    for path, stub in typed.apis.items():
        known = source.apis.get(path)
        apis[path] = stub if known is None else _both(known, stub)
    aliases = {**source.aliases, **typed.aliases}
    return replace(
        source,
        apis=apis,
        # Of `os.path` both are there; the documented names are those of either.
        aliases={name: _posix(target) for name, target in aliases.items()},
    )


def _stubs() -> Path | None:
    # The folder is found without importing the package.
    spec = find_spec("typeshed_client")
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / "typeshed" if places else None


def _both(source: Api, stub: Api) -> Api:
    """The stub's types with the source's words."""
    return replace(
        stub,
        description=source.description,
        examples=source.examples,
        version_added=source.version_added,
        deprecations=source.deprecations or stub.deprecations,
        file=source.file,
        line=source.line,
    )


def _posix(target: str) -> str:
    return (
        f"posixpath{target[6:]}" if target == "ntpath" or target.startswith("ntpath.") else target
    )
