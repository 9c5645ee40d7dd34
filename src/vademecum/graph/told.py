"""What changelogs say of a library's APIs, beside what its own code says."""

from collections.abc import Sequence
from dataclasses import replace

from vademecum.graph import changelog
from vademecum.graph.api import Deprecation, Library
from vademecum.graph.changelog import Changelog, Notice
from vademecum.graph.versions import Ecosystem


def told_by(library: Library, changelogs: Sequence[Changelog]) -> Library:
    """The library with the notices of its changelogs; its own words come before theirs."""
    if not changelogs:
        return library
    ecosystem: Ecosystem = "npm" if library.ecosystem == "npm" else "pypi"
    paths, members = names_of(library)
    apis, gone = dict(library.apis), dict[str, Deprecation]()
    for one in changelogs:
        found = changelog.notices(one.text, ecosystem)
        for name, notice in changelog.resolved(found, members).items():
            api = apis[paths[name]]
            own = any(not said.subject and not said.conditional for said in api.deprecations)
            if own or changelog.is_back(notice, library.version, ecosystem):
                continue
            said = (*api.deprecations, _deprecation(notice, one))
            apis[api.path] = replace(api, deprecations=said)
        for notice in found:
            if notice.until is not None:
                gone.setdefault(notice.name, _deprecation(notice, one))
    return replace(library, apis=apis, gone=gone)


def names_of(library: Library) -> tuple[dict[str, str], dict[str, bool]]:
    """Of each public name where it is defined, and whether it is of a class."""
    paths, members = {}, {}
    for name, api in library.references():
        owner = library.apis.get(api.path.rpartition(".")[0])
        paths[name] = api.path
        members[name] = owner is not None and owner.kind == "class"
    return paths, members


def _deprecation(notice: Notice, source: Changelog) -> Deprecation:
    return Deprecation(
        since=notice.since,
        until=notice.until,
        replacement=notice.replacement,
        sentence=notice.sentence,
        evidence="changelog",
        file=source.url,
    )
