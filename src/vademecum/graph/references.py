"""Libraries as nodes of the graph: their APIs under public names, and one document for each."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from vademecum.graph.api import Api, Library
from vademecum.graph.libraries import Libraries
from vademecum.graph.nodes import APIReference, ExternalDoc
from vademecum.graph.relations import Relation
from vademecum.graph.sources.environment import Installed

LIBRARY_SOURCE = "environment"
"""Who states the APIs of libraries; the key is `pypi:name@version`."""


class References:
    """The nodes that uses lead to, of the libraries of one environment."""

    def __init__(self, libraries: Libraries | None) -> None:
        self._libraries = libraries
        self._names: dict[int, dict[str, str]] = {}
        self._now = datetime.now(UTC)

    def of(self, library: Library, path: str, api: Api) -> APIReference:
        """The node of what a use means."""
        names = self._names_of(library)
        owner, _, last = path.rpartition(".")
        name = names.get(path) or (f"{names[owner]}.{last}" if owner in names else path)
        return self.node(library, name, api)

    def _names_of(self, library: Library) -> dict[str, str]:
        if id(library) not in self._names:
            self._names[id(library)] = {api.path: name for name, api in library.references()}
        return self._names[id(library)]

    def node(self, library: Library, name: str, api: Api) -> APIReference:
        namespace, function = _split(library, name)
        whole = [one for one in api.deprecations if not one.subject and not one.conditional]
        gotchas = [one.sentence for one in api.deprecations if one.subject or one.conditional]
        said = whole[0] if whole else None
        return APIReference(
            namespace=namespace,
            function_name=function,
            ecosystem="npm" if library.ecosystem == "npm" else "pypi",
            package=library.name,
            version=library.version,
            language="javascript" if library.ecosystem == "npm" else "python",
            signature=api.signature,
            parameters=tuple(
                {
                    key: value
                    for key, value in (
                        ("name", one.name),
                        ("kind", one.kind),
                        ("annotation", one.annotation),
                        ("default", one.default),
                    )
                    if value is not None
                }
                for one in api.parameters
            ),
            return_type=api.returns or "",
            description=api.description,
            example_code="\n\n".join(api.examples),
            gotchas=tuple(dict.fromkeys(one for one in gotchas)),
            version_introduced=api.version_added or "",
            # Where the notice names no version: the one that it was read in.
            deprecated_in=(said.since or library.version) if said else None,
            removed_in=said.until if said else None,
            deprecation=said.sentence if said else "",
        )

    def replacements(self, library: Library) -> Iterable[Relation]:
        """What deprecated APIs are replaced by, where that is an API of the same library."""
        listed = dict(library.references())
        for name, api in listed.items():
            for said in api.deprecations:
                if said.subject or said.conditional or not said.replacement:
                    continue
                wanted = said.replacement.partition("(")[0].partition("[")[0]
                beside = f"{name.rpartition('.')[0]}.{wanted}"
                top = name.partition(".")[0]
                # `np.vstack` where the library's users call it by another name
                renamed = f"{top}.{wanted.partition('.')[2]}"
                names = (wanted, beside, f"{top}.{wanted}", renamed)
                found = next((one for one in names if one in listed), None)
                if found is not None and found != name:
                    yield Relation(
                        kind="REPLACED_BY",
                        start=self.node(library, name, api),
                        end=self.node(library, found, listed[found]),
                        properties={"in_version": said.since, "evidence": said.sentence},
                    )

    def document(self, library: Library) -> ExternalDoc | None:
        """The document of a library: its readme, at its home."""
        if library.ecosystem == "npm":
            page = f"https://www.npmjs.com/package/{library.name}/v/{library.version}"
            return self._document(library, page, library.name, "", "")
        if self._libraries is None:
            return None
        if library.ecosystem == "stdlib":
            minor = ".".join(library.version.split(".")[:2])
            return self._document(
                library,
                f"https://docs.python.org/{minor}/library/",
                "Python standard library",
                "",
                "",
            )
        installed = self._libraries.environment.installed.get(library.name)
        if installed is None:
            return None
        home = _home_of(installed)
        others = self._libraries.environment.installed.values()
        if any(
            one.name != installed.name
            and one.version == installed.version
            and _home_of(one) == home
            for one in others
        ):
            home = _page_of(installed)  # packages of one repository: each its own document
        return self._document(library, home, installed.name, installed.summary, installed.readme)

    def _document(
        self, library: Library, url: str, title: str, summary: str, text: str
    ) -> ExternalDoc:
        return ExternalDoc(
            source=LIBRARY_SOURCE,
            source_url=url,
            title=f"{title} {library.version}",
            content_hash=hashlib.sha256(text.encode()).hexdigest(),
            summary=summary[:500],
            content_snippet=text[:1000],
            last_updated=self._now,
            version=library.version,
            language="javascript" if library.ecosystem == "npm" else "python",
            category="reference",
            fetch_method="environment",
            ecosystem="npm" if library.ecosystem == "npm" else "pypi",
            package=library.name,
        )


def _home_of(one: Installed) -> str:
    wanted = ("documentation", "docs", "homepage", "source", "repository")
    by_label = {label.lower(): url for label, url in one.urls.items()}
    found = next((by_label[label] for label in wanted if label in by_label), None)
    return found or _page_of(one)


def _page_of(one: Installed) -> str:
    return f"https://pypi.org/project/{one.name}/{one.version}/"


def _split(library: Library, name: str) -> tuple[str, str]:
    """The module of a name, and the rest."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:length])
        path = library.aliases.get(module, module)
        found = library.apis.get(path)
        if found is not None and found.kind == "module":
            return module, ".".join(parts[length:])
    return ".".join(parts[:-1]), parts[-1]
