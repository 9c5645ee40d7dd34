"""Every Sphinx site by its inventory: Python's own, and those of packages.

name --site of its package--> objects.inv --page and anchor--> definitions --> API references
"""

import asyncio
import sys
from dataclasses import dataclass
from urllib.parse import urldefrag, urljoin

from vademecum.errors import UnreadableSource
from vademecum.graph.nodes import APIReference, ExternalDoc, Language
from vademecum.graph.relations import Relation, compatible
from vademecum.graph.sources.adapter import (
    Found,
    FoundDocument,
    Subject,
    SubjectKind,
    found_document,
    fresh_for,
)
from vademecum.graph.sources.inventory import LANGUAGES, Inventory, read_inventory
from vademecum.graph.sources.places import Places
from vademecum.graph.sources.pypi import PyPI
from vademecum.graph.sources.replies import Replies, Reply
from vademecum.graph.sources.sphinx_page import Definition, definitions
from vademecum.ingest.read import Wanted

PYTHON = "python"
"""The package of the standard library."""
INVENTORY = Wanted(
    accept="*/*",
    types=frozenset({"application/octet-stream", "binary/octet-stream", "text/plain", ""}),
)
_DOCUMENTATION = ("documentation", "docs", "doc", "api documentation", "api reference", "api docs",
                  "read the docs", "reference")  # fmt: skip
_ALSO = ("homepage", "home", "home page")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    base: str
    """Of its pages, with a slash at the end."""
    inventory: Inventory
    reply: Reply


class Sphinx:
    name = "sphinx"
    makes = ("python_docs", "library_docs")
    kinds: frozenset[SubjectKind] = frozenset({"api"})
    filter = "names that the site's inventory lists"

    def __init__(self, places: Places) -> None:
        self._places = places
        self._pypi = PyPI(places)

    def takes(self, subject: Subject) -> bool:
        return subject.kind == "api" and subject.language in ("", "python", "c", "c++")

    async def fetch(self, subject: Subject, replies: Replies) -> Found:
        package = subject.package or subject.name.partition(".")[0]
        if package in sys.stdlib_module_names:
            package = PYTHON
        site = await self._site(package, subject.version, replies)
        entry = site.inventory.find(subject.name)
        if entry is None:
            near = ", ".join(site.inventory.like(subject.name))
            hint = f"; it lists {near}" if near else ""
            raise UnreadableSource(site.base, f"its inventory has no {subject.name}{hint}")
        page, _ = urldefrag(urljoin(site.base, entry.location))
        reply = await replies.get(page, fresh_for=fresh_for(self._source(package)))
        found = await self._read(reply, replies, package, site.inventory, site.base)
        notices = []
        version = site.inventory.version
        if subject.version and version and not version.startswith(subject.version[: len(version)]):
            notices.append(
                f"the documentation at {site.base} is of {package} {version}, not of"
                f" {subject.version}"
            )
        if not any(isinstance(one, APIReference) and one.name == entry.name for one in found.nodes):
            notices.append(f"{page} has no definition of {entry.name} that could be read")
        if site.reply.how == "stale":
            notices.append(f"the inventory is an old one: {site.reply.reason}")
        return Found(documents=[found], notices=notices)

    async def again(self, document: ExternalDoc, replies: Replies) -> FoundDocument:
        reply = await replies.get(document.source_url, fresh_for=fresh_for(document.source))
        site = await self._site(document.package, document.version, replies)
        return await self._read(reply, replies, document.package, site.inventory, site.base)

    def _source(self, package: str) -> str:
        return "python_docs" if package == PYTHON else "library_docs"

    async def _site(self, package: str, version: str, replies: Replies) -> _Site:
        """The site of a package. Raises UnreadableSource with all that was tried."""
        errors: list[UnreadableSource] = []
        for base in await self._bases(package, version, replies):
            try:
                return await self._at(base, replies)
            except UnreadableSource as error:
                errors.append(error)
        if not errors:
            raise UnreadableSource(
                package, "its registry names no documentation; name its site in sources.toml"
            )
        first, *others = errors
        told = [first.reason, *(f"{one.source}: {one.reason}" for one in others)]
        raise UnreadableSource(first.source, "; ".join(told))

    async def _bases(self, package: str, version: str, replies: Replies) -> list[str]:
        """Where the site may be, the best first."""
        if package == PYTHON:
            minor = ".".join(version.split(".")[:2]) or "3"
            return [self._places.python.format(version=minor)]
        named = self._places.sphinx.get(package.lower())
        if named is not None:
            bases = [named]
        else:
            found, _ = await self._pypi.package(package, "", replies)
            by_label = {label.lower(): url for label, url in found.urls.items()}
            bases = [by_label[label] for label in (*_DOCUMENTATION, *_ALSO) if label in by_label]
        bases = [base for base in dict.fromkeys(bases) if "://github.com/" not in base]
        versioned = [
            base.replace(f"/{word}", f"/{prefix}{version}")
            for base in bases
            for word in ("latest", "stable")
            for prefix in ("", "v")
            if version and f"/{word}" in base
        ]
        return [*versioned, *bases]

    async def _at(self, base: str, replies: Replies) -> _Site:
        base = base if base.endswith("/") else f"{base}/"
        fresh = fresh_for("library_docs")
        try:
            reply = await replies.get(
                urljoin(base, "objects.inv"), fresh_for=fresh, wanted=INVENTORY
            )
        except UnreadableSource as error:
            # The address may lead to the language and version that the site is in.
            page = await replies.get(base.rstrip("/") + "/", fresh_for=fresh)
            led = urljoin(page.url, ".")
            if led == base:
                raise error
            base = led
            reply = await replies.get(
                urljoin(base, "objects.inv"), fresh_for=fresh, wanted=INVENTORY
            )
        inventory = await asyncio.to_thread(read_inventory, reply.data, reply.url)
        return _Site(base=urljoin(reply.url, "."), inventory=inventory, reply=reply)

    async def _read(
        self, reply: Reply, replies: Replies, package: str, inventory: Inventory, base: str
    ) -> FoundDocument:
        document = await replies.document(reply)
        listed = await asyncio.to_thread(definitions, reply.data, reply.url)
        names = inventory.on_page(reply.route.url.removeprefix(base))
        source = self._source(package)
        apis: list[APIReference] = []
        replaced: list[tuple[APIReference, str, Definition]] = []
        for one in listed:
            entry = names.get(one.name)
            if entry is None:
                continue
            api = _api(one, entry.name, inventory, package, LANGUAGES[entry.domain])
            apis.append(api)
            if one.replacement:
                replaced.append((api, one.replacement.rstrip("()"), one))
        relations = list(_replacements(replaced, apis))
        if package == PYTHON and inventory.version:
            relations += compatible(apis, Language(language="Python", version=inventory.version))
        return found_document(
            reply,
            document,
            source=source,
            url=reply.route.url,
            version=inventory.version,
            language=apis[0].language if apis else "python",
            category="api",
            method="web_scrape",
            ecosystem="pypi",
            package=package,
            nodes=apis,
            relations=relations,
        )


def _api(
    one: Definition, name: str, inventory: Inventory, package: str, language: str
) -> APIReference:
    namespace = inventory.module_of(name)
    said = bool(one.notice)
    return APIReference(
        namespace=namespace,
        function_name=name.removeprefix(f"{namespace}.") if namespace else name,
        ecosystem="pypi",
        package=package,
        version=inventory.version,
        language=language,
        signature=one.signature,
        parameters=one.parameters,
        return_type=one.returns,
        description=one.description,
        example_code=one.example,
        gotchas=one.cautions,
        version_introduced=one.added,
        # Where the notice names no version: the one that it was read in.
        deprecated_in=(one.deprecated_in or inventory.version or None) if said else None,
        removed_in=one.removed_in,
        deprecation=one.notice,
    )


def _replacements(
    replaced: list[tuple[APIReference, str, Definition]], apis: list[APIReference]
) -> list[Relation]:
    known = {api.name: api for api in apis}
    relations = []
    for api, name, one in replaced:
        beside = f"{api.name.rpartition('.')[0]}.{name}"
        other = known.get(name) or known.get(beside) or known.get(f"{api.namespace}.{name}")
        if other is not None and other is not api:
            relations.append(
                Relation(
                    kind="REPLACED_BY",
                    start=api,
                    end=other,
                    properties={"in_version": one.deprecated_in, "evidence": one.notice},
                )
            )
    return relations
