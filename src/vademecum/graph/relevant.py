"""Documents that matter for a task: many found by words and meaning, few left by relevance."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from vademecum.graph import learning
from vademecum.graph.learning import Scored
from vademecum.graph.writing import EXTERNAL
from vademecum.store import knowledge
from vademecum.store.db import Database
from vademecum.types import EntityId, Hit, Query

CANDIDATES = 100
"""Documents that words and meaning leave to be scored."""
FLOOR = 0.5
"""Of the best hit's score. Trust and use weigh four times what similarity weighs: among few
documents they would put a trusted one about something else first."""


def query(text: str, *, language: str, package: str, category: str) -> Query:
    """What the documents are searched for."""
    wanted = {"language": language.lower(), "package": package.lower(), "category": category}
    return Query(
        text=text,
        collection=EXTERNAL,
        limit=CANDIDATES,
        snippets=False,
        filters=tuple(f"{facet}={value}" for facet, value in wanted.items() if value),
    )


async def best(
    database: Database, hits: list[Hit], *, limit: int, now: datetime
) -> list[tuple[Scored, Hit]]:
    """The most relevant documents among the hits, the best first."""
    by_document: dict[EntityId, Hit] = {}
    least = FLOOR * max((hit.score for hit in hits), default=0.0)
    for hit in hits:
        if hit.url is not None and hit.score >= least:
            by_document.setdefault(EntityId(UUID(hit.url.removeprefix("urn:uuid:"))), hit)
    similar = _similarity(by_document)
    async with database.connection() as connection:
        uses = await knowledge.uses_of(connection, by_document)
    scored = [
        (learning.scored(use, now=now, similarity=similar[number]), by_document[number])
        for number, use in uses.items()
    ]
    scored.sort(key=lambda pair: (-pair[0].relevance.relevance, str(pair[0].id)))
    return scored[:limit]


def _similarity(hits: Mapping[EntityId, Hit]) -> dict[EntityId, float]:
    """From 0 to 1: the cosine where there are vectors, else the share of the best score."""
    most = max((hit.score for hit in hits.values()), default=0.0)
    found = {}
    for number, hit in hits.items():
        dense = [each.score for each in hit.contributions if each.retriever == "dense"]
        found[number] = dense[0] if dense else hit.score / most if most > 0 else 0.0
    return found
