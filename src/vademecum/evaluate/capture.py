"""Real searches as questions: what was asked, and which of the sources found was then read.

search --remembered in this process--> read of a source that it found --gate--> a row of the log
                                                        rows --group--> [Question] to be edited

A search is written down only when one of its sources is read, and only if the privacy gate lets its
query through. Nothing else is kept: not who asked, not what was read.
"""

import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from vademecum.evaluate.gold import Expectation, Question
from vademecum.store import searches
from vademecum.store.db import Database
from vademecum.store.searches import UsedSource
from vademecum.types import CollectionId, Hit

REMEMBERED = 200
"""Searches, the last ones of a process."""
SECONDS = 30 * 60
"""After which reading a source is not taken to follow from a search."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    collection: str
    query: str
    hits: Sequence[Hit]
    at: float
    used: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A candidate for a gold file."""

    question: Question
    note: str


class SearchLog:
    """Notes the use of sources for `days`; 0 is not at all."""

    def __init__(self, database: Database, *, days: int) -> None:
        self._database = database
        self.days = days
        self._recent: deque[_Search] = deque(maxlen=REMEMBERED)

    def searched(self, collection: str, query: str, hits: Sequence[Hit]) -> None:
        """Remember a search in memory, in case one of its hits is read."""
        if self.days and hits:
            self._recent.append(
                _Search(collection=collection, query=query, hits=hits, at=time.monotonic())
            )

    async def used(
        self, collection: str, number: CollectionId, path: str, section: str | None
    ) -> None:
        """Note that a source was read, if the newest search that found it may be kept."""
        search = self._found_by(collection, path, section)
        place = (path, section or "")
        if search is None or place in search.used or not harmless(search.query, search.hits):
            return
        search.used.add(place)
        async with self._database.transaction() as connection:
            await searches.forget_old(connection, days=self.days)
            await searches.note(
                connection, number, query=search.query, path=path, section=section or ""
            )

    def _found_by(self, collection: str, path: str, section: str | None) -> _Search | None:
        oldest = time.monotonic() - SECONDS
        for search in reversed(self._recent):
            if search.at < oldest:
                break
            if search.collection == collection and any(
                hit.path == path and section in (None, hit.section_id) for hit in search.hits
            ):
                return search
        return None


def harmless(query: str, hits: Sequence[Hit]) -> bool:
    """Whether the privacy gate passes the query as it is. A word that the sources found hold is no
    secret of whoever asked."""
    from vademecum.memory.privacy import gate

    said = {word.casefold() for hit in hits for word in _WORD.findall(f"{hit.title} {hit.text}")}
    allowed = [word for word in _WORD.findall(query) if word.casefold() in said]
    passed = gate(query, allowed=allowed)
    return bool(passed.kept) and not passed.dropped and not passed.generalised


def questions(used: Sequence[UsedSource]) -> list[Captured]:
    """A question for each query, the sources read after it as what it expects."""
    found = []
    for number, (_, group) in enumerate(groupby(used, key=lambda one: one.query.casefold()), 1):
        sources = list(group)
        expect = tuple(
            dict.fromkeys(
                Expectation(path_contains=one.path, section_contains=one.section_id or None)
                for one in sources
            )
        )
        uses, last = sum(one.uses for one in sources), max(one.last_used for one in sources)
        found.append(
            Captured(
                question=Question(id=f"c{number}", query=sources[0].query, expect=expect),
                note=f"read {uses} time{'' if uses == 1 else 's'}, last {last:%Y-%m-%d}",
            )
        )
    return found
