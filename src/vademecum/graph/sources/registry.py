"""What registries have in common: a package with its versions, told as documents of the graph."""

import asyncio
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar
from urllib.parse import urljoin

from vademecum.errors import UnreadableSource
from vademecum.graph.nodes import CodeExample, ExternalDoc, Framework, Node
from vademecum.graph.relations import Relation
from vademecum.graph.sources.adapter import (
    Found,
    FoundDocument,
    Subject,
    SubjectKind,
    found_document,
    fresh_for,
)
from vademecum.graph.sources.archive import ARCHIVE, ArchiveTexts, read_archive
from vademecum.graph.sources.replies import Replies, Reply
from vademecum.graph.versions import Ecosystem, order
from vademecum.ingest.read import read_bytes
from vademecum.store.documents import written

LISTED = 20
"""Versions that the document of a package names, the newest first."""
SHORTEST = 40
"""Characters of a changelog's text: a shorter one only points to where it is."""
_NO_TEXT = re.compile(
    r"^ *(`{3,}|~{3,}|:{3,})\{.*?^ *\1 *$|^\.\. include::[^\n]*$|^#[^\n]*$",
    re.MULTILINE | re.DOTALL,
)
"""Directives and headings, such as a changelog has that only includes another."""
EXAMPLES = 20
"""Files of an archive's folder of examples that are taken, of at most so many lines:"""
EXAMPLE_LINES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One version of a package."""

    version: str
    released: datetime | None = None
    withdrawn: str | None = None
    """Why it is yanked or deprecated, '' where no reason is given; None where it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package as its registry tells of it, at one version."""

    name: str
    ecosystem: Ecosystem
    version: str
    newest: str
    page: str
    """Where people read of this version."""
    summary: str = ""
    needs: str = ""
    """`Python >=3.8`"""
    urls: Mapping[str, str] = field(default_factory=dict)
    releases: Sequence[Release] = ()
    """The newest first."""
    readme: tuple[str, str, str] | None = None
    """Name, text and content type."""
    archive: str = ""
    archive_digest: tuple[str, str] | None = None
    """Algorithm of hashlib and hexadecimal digest."""

    @property
    def release(self) -> Release | None:
        return next((one for one in self.releases if one.version == self.version), None)

    @property
    def language(self) -> str:
        return "javascript" if self.ecosystem == "npm" else "python"


class Registry(ABC):
    """A registry of packages: an adapter that lacks only how one is asked for."""

    name: ClassVar[str]
    """Also of the source that its documents are of."""
    ecosystem: ClassVar[Ecosystem]
    filter: ClassVar[str]
    kinds: frozenset[SubjectKind] = frozenset({"package"})

    @property
    def makes(self) -> tuple[str, ...]:
        return (self.name,)

    def takes(self, subject: Subject) -> bool:
        return subject.kind == "package" and subject.ecosystem == self.ecosystem

    @abstractmethod
    async def package(self, name: str, version: str, replies: Replies) -> tuple[Package, Reply]:
        """A package at a version, '' for the newest. Raises UnreadableSource."""

    async def fetch(self, subject: Subject, replies: Replies) -> Found:
        package, reply = await self.package(subject.name, subject.version, replies)
        return await package_found(package, reply, replies, self.name)

    async def again(self, document: ExternalDoc, replies: Replies) -> FoundDocument:
        package, reply = await self.package(document.package, document.version, replies)
        if document.category == "reference":
            return await package_document(package, reply, self.name)
        found = await package_found(package, reply, replies, self.name)
        for one in found.documents:
            if one.document.id == document.id:
                return one
        why = found.notices[0] if found.notices else "its archive no longer has it"
        raise UnreadableSource(document.source_url, why)


def moment(text: object) -> datetime | None:
    """When something was released; None where that is no time."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def newest_first(releases: Sequence[Release], ecosystem: Ecosystem) -> list[Release]:
    return sorted(releases, key=lambda one: order(one.version, ecosystem) or "", reverse=True)


async def package_document(package: Package, reply: Reply, source: str) -> FoundDocument:
    """The facts of a package with its readme, and nodes for the versions that matter."""
    readme = ""
    if package.readme is not None:
        name, text, kind = package.readme
        try:
            readme = (
                await asyncio.to_thread(
                    read_bytes, text.encode(), name=name, content_type=kind or None
                )
            ).text
        except UnreadableSource:
            readme = text
    text = "\n\n".join(part for part in (_facts(package), readme.strip()) if part) + "\n"
    document = written(f"{package.name} {package.version}", text)
    told = [package.version, package.newest]
    shown = [one for one in package.releases if one.withdrawn is not None or one.version in told]
    nodes: list[Node] = [
        Framework(
            ecosystem=package.ecosystem,
            package=package.name,
            version=one.version,
            released=one.released,
            withdrawn=_withdrawn(one, package.ecosystem),
        )
        for one in shown
    ]
    return found_document(
        reply,
        document,
        source=source,
        url=package.page,
        summary=_summary(package),
        version=package.version,
        language=package.language,
        category="reference",
        method="api",
        ecosystem=package.ecosystem,
        package=package.name,
        nodes=nodes,
    )


async def package_found(package: Package, reply: Reply, replies: Replies, source: str) -> Found:
    """All that a registry has of a package: facts, readme, and what its archive holds."""
    found = Found()
    texts, archive = None, None
    try:
        if not package.archive:
            raise UnreadableSource(package.name, f"{package.version} has no source archive")
        # Mirrors list archives by where they are beside the list.
        package = replace(package, archive=urljoin(reply.url, package.archive))
        archive = await replies.get(
            package.archive, fresh_for=fresh_for(source), wanted=ARCHIVE, keep=False
        )
        texts = await _texts(package, archive)
    except UnreadableSource as error:
        found.notices.append(f"no changelog or examples: {error}")
    if texts is not None and package.readme is None and texts.readme is not None:
        name, data = texts.readme
        package = replace(package, readme=(name, data.decode("utf-8", "replace"), ""))
    main = await package_document(package, reply, source)
    if texts is not None and archive is not None:
        main = _with_examples(package, texts, main)
        found.documents += await _changelogs(package, texts, archive, source)
    found.documents.insert(0, main)
    return found


async def _texts(package: Package, reply: Reply) -> ArchiveTexts:
    if package.archive_digest is not None:
        algorithm, digest = package.archive_digest
        if hashlib.new(algorithm, reply.data).hexdigest() != digest:
            raise UnreadableSource(package.archive, "it is not the file that the registry lists")
    return await asyncio.to_thread(read_archive, reply.data, package.archive)


async def _changelogs(
    package: Package, texts: ArchiveTexts, reply: Reply, source: str
) -> list[FoundDocument]:
    found = []
    for name, data in sorted(texts.changelogs.items()):
        try:
            document = await asyncio.to_thread(
                read_bytes, data, name=name if "." in name else f"{name}.txt"
            )
        except UnreadableSource:
            continue
        if len(_NO_TEXT.sub("", document.text).strip()) < SHORTEST:
            continue
        title = f"{package.name} {package.version} {name.rpartition('/')[2]}"
        made = found_document(
            reply,
            replace(document, title=title),
            source=source,
            url=f"{package.archive}#{name}",
            title=title,
            version=package.version,
            language=package.language,
            category="guide",
            method="api",
            ecosystem=package.ecosystem,
            package=package.name,
            teaches=False,
        )
        found.append(replace(made, is_changelog=True))
    return found


def _with_examples(package: Package, texts: ArchiveTexts, of: FoundDocument) -> FoundDocument:
    """The document of a package with the examples of its archive."""
    nodes: list[Node] = []
    relations = []
    for name, data in sorted(texts.examples.items())[: 5 * EXAMPLES]:
        code = data.decode("utf-8", "replace").strip()
        if not code or code.count("\n") >= EXAMPLE_LINES or len(nodes) == EXAMPLES:
            continue
        node = CodeExample(
            title=f"{package.name}: {name}",
            language="python" if name.endswith(".py") else "javascript",
            code=code,
            content_hash=hashlib.sha256(code.encode()).hexdigest(),
            works_with_version=f"{package.name} {package.version}",
            source_url=f"{package.archive}#{name}",
            source=of.document.source,
        )
        nodes.append(node)
        relations.append(
            Relation(
                kind="DOCUMENTED_IN",
                start=node,
                end=of.document,
                properties={"section": name, "evidence": code.splitlines()[0][:400]},
            )
        )
    return replace(of, nodes=[*of.nodes, *nodes], relations=[*of.relations, *relations])


def _facts(package: Package) -> str:
    release = package.release
    lines = [f"# {package.name} {package.version}", "", package.summary, ""]
    if release is not None and release.withdrawn is not None:
        lines.insert(2, f"**{_withdrawn(release, package.ecosystem)}**\n")
    if release is not None and release.released is not None:
        lines.append(f"- Released: {release.released:%Y-%m-%d}")
    if package.newest and package.newest != package.version:
        lines.append(f"- Newest version: {package.newest}")
    if package.needs:
        lines.append(f"- Needs: {package.needs}")
    lines += [f"- {label}: {url}" for label, url in package.urls.items()]
    withdrawn = [one for one in package.releases if one.withdrawn is not None][:LISTED]
    if withdrawn:
        told = "; ".join(
            f"{one.version} ({one.withdrawn})" if one.withdrawn else one.version
            for one in withdrawn
        )
        lines.append(f"- {_word(package.ecosystem)} versions: {told}")
    if package.releases:
        told = ", ".join(one.version for one in package.releases[:LISTED])
        lines.append(f"- Versions: {told}")
    return "\n".join(lines)


def _summary(package: Package) -> str:
    release = package.release
    parts = []
    if release is not None and release.withdrawn is not None:
        parts.append(_withdrawn(release, package.ecosystem) + ".")
    if package.newest and package.newest != package.version:
        parts.append(f"The newest version is {package.newest}.")
    return " ".join([*parts, package.summary])[:500].strip()


def _withdrawn(release: Release, ecosystem: Ecosystem) -> str:
    if release.withdrawn is None:
        return ""
    word = _word(ecosystem)
    return f"{word}: {release.withdrawn}" if release.withdrawn else word


def _word(ecosystem: Ecosystem) -> str:
    return "Deprecated" if ecosystem == "npm" else "Yanked"
