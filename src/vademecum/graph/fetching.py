"""Knowledge from outside, looked up when it is asked for: `app.sources`.

subject --adapters that take it--> documents --one transaction each--> graph, files, search
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from vademecum.access import require_all
from vademecum.errors import BadInput, UnreadableSource
from vademecum.graph.changelog import Changelog
from vademecum.graph.content import Content
from vademecum.graph.found import Change, Taken, take
from vademecum.graph.nodes import APIReference, BestPractice, CodeExample, ExternalDoc
from vademecum.graph.sources import REFRESH, SOURCES
from vademecum.graph.sources.adapter import FRESH, Adapter, Found, FoundDocument, Subject
from vademecum.graph.sources.github import GitHub
from vademecum.graph.sources.mdn import MDN
from vademecum.graph.sources.microsoft_learn import MicrosoftLearn
from vademecum.graph.sources.npm import Npm
from vademecum.graph.sources.places import Places, load_places
from vademecum.graph.sources.pypi import PyPI
from vademecum.graph.sources.replies import Replies, Web
from vademecum.graph.sources.sphinx import Sphinx
from vademecum.graph.sources.stack_exchange import StackExchange
from vademecum.graph.sources.tutorials import TutorialSites
from vademecum.store import graph as rows
from vademecum.store import knowledge
from vademecum.store.db import Database
from vademecum.types import CollectionId, EntityId

ADAPTERS: tuple[Callable[[Places], Adapter], ...] = (
    Sphinx,
    MDN,
    MicrosoftLearn,
    PyPI,
    Npm,
    StackExchange,
    GitHub,
    TutorialSites,
)
"""In the order in which what they found is told."""
UNUSED = timedelta(days=90)
"""Replies not fetched for so long are removed by the daily maintenance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOverview:
    """A source as it is listed: who it is and what holds for it."""

    name: str
    kinds: list[str]
    documents_of: list[str]
    tier: str
    trust: list[float]
    fresh_days: int
    """So long what was fetched is taken without asking."""
    refresh_days: int
    """After so long it is looked at again, where it is valued."""
    filter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedDocument:
    """A document that a source gave, and what became of it."""

    id: EntityId
    title: str
    source: str
    source_url: str
    version: str
    change: Change
    how: str
    """`fetched` now, `kept` and fresh, or `stale`: kept, since nobody answered."""
    fetched_at: datetime
    reason: str
    """Why it is stale."""
    apis: list[str]
    examples: int
    practices: int
    deprecated: int
    """APIs that it newly calls deprecated or removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfetched:
    """A source that gave nothing, and why."""

    source: str
    reason: str


@dataclass(slots=True, kw_only=True)
class FetchReport:
    """What was found of a subject. Nothing that failed is missing here."""

    subject: Subject
    documents: list[FetchedDocument] = field(default_factory=list)
    failed: list[Unfetched] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    searchable: bool = True
    """Whether the documents can be found by words already; else a worker has still to come."""


class Sources:
    """Every look-up goes through the cache's manners; what it gives is advisory."""

    def __init__(
        self,
        database: Database,
        *,
        web: Web,
        home: Path,
        content: Content,
        external: Callable[[], Awaitable[CollectionId]],
        embed: Callable[[], Awaitable[bool]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`external` is where documents are searched, `embed` makes them searchable."""
        self._database = database
        self._home = home
        self._content = content
        self._external = external
        self._embed = embed
        self._now = now
        self.replies = Replies(
            database, web, folder=home / "external_knowledge" / "replies", now=lambda: self._now()
        )

    @cached_property
    def adapters(self) -> list[Adapter]:
        """Raises BadSetting where `sources.toml` cannot be used."""
        places = load_places(self._home)
        return [make(places) for make in ADAPTERS]

    def overview(self) -> list[SourceOverview]:
        """What can be looked up where. Raises BadSetting."""
        found = []
        for one in self.adapters:
            tier = SOURCES[one.makes[0]].tier
            found.append(
                SourceOverview(
                    name=one.name,
                    kinds=sorted(one.kinds),
                    documents_of=list(one.makes),
                    tier=tier,
                    trust=[SOURCES[source].trust for source in one.makes],
                    fresh_days=FRESH[tier].days,
                    refresh_days=REFRESH[tier].days,
                    filter=one.filter,
                )
            )
        return found

    async def fetch(
        self,
        subject: Subject,
        *,
        only: Sequence[str] = (),
        progress: Callable[[str], None] = lambda text: None,
    ) -> FetchReport:
        """Look a subject up at every source that takes it, or only at those named.

        A source's failure is its own and is told. Raises BadInput, BadSetting.
        """
        require_all("write")
        if not subject.name.strip():
            raise BadInput("there is nothing to look up")
        taking = self._taking(subject, only)
        report = FetchReport(subject=subject)

        async def ask(one: Adapter) -> Found:
            progress(f"asking {one.name}")
            try:
                return await one.fetch(subject, self.replies)
            except UnreadableSource as error:
                report.failed.append(Unfetched(source=one.name, reason=str(error)))
                return Found()

        found = await asyncio.gather(*(ask(one) for one in taking))
        for adapter, gave in zip(taking, found, strict=True):
            report.notices += gave.notices
            for each in gave.documents:
                report.documents.append(await self._take(adapter.name, each))
        if any(one.change != "unchanged" for one in report.documents):
            progress("making it searchable")
            report.searchable = await self._embed()
        return report

    async def again(self, document: ExternalDoc) -> tuple[str, FoundDocument] | None:
        """A document as its source has it now, with the source's name; None where no adapter
        states it. Raises UnreadableSource, BadSetting."""
        async with self._database.connection() as connection:
            stated = await rows.stated_by(connection, [document.id])
        by_name = {one.name: one for one in self.adapters}
        for source, _ in stated.get(document.id, []):
            if source in by_name:
                return source, await by_name[source].again(document, self.replies.anew())
        return None

    async def changelogs(self) -> Mapping[str, Sequence[Changelog]]:
        """What was fetched of how packages changed, by `ecosystem:package`: of each file of a
        package the newest version, which tells of the older ones as well."""
        require_all("read")
        async with self._database.connection() as connection:
            stored = await knowledge.changelogs(connection)
        found: dict[str, dict[str, Changelog]] = {}
        for one in stored:
            listed = found.setdefault(f"{one.ecosystem}:{one.package}", {})
            file = one.url.partition("#")[2]
            if file not in listed and (text := self._content.read(one.id)) is not None:
                listed[file] = Changelog(url=one.url, title=one.title, digest=one.digest, text=text)
        return {key: list(listed.values()) for key, listed in found.items()}

    async def clean(self) -> int:
        """Remove replies that were not fetched for long; how many."""
        return await self.replies.forget_older(self._now() - UNUSED)

    def _taking(self, subject: Subject, only: Sequence[str]) -> list[Adapter]:
        known = [one.name for one in self.adapters]
        if unknown := set(only) - set(known):
            raise BadInput(
                f"there is no source {', '.join(sorted(unknown))}",
                hint=f"Sources: {', '.join(known)}.",
            )
        taking = [
            one for one in self.adapters if (not only or one.name in only) and one.takes(subject)
        ]
        if not taking:
            language = f" of {subject.language}" if subject.language else ""
            raise BadInput(
                f"no source takes {_article(subject.kind)} {subject.kind}{language}"
                + (f" among {', '.join(only)}" if only else ""),
                hint="`vade fetch sources` lists what can be looked up where.",
            )
        return taking

    async def _take(self, source: str, found: FoundDocument) -> FetchedDocument:
        doc = found.document
        await asyncio.to_thread(self._content.write, doc.id, found.text)
        external = await self._external()

        async def write() -> Taken:
            async with self._database.transaction() as connection:
                return await take(connection, source, found, external=external, now=self._now)

        taken = await self._database.retry(write)
        return FetchedDocument(
            id=doc.id,
            title=doc.title,
            source=doc.source,
            source_url=doc.source_url,
            version=doc.version,
            change=taken.change,
            how=found.how,
            fetched_at=doc.last_updated,
            reason=found.reason,
            apis=sorted(node.name for node in found.nodes if isinstance(node, APIReference)),
            examples=sum(isinstance(node, CodeExample) for node in found.nodes),
            practices=sum(isinstance(node, BestPractice) for node in found.nodes),
            deprecated=taken.deprecated,
        )


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"
