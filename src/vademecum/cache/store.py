"""From an address to a stored page: all or nothing.

address --get--> Page --read, judge--> Readable --store--> document, job, aliases, validators
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from vademecum.cache.address import normalise, same_place
from vademecum.cache.freshness import lifetime
from vademecum.cache.judge import judge
from vademecum.cache.passages import tokens
from vademecum.cache.polite import Politeness
from vademecum.cache.rules import Rule
from vademecum.errors import DatabaseUnavailable, NotCacheable, UnreadableSource
from vademecum.ingest.read import Page, Validators, fetch, read_bytes
from vademecum.store import cache, documents
from vademecum.store.cache import StoredPage
from vademecum.store.collections import Collection
from vademecum.store.db import Database
from vademecum.types import Document, Source

Fetched = Literal["stored", "updated", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """A page that may be stored; without a document it is as it was."""

    page: Page
    document: Document | None
    canonical: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Fetches pages with the manners of one process."""

    database: Database
    politeness: Politeness
    max_bytes: int
    timeout: float = 30.0
    reading: set[int] = field(default_factory=set)
    """Pages that this process reads at the moment."""

    async def get(self, url: str, rule: Rule, known: StoredPage | None, *, patient: bool) -> Page:
        """Conditionally where something is stored. Raises UnreadableSource and its kinds."""
        validators = Validators()
        if known is not None and known.document_id is not None:
            validators = Validators(etag=known.etag, last_modified=known.last_modified)
        async with self.politeness.turn(url, patient=patient):
            return await fetch(
                known.url if known is not None and validators.headers else url,
                max_bytes=self.max_bytes,
                allow_private=rule.private_network,
                timeout=self.timeout,
                validators=validators,
            )

    async def renew(
        self,
        collection: Collection,
        asked: str,
        rule: Rule,
        known: StoredPage | None,
        *,
        project: str | None,
    ) -> Fetched:
        """All of it, when it is our turn. Raises UnreadableSource and its kinds; then nothing
        changed."""
        spare(asked, known)
        readable = await self.read(await self.get(asked, rule, known, patient=True), known)
        return await self.store(collection, asked, readable, rule, known, project=project)

    async def read(
        self, page: Page, known: StoredPage | None = None, *, trusted: bool = False
    ) -> Readable:
        """What was fetched, if it is worth keeping; `trusted` is judged by whoever gives it.

        Should the process die of it, that is counted on the `known` page. Raises NotCacheable,
        UnreadableSource.
        """
        if page.unchanged:
            return Readable(page=page, document=None, canonical=None)
        async with self._survived(known):
            return await self._read(page, trusted=trusted)

    @asynccontextmanager
    async def _survived(self, known: StoredPage | None) -> AsyncIterator[None]:
        if known is None or known.id in self.reading:
            yield
            return
        self.reading.add(known.id)
        try:
            async with self.database.connection() as connection:
                await cache.page_reading(connection, known.id)
            yield
        finally:
            self.reading.discard(known.id)
            # Whoever is cut short here has survived all the same.
            await asyncio.shield(self._note_survival(known.id))

    async def _note_survival(self, page: int) -> None:
        async def note() -> None:
            async with self.database.connection() as connection:
                await cache.page_survived(connection, page)

        with suppress(DatabaseUnavailable):  # one death too many, until the page is read again
            await self.database.retry(note, tries=2)

    async def _read(self, page: Page, *, trusted: bool) -> Readable:
        document = await asyncio.to_thread(read_page, page)
        canonical = None
        if not trusted:
            canonical = (await asyncio.to_thread(judge, page, document)).canonical
        return Readable(page=page, document=document, canonical=canonical)

    async def store(
        self,
        collection: Collection,
        asked: str,
        readable: Readable,
        rule: Rule,
        known: StoredPage | None,
        *,
        project: str | None,
    ) -> Fetched:
        """Store what was read, under the address asked for and those it led to."""
        page, now = readable.page, readable.page.fetched_at
        expires = now + lifetime(
            page.headers, now, least=rule.least_ttl, most=rule.most_ttl, default=rule.ttl
        )
        document, canonical = readable.document, readable.canonical
        if document is None:
            if known is None:
                raise NotCacheable(page.url, "it answered that nothing changed, unasked")
            number = known.id
            await self.database.retry(lambda: self._verified(number, now, expires))
            return "unchanged"
        return await self.database.retry(
            lambda: self._store(
                collection, asked, page, document, canonical, now, expires, project=project
            )
        )

    async def _verified(self, page: int, now: datetime, expires: datetime) -> None:
        async with self.database.connection() as connection:
            await cache.page_verified(connection, page, now=now, expires_at=expires)

    async def _store(
        self,
        collection: Collection,
        asked: str,
        page: Page,
        document: Document,
        canonical: str | None,
        now: datetime,
        expires: datetime,
        *,
        project: str | None,
    ) -> Fetched:
        final = normalise(page.url)
        names = [asked, *(normalise(hop) for hop in page.hops), final]
        async with self.database.transaction() as connection:
            url = final
            if canonical is not None and canonical != final:
                # A page may not speak for another one, unless that one says the same.
                other = await cache.page(connection, collection.id, canonical)
                same = other is not None and other.content_hash == documents.content_hash(
                    document.text
                )
                if same or (other is None and same_place(final, canonical)):
                    url = canonical
            change, number = await documents.upsert(
                connection, collection.id, Source(path=url, url=url), document
            )
            await cache.page_stored(
                connection,
                collection=collection.id,
                url=url,
                aliases=[name for name in dict.fromkeys(names) if name != url],
                document=number,
                # Validators belong to the address fetched, and are sent to the one stored.
                etag=page.etag if url == final else None,
                last_modified=page.last_modified if url == final else None,
                tokens=tokens(document.text),
                now=now,
                expires_at=expires,
                project=project,
            )
        if change == "unchanged":
            return "unchanged"
        return "stored" if change == "inserted" else "updated"


def spare(url: str, known: StoredPage | None) -> None:
    """Raises NotCacheable for a page that too many processes died on."""
    if known is not None and known.deaths >= cache.MAX_DEATHS:
        raise NotCacheable(
            url, f"{known.deaths} processes died while reading it; `vade store-page` tries it again"
        )


def written_page(url: str, markdown: str) -> Page:
    """A page whose text someone gives, as if it had been fetched."""
    return Page(
        url=url,
        content_type="text/markdown",
        data=markdown.encode(),
        etag=None,
        last_modified=None,
        fetched_at=datetime.now(UTC),
    )


def read_page(page: Page) -> Document:
    """The document of a fetched page. Raises UnreadableSource."""
    kind = page.content_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        document = read_bytes(page.data, name=page.url, content_type="text/plain; charset=utf-8")
        return replace(document, text=f"```json\n{document.text.strip()}\n```\n")
    try:
        return read_bytes(page.data, name=page.url, content_type=page.content_type)
    except UnreadableSource:
        if b"<script" in page.data[:500_000].lower():
            raise NotCacheable(page.url, "it is an empty shell that scripts would fill") from None
        raise
