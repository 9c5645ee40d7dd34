"""A mirror to search in, and PostgreSQL while that is away."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from vademecum.errors import BadSetting, MissingExtra, VectorStoreUnavailable
from vademecum.types import ChunkId, DocumentId, Scored, Vector
from vademecum.vectors.index import ANY, Filter, Nearest

SEARCH_SECONDS = 3.0
"""A search waits no longer for the store."""
LOOK_AGAIN_SECONDS = 5.0


class Away:
    """Until when a store is not asked again, since it did not answer; shared by searches."""

    def __init__(self) -> None:
        self.until = 0.0
        self.why = ""

    def note(self, why: str) -> None:
        self.until, self.why = time.monotonic() + LOOK_AGAIN_SECONDS, why

    @property
    def now(self) -> bool:
        return time.monotonic() < self.until


class Fallback:
    """The index of one search. `notices` say where it was not answered by the mirror."""

    def __init__(
        self,
        mirror: Callable[[], Awaitable[Nearest]],
        otherwise: Nearest,
        away: Away,
        *,
        known: Callable[[Sequence[ChunkId]], Awaitable[Mapping[ChunkId, DocumentId]]],
        unfiltered: frozenset[str] = frozenset(),
    ) -> None:
        """`known` tells the documents of those chunks that PostgreSQL holds in the collection;
        `unfiltered` are facets that only PostgreSQL can filter by."""
        self._unfiltered = unfiltered
        self._mirror, self._otherwise, self._away = mirror, otherwise, away
        self._known = known
        self.notices: list[str] = []

    async def nearest(self, vector: Vector, *, limit: int, where: Filter = ANY) -> list[Scored]:
        if any(condition.facet in self._unfiltered for condition in where.conditions):
            return await self._otherwise.nearest(vector, limit=limit, where=where)
        if not self._away.now:
            try:
                mirror = await self._mirror()
                async with asyncio.timeout(SEARCH_SECONDS):
                    found = await mirror.nearest(vector, limit=limit, where=where)
                return await self._checked(found)
            except (BadSetting, MissingExtra, VectorStoreUnavailable) as error:
                self._away.note(str(error))
            except TimeoutError:
                self._away.note(f"the vector store does not answer within {SEARCH_SECONDS:.0f} s")
        self.notices.append(f"{self._away.why}: searched in PostgreSQL instead")
        return await self._otherwise.nearest(vector, limit=limit, where=where)

    async def _checked(self, found: Sequence[Scored]) -> list[Scored]:
        """What PostgreSQL knows of it: the store may be behind, or hold what is not ours."""
        documents = await self._known([scored.chunk_id for scored in found])
        return [
            replace(scored, document_id=documents[scored.chunk_id])
            for scored in found
            if scored.chunk_id in documents
        ]
