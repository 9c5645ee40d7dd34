"""Which lines of a project rest on something that its libraries deprecate or no longer have."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from packaging.version import InvalidVersion, Version

from vademecum.graph.api import Api, Deprecation, Library
from vademecum.graph.code import CodeFile, Use
from vademecum.graph.packages import Packages
from vademecum.graph.resolve import Found, Resolver

Rule = Literal["removed", "deprecated", "parameter"]
RULES: dict[Rule, str] = {
    "removed": "The installed or locked version has no such name, or takes no such argument.",
    "deprecated": "The library says that this is deprecated.",
    "parameter": "The library says that this argument is deprecated.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the project that is affected, and what says so."""

    rule: Rule
    file: str
    line: int
    column: int
    context: str
    function: str
    api: str
    """The name as users of the library know it."""
    parameter: str
    package: str
    ecosystem: str
    version: str
    since: str | None
    until: str | None
    replacement: str | None
    sentence: str
    evidence: str
    """`file:line` of the library, or the changelog, where the sentence stands."""
    guarded: bool
    """Whether the code expects it to fail, and so goes on without."""
    overdue: bool = False
    """Whether the announced version of its removal is reached."""


def scan_uses(files: Iterable[CodeFile], resolver: Resolver | Packages) -> list[Finding]:
    """The findings of files of one language, in their order; each place and cause once."""
    names = _PublicNames()
    found: dict[tuple[str, int, str, str], Finding] = {}
    for file in files:
        for use in file.uses:
            for part in _parts(use):
                meant = resolver.resolve(part.target)
                if meant is None:
                    continue
                for finding in _of_use(file, part, meant, names, list(resolver.above(meant))):
                    key = (file.path, finding.line, finding.api, finding.parameter)
                    found.setdefault(key, finding)
    return sorted(found.values(), key=lambda one: (one.file, one.line, one.column, one.api))


def _parts(use: Use) -> Iterator[Use]:
    """A use, and the names that it goes through: of `lib.old.name` also `lib.old`."""
    yield use
    target = use.target
    while match := re.search(r"^(.*[^.])\.\w+$", target):
        target = match[1]
        if target.endswith((")", "}", "]", "|")) or "." not in target:
            return
        yield replace(use, kind="use", target=target, keywords=(), positional=0)


def _of_use(
    file: CodeFile, use: Use, meant: Found, names: "_PublicNames", above: Sequence[Api] = ()
) -> Iterator[Finding]:
    library = meant.library
    api_name = names.of(library, meant.path, use)
    base = Finding(
        rule="removed",
        file=file.path,
        line=use.line,
        column=use.column,
        context=use.context,
        function=use.function,
        api=api_name,
        parameter="",
        package=library.name,
        ecosystem="pypi" if library.ecosystem == "python" else library.ecosystem,
        version=library.version,
        since=None,
        until=None,
        replacement=None,
        sentence="",
        evidence="",
        guarded=use.guarded,
    )
    if meant.api is None:
        owner, last = library.apis.get(meant.owner), meant.path.rpartition(".")[2]
        gone = _told_gone(library, meant.path)
        yield replace(
            base,
            since=gone.since if gone else None,
            until=gone.until if gone else None,
            replacement=gone.replacement if gone else None,
            sentence=gone.sentence
            if gone
            else f"{library.name} {library.version} has no {last!r} in {meant.owner}",
            evidence=gone.file if gone else owner.file if owner else "",
            overdue=gone is not None,
        )
        return
    own = {p.name for p in meant.api.parameters}
    inherited = [
        (said, api)
        for api in (above if use.kind == "call" else ())
        for said in api.deprecations
        if said.subject and said.subject not in own
    ]
    for said, api in [*((said, meant.api) for said in meant.api.deprecations), *inherited]:
        if said.conditional or not _concerns(said, use, api):
            continue
        if not said.subject and _is_in_effect(said, library.version) is False:
            continue
        yield replace(
            base,
            rule="parameter" if said.subject else "deprecated",
            parameter=said.subject,
            since=said.since,
            until=said.until,
            replacement=said.replacement,
            sentence=said.sentence,
            evidence=f"{said.file}:{said.line}" if said.line else said.file,
            overdue=_reached(said.until, library.version),
        )
    for name in _not_taken(use, meant):
        yield replace(
            base,
            parameter=name,
            sentence=f"{api_name} of {library.name} {library.version} takes no argument {name!r}",
            evidence=f"{meant.api.file}:{meant.api.line}",
        )


def _not_taken(use: Use, meant: Found) -> list[str]:
    """The arguments of a call that its function or class does not have. Methods are left out: a
    value may be of a class below, which takes more."""
    if use.kind != "call" or meant.api is None or not meant.api.exact:
        return []
    owner = meant.library.apis.get(meant.api.path.rpartition(".")[0])
    if meant.api.kind != "class" and (owner is None or owner.kind != "module"):
        return []
    # As names: the standard library decides at run time what there is.
    if meant.library.ecosystem == "stdlib" or re.search(r"[(\[{|]", use.target):
        return []
    taken = {one.name for one in meant.api.parameters}
    return [name for name in use.keywords if name not in taken]


def _told_gone(library: Library, path: str) -> Deprecation | None:
    """What a changelog says of a name that the library no longer has."""
    for name, said in library.gone.items():
        exact = path == name or path.endswith(f".{name}")
        if (
            exact
            and ("." in name or path.count(".") == 1)
            and _reached(said.until, library.version)
        ):
            return said
    return None


def _concerns(said: Deprecation, use: Use, api: Api) -> bool:
    """Whether the use is one that the notice is about."""
    if not said.subject:
        return True
    if use.kind != "call":
        return False
    if said.subject in use.keywords:
        return True
    named = {p.name for p in api.parameters}
    if any(p.name == said.subject and p.kind == "variadic keyword" for p in api.parameters):
        return bool(set(use.keywords) - named)
    by_position = [p.name for p in api.parameters if p.kind.startswith("positional")]
    return said.subject in by_position[: use.positional]


def _is_in_effect(said: Deprecation, version: str) -> bool | None:
    """Whether the version is one that the notice holds from; None where that cannot be told."""
    if said.since is None:
        return None
    try:
        return Version(said.since) <= Version(version)
    except InvalidVersion:
        return None


def _reached(until: str | None, version: str) -> bool:
    if until is None:
        return False
    try:
        return Version(until) <= Version(version)
    except InvalidVersion:
        return False


class _PublicNames:
    """The names under which users know the parts of libraries."""

    def __init__(self) -> None:
        self._names: dict[int, Mapping[str, str]] = {}
        self._tops: dict[int, set[str]] = {}

    def of(self, library: Library, path: str, use: Use) -> str:
        if id(library) not in self._names:
            self._names[id(library)] = {api.path: name for name, api in library.references()}
            self._tops[id(library)] = {one.partition(".")[0] for one in library.apis}
        written = library.ecosystem != "npm" and not re.search(r"[(\[{|]", use.target)
        if written and use.target.partition(".")[0] in self._tops[id(library)]:
            return use.target
        names = self._names[id(library)]
        owner, _, last = path.rpartition(".")
        return names.get(path) or (f"{names[owner]}.{last}" if owner in names else path)


def worst(findings: Sequence[Finding]) -> Rule | None:
    """The gravest rule among findings that the code does not expect."""
    serious = {one.rule for one in findings if not one.guarded}
    return next((rule for rule in RULES if rule in serious), None)
