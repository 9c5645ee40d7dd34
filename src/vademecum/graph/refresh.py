"""Documents looked at again: those that are stale by the tier of their source, and valued.

stale and valued --fetch--> the same: its date moves
                            another text: document, content, log, deprecations, one transaction
                            no answer: the old one stays, and the log says so
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from vademecum.errors import UnreadableSource
from vademecum.graph import learning, sources, writing
from vademecum.graph.content import Content
from vademecum.graph.found import Taken, take
from vademecum.graph.marking import mark
from vademecum.graph.nodes import APIReference, ExternalDoc
from vademecum.graph.page_notices import notices
from vademecum.graph.sources.adapter import FoundDocument
from vademecum.graph.summary import beginning
from vademecum.store import graph as rows
from vademecum.store import knowledge, rests_on
from vademecum.store.db import Connection, Database
from vademecum.store.documents import content_hash
from vademecum.types import CollectionId, Document, EntityId

VALUED = 0.8
"""Of all documents by their uses: what is used more than these is valued."""
RECENTLY = timedelta(days=7)
AGAIN = timedelta(hours=20)
"""A fetch that failed is not tried again before, so that a daily run tries once a day."""
AT_ONCE = 4

Fetch = Callable[[str], Awaitable[Document]]
"""An address to what it says now. Raises UnreadableSource."""
Again = Callable[[ExternalDoc], Awaitable[tuple[str, FoundDocument] | None]]
"""A document as the adapter that states it has it now; None where none does. Raises
UnreadableSource."""


@dataclass(slots=True, kw_only=True)
class RefreshReport:
    """`failed` are addresses with the reason; their documents stay as they were."""

    unchanged: int = 0
    updated: int = 0
    deprecated: int = 0
    """APIs that a changed page calls deprecated, and was not known to."""
    failed: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresher:
    database: Database
    content: Content
    fetch: Fetch
    again: Again
    external: Callable[[], Awaitable[CollectionId]]
    now: Callable[[], datetime]

    async def due(self, *, limit: int) -> list[EntityId]:
        """Documents to look at again, the most used first."""
        now = self.now()
        async with self.database.connection() as connection:
            return await knowledge.stale(
                connection,
                stale_before={name: now - sources.refresh_after(name) for name in sources.SOURCES},
                otherwise=now - sources.UNKNOWN_REFRESH,
                share=VALUED,
                used_after=now - RECENTLY,
                failed_after=now - AGAIN,
                limit=limit,
            )

    async def refresh(
        self, documents: list[ExternalDoc], progress: Callable[[int, int], None]
    ) -> RefreshReport:
        """Look at these again, a few at once; each is a transaction of its own."""
        report = RefreshReport()
        external = await self.external() if documents else None
        places, done = asyncio.Semaphore(AT_ONCE), 0

        async def one(doc: ExternalDoc) -> None:
            nonlocal done
            async with places:
                await self._one(doc, external, report)
            done += 1
            progress(done, len(documents))

        async with asyncio.TaskGroup() as group:
            for doc in documents:
                group.create_task(one(doc))
        return report

    async def _one(
        self, doc: ExternalDoc, external: CollectionId | None, report: RefreshReport
    ) -> None:
        try:
            again = await self.again(doc)
            if again is not None:
                await self._restate(*again, external, report)
                return
            found = await self.fetch(doc.source_url)
        except UnreadableSource as error:
            reason = error.reason
            report.failed.append((doc.source_url, reason))
            await self.database.retry(lambda: self._failed(doc, reason))
            return
        digest = content_hash(found.text)
        if digest == doc.content_hash:
            report.unchanged += 1
            same = replace(doc, last_updated=self.now())
            await self.database.retry(lambda: self._same(same))
            return
        await asyncio.to_thread(self.content.write, doc.id, found.text)
        updated = replace(
            doc,
            title=found.title or doc.title,
            content_hash=digest,
            summary=beginning(found.text),
            content_snippet=found.text[:1000],
            last_updated=self.now(),
        )
        report.deprecated += await self.database.retry(
            lambda: self._updated(updated, found.text, external)
        )
        report.updated += 1

    async def _restate(
        self,
        source: str,
        found: FoundDocument,
        external: CollectionId | None,
        report: RefreshReport,
    ) -> None:
        """The whole statement anew: what was read in the document may have changed with it."""
        assert external is not None
        await asyncio.to_thread(self.content.write, found.document.id, found.text)

        async def write() -> Taken:
            async with self.database.transaction() as connection:
                return await take(connection, source, found, external=external, now=self.now)

        taken = await self.database.retry(write)
        report.deprecated += taken.deprecated
        if taken.change == "unchanged":
            report.unchanged += 1
        else:
            report.updated += 1

    async def _failed(self, doc: ExternalDoc, reason: str) -> None:
        async with self.database.connection() as connection:
            await knowledge.note_change(connection, doc.id, doc.title, "fetch_failed", reason)

    async def _same(self, doc: ExternalDoc) -> None:
        async with self.database.transaction() as connection:
            await rows.update_entities(connection, [writing.row(doc)])
            await learning.note_documents(connection, [doc], now=self.now())

    async def _updated(self, doc: ExternalDoc, text: str, external: CollectionId | None) -> int:
        async with self.database.transaction() as connection:
            if not await rows.update_entities(connection, [writing.row(doc)]):
                return 0  # taken back by its source meanwhile
            await knowledge.note_change(connection, doc.id, doc.title, "content_updated")
            if external is not None:
                await writing.make_searchable(connection, external, [doc], now=self.now())
            return await self._deprecations(connection, doc, text)

    async def _deprecations(self, connection: Connection, doc: ExternalDoc, text: str) -> int:
        """Mark APIs that the page documents and calls deprecated; how many were not known to be."""
        documented = await rows.relations_of(
            connection, [doc.id], [""], kinds=["DOCUMENTED_IN"], outgoing=False
        )
        ids = {relation.start_id for relation in documented}
        apis = [
            APIReference.of(row.properties)
            for row in await rows.by_id(connection, ids, [""])
            if row.kind == "APIReference"
        ]
        found = notices(text, apis)
        await self._look_again(connection, doc, {each.sentence for each in found})
        return await mark(connection, doc, found, now=self.now)

    async def _look_again(
        self, connection: Connection, doc: ExternalDoc, sentences: set[str]
    ) -> None:
        """Relations whose evidence the page still says rest on it as it is now."""
        resting = await rests_on.resting_on(connection, doc.id)
        stand = [number for number, evidence in resting if evidence in sentences]
        await rests_on.still_stand(connection, stand, doc.digest)
