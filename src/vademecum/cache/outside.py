"""The manners and rules of the cache, for knowledge that is kept elsewhere than as pages."""

import asyncio
from collections.abc import Callable

from vademecum.cache.address import normalise
from vademecum.cache.judge import judge
from vademecum.cache.state import CacheState
from vademecum.cache.store import read_page
from vademecum.errors import BadStatus, HostBusy, NotCacheable
from vademecum.ingest.read import DOCUMENT, Page, Validators, Wanted, fetch
from vademecum.types import Document

UNCONDITIONAL = Validators()
Busy = Callable[[BadStatus], float | None]
"""Seconds that a server asks to be left alone for by a failure; None where it does not."""


class Outside:
    """Private addresses are refused, hosts have their pauses, `cache.toml` counts."""

    def __init__(self, state: CacheState) -> None:
        self._state = state

    async def get(
        self,
        url: str,
        *,
        wanted: Wanted = DOCUMENT,
        validators: Validators = UNCONDITIONAL,
        busy: Busy = lambda error: None,
    ) -> Page:
        """What an address answers now, when it is its host's turn.

        Raises UnreadableSource and its kinds: HostBusy also where `busy` says that a failure asks
        for patience.
        """
        address = normalise(url)
        rule = self._state.rules.of(address)
        if rule.action != "cache":
            raise NotCacheable(address, "a rule says not to store it")
        fetcher = self._state.fetcher
        async with fetcher.politeness.turn(address, patient=True):
            try:
                return await fetch(
                    address,
                    max_bytes=fetcher.max_bytes,
                    allow_private=rule.private_network,
                    timeout=fetcher.timeout,
                    validators=validators,
                    wanted=wanted,
                )
            except BadStatus as error:
                seconds = busy(error)
                if seconds is None:
                    raise
                raise HostBusy(address, error.status, seconds) from error

    async def read(self, page: Page) -> Document:
        """The document of a page that is worth keeping. Raises NotCacheable, UnreadableSource."""
        document = await asyncio.to_thread(read_page, page)
        await asyncio.to_thread(judge, page, document)
        return document

    async def leave_alone(self, url: str, seconds: float) -> None:
        """Ask nothing of a host for so long, from any process of the database."""
        await self._state.fetcher.politeness.leave_alone(url, seconds)
