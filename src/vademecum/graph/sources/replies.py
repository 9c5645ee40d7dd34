"""What servers of knowledge reply, in the order: fresh and kept, the official API, the page, kept.

routes --kept and fresh?--> Reply
       --ask each in turn--> Reply, kept
       --kept, however old--> Reply that says why it is old
"""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol

from vademecum.errors import BadStatus, UnreadableSource
from vademecum.graph.content import write_private
from vademecum.ingest.read import DOCUMENT, Page, Validators, Wanted
from vademecum.store import replies as rows
from vademecum.store.db import Database
from vademecum.store.replies import StoredReply
from vademecum.types import Document

Busy = Callable[[BadStatus], float | None]
How = Literal["kept", "fetched", "stale"]
JSON = Wanted(accept="application/json", types=frozenset({"application/json"}))


class Web(Protocol):
    """Whoever fetches: with turns, pauses, rules and the refusal of private addresses."""

    async def get(
        self, url: str, *, wanted: Wanted, validators: Validators, busy: Busy
    ) -> Page: ...

    async def read(self, page: Page) -> Document: ...

    async def leave_alone(self, url: str, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One way to what is wanted: the address of an API, or of a page."""

    url: str
    wanted: Wanted = DOCUMENT
    busy: Busy = field(default=lambda error: None, compare=False)
    """Seconds that a failure of this server asks to be left alone for."""
    keep: bool = True
    """Archives are read once and not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What one of the routes gave."""

    route: Route
    url: str
    """Where the redirects ended."""
    content_type: str
    data: bytes
    fetched_at: datetime
    """When it was fetched, or last found unchanged."""
    how: How
    reason: str = ""
    """Why it is stale: what those who were asked said."""

    def json(self) -> Any:
        """Raises UnreadableSource."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError) as error:
            raise UnreadableSource(self.url, f"it is not JSON ({error})") from error

    @property
    def page(self) -> Page:
        return Page(
            url=self.url,
            content_type=self.content_type,
            data=self.data,
            etag=None,
            last_modified=None,
            fetched_at=self.fetched_at,
        )


class Replies:
    """Kept as files of their owner only; the database holds what finds and checks them."""

    def __init__(
        self,
        database: Database,
        web: Web,
        *,
        folder: Path,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.web = web
        self._database = database
        self._folder = folder
        self._now = now
        self._anew = False

    def anew(self) -> "Replies":
        """The same where nothing kept counts: what cannot be had now is a failure."""
        other = Replies(self._database, self.web, folder=self._folder, now=self._now)
        other._anew = True
        return other

    async def first(self, *routes: Route, fresh_for: timedelta) -> Reply:
        """The reply of the first route that gives one. Raises UnreadableSource with all reasons."""
        known = [await self._known(route) for route in routes]
        if not self._anew:
            oldest = self._now() - fresh_for
            for reply in known:
                if reply is not None and reply.fetched_at > oldest:
                    return reply
        reasons: list[UnreadableSource] = []
        for route, kept in zip(routes, known, strict=True):
            try:
                return await self._fetch(route, kept)
            except UnreadableSource as error:
                reasons.append(error)
        reason = "; ".join(str(error) for error in reasons)
        old = next((reply for reply in known if reply is not None), None)
        if old is not None and not self._anew:
            return replace(old, how="stale", reason=reason)
        if len(reasons) == 1:
            raise reasons[0]
        others = [f"{error.source}: {error.reason}" for error in reasons[1:]]
        raise UnreadableSource(reasons[0].source, "; ".join([reasons[0].reason, *others]))

    async def get(self, url: str, *, fresh_for: timedelta, **of: Any) -> Reply:
        """The reply of one address; `of` are the other fields of its route."""
        return await self.first(Route(url=url, **of), fresh_for=fresh_for)

    async def document(self, reply: Reply) -> Document:
        """The page as a document that is worth keeping. Raises UnreadableSource."""
        return await self.web.read(reply.page)

    async def forget_older(self, before: datetime) -> int:
        """Remove replies that were not fetched since; how many."""
        async with self._database.connection() as connection:
            gone = await rows.remove_older(connection, before)
        for url, accept in gone:
            await asyncio.to_thread(self._path(url, accept).unlink, missing_ok=True)
        return len(gone)

    def _path(self, url: str, accept: str) -> Path:
        name = hashlib.sha256(f"{accept}\0{url}".encode()).hexdigest()
        return self._folder / name[:2] / name

    async def _known(self, route: Route) -> Reply | None:
        """What is kept of a route; None where the file is not the one that the row means."""
        stored = await self._row(route)
        if stored is None:
            return None
        path = self._path(route.url, route.wanted.accept)
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except OSError:
            return None
        if hashlib.sha256(data).hexdigest() != stored.digest:
            return None
        return Reply(
            route=route,
            url=stored.final_url,
            content_type=stored.content_type,
            data=data,
            fetched_at=stored.fetched_at,
            how="kept",
        )

    async def _row(self, route: Route) -> StoredReply | None:
        async with self._database.connection() as connection:
            return await rows.reply(connection, route.url, route.wanted.accept)

    async def _fetch(self, route: Route, kept: Reply | None) -> Reply:
        stored = await self._row(route) if kept is not None else None
        validators = Validators()
        if stored is not None and stored.final_url == route.url:
            # Validators belong to where they are from, and a redirect may lead elsewhere today.
            validators = Validators(etag=stored.etag, last_modified=stored.last_modified)
        page = await self.web.get(
            route.url, wanted=route.wanted, validators=validators, busy=route.busy
        )
        if page.unchanged:
            if kept is None or stored is None:
                raise UnreadableSource(route.url, "it answered that nothing changed, unasked")
            await self._keep(replace(stored, fetched_at=page.fetched_at))
            return replace(kept, how="fetched", fetched_at=page.fetched_at)
        if route.keep:
            path = self._path(route.url, route.wanted.accept)
            # The file first: a row that does not fit it counts as none.
            await asyncio.to_thread(write_private, path, page.data)
            await self._keep(
                StoredReply(
                    url=route.url,
                    accept=route.wanted.accept,
                    final_url=page.url,
                    content_type=page.content_type,
                    digest=hashlib.sha256(page.data).hexdigest(),
                    size=len(page.data),
                    etag=page.etag,
                    last_modified=page.last_modified,
                    fetched_at=page.fetched_at,
                )
            )
        return Reply(
            route=route,
            url=page.url,
            content_type=page.content_type,
            data=page.data,
            fetched_at=page.fetched_at,
            how="fetched",
        )

    async def _keep(self, stored: StoredReply) -> None:
        async def write() -> None:
            async with self._database.connection() as connection:
                await rows.keep(connection, stored)

        await self._database.retry(write)
