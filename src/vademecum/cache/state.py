"""What the cache works with: its database, its rules, its manners, and whether its events count."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from vademecum.cache.polite import Politeness
from vademecum.cache.rules import Rule, Rules, load_rules
from vademecum.cache.store import Fetcher
from vademecum.inference.embedder import Embedder
from vademecum.store.cache import Event
from vademecum.store.collections import Collection
from vademecum.store.db import Database


class CacheState:
    """One for each open cache; whatever acts on it names the project it acts for."""

    def __init__(
        self,
        database: Database,
        *,
        home: Path,
        max_bytes: int,
        collection_for: Callable[[str], Awaitable[Collection]],
        searchable_embedder: Callable[[Collection], Embedder | None],
    ) -> None:
        self.database = database
        self.home = home
        self.collection_for = collection_for
        self.searchable_embedder = searchable_embedder
        self.fetcher = Fetcher(
            database=database, politeness=Politeness(database), max_bytes=max_bytes
        )
        self.collections: dict[str, Collection] = {}
        self.events: list[Event] = []
        """Still to be written, by the task that is kept here so that it is not collected."""
        self.written: asyncio.Task[None] | None = None
        self.writing = asyncio.Lock()
        self.counts = True
        """Whether events are written, and so counted in the report."""

    @cached_property
    def rules(self) -> Rules:
        """Raises BadSetting where `cache.toml` cannot be used."""
        return load_rules(self.home)

    def trial(self, project: str, rule: Rule) -> "CacheState":
        """The same with one more rule, whose project keeps its pages to itself; nothing of it
        counts."""
        other = copy.copy(self)
        other.counts = False
        other.collections = {}
        other.rules = replace(
            self.rules,
            rules=(rule, *self.rules.rules),
            private_projects=(project, *self.rules.private_projects),
        )
        return other
