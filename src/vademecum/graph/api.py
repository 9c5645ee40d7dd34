"""What a library offers, as read from its source: API references and what is said against them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

MAX_PASSED_ON = 20
"""Modules that a name is followed through; a longer way is a circle."""
Kind = Literal["module", "class", "function", "attribute"]
Evidence = Literal[
    "decorator", "directive", "docstring", "warning", "annotation", "absence", "changelog"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """That something is deprecated, in the library's own words.

    `subject` is '' for the thing itself, or the name of the parameter that is deprecated.
    """

    subject: str = ""
    since: str | None = None
    until: str | None = None
    """The version that is announced to be the first without it."""
    replacement: str | None = None
    sentence: str
    evidence: Evidence
    file: str = ""
    """Relative to the folder of packages; of a changelog its address."""
    line: int = 0
    conditional: bool = False
    """Whether it is said only of some uses, which a look at the call cannot tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    name: str
    kind: str
    annotation: str | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One module, class, function or attribute of a library."""

    path: str
    """Where it is defined: `flask.app.Flask.route`."""
    kind: Kind
    signature: str = ""
    parameters: tuple[Parameter, ...] = ()
    returns: str | None = None
    """The annotation as it is written."""
    returns_path: str | None = None
    """The class that a call, or reading the attribute, gives; `Self` for the receiver's own."""
    bases: tuple[str, ...] = ()
    description: str = ""
    examples: tuple[str, ...] = ()
    version_added: str | None = None
    deprecations: tuple[Deprecation, ...] = ()
    file: str = ""
    line: int = 0
    dynamic: bool = False
    """Whether names that cannot be read here may exist: `__getattr__`, star imports, C code."""
    exact: bool = False
    """Whether a call may name no other arguments than `parameters`: it takes no `**kwargs`, and
    nothing between the call and the function, such as a decorator, may take them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A distribution at one version, with everything that could be read of it."""

    name: str
    version: str
    ecosystem: Literal["python", "npm", "stdlib"] = "python"
    apis: Mapping[str, Api] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Public names to where they are defined; the targets may be of other libraries."""
    gone: Mapping[str, Deprecation] = field(default_factory=dict)
    """What a changelog calls removed, as it names it; not of what was read, so never kept."""

    def defined(self, name: str) -> str | None:
        """Where what a name means is defined, through however many modules it is passed on; None
        where that is not in this library."""
        for _ in range(MAX_PASSED_ON):
            if name in self.apis:
                return name
            if name in self.aliases:
                name = self.aliases[name]
                continue
            owner, _, last = name.rpartition(".")
            module = self.aliases.get(owner)
            if module is None:
                return None
            name = f"{module}.{last}"
        return None

    def references(self) -> list[tuple[str, Api]]:
        """What users call, each under the shortest public name, in order of names."""
        names: dict[str, str] = {}
        for alias in self.aliases:
            target = None if is_private(alias) else self.defined(alias)
            if target is None or self.apis[target].kind == "module":
                continue
            known = names.get(target)
            if known is None and not is_private(target):
                known = target
            if known is None or (len(alias), alias) < (len(known), known):
                names[target] = alias
        listed = []
        for path, api in self.apis.items():
            owner, _, last = path.rpartition(".")
            if last == "__init__":  # said with its class
                continue
            public = names.get(path)
            if public is None and owner in names and not last.startswith("_"):
                public = f"{names[owner]}.{last}"
            if public is None and not is_private(path):
                public = path
            if public is not None:
                listed.append((public, api))
        return sorted(listed, key=lambda pair: pair[0])


def is_private(path: str) -> bool:
    """Whether a part of a dotted path is private; dunder names are not."""
    return any(
        part.startswith("_") and not (part.startswith("__") and part.endswith("__"))
        for part in path.split(".")
    )


_SCHEMA = 2
"""Of the form below; another number is not read."""


def to_json(library: Library) -> dict[str, Any]:
    """A library as JSON values: its APIs as rows, without the names of their fields."""
    return {
        "schema": _SCHEMA,
        "name": library.name,
        "version": library.version,
        "ecosystem": library.ecosystem,
        "aliases": dict(library.aliases),
        "apis": [_row(api) for api in library.apis.values()],
    }


def from_json(value: Mapping[str, Any]) -> Library | None:
    """The library again; None where the form is another one."""
    if value.get("schema") != _SCHEMA:
        return None
    apis = [_api(row) for row in value["apis"]]
    return Library(
        name=value["name"],
        version=value["version"],
        ecosystem=value["ecosystem"],
        aliases=value["aliases"],
        apis={api.path: api for api in apis},
    )


def _row(api: Api) -> list[Any]:
    row = [getattr(api, name) for name in _API]
    row[_API.index("parameters")] = [[getattr(p, n) for n in _PARAMETER] for p in api.parameters]
    row[_API.index("deprecations")] = [
        [getattr(d, n) for n in _DEPRECATION] for d in api.deprecations
    ]
    return row


def _api(row: list[Any]) -> Api:
    values = dict(zip(_API, row, strict=True))
    values["parameters"] = tuple(
        Parameter(**dict(zip(_PARAMETER, one, strict=True))) for one in values["parameters"]
    )
    values["deprecations"] = tuple(
        Deprecation(**dict(zip(_DEPRECATION, one, strict=True))) for one in values["deprecations"]
    )
    values["bases"], values["examples"] = tuple(values["bases"]), tuple(values["examples"])
    return Api(**values)


_API = [one.name for one in fields(Api)]
_PARAMETER = [one.name for one in fields(Parameter)]
_DEPRECATION = [one.name for one in fields(Deprecation)]
