"""The words of a query to the chunks that hold them, by BM25."""

from vademecum.search.terms import query_terms
from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import CollectionId, Scored

POSTINGS_CEILING = 20_000
"""Postings of the rarest terms that are scored at most; see the SQL function `lexical_hits`."""


async def lexical_hits(
    connection: Connection,
    *,
    collection: CollectionId,
    text: str,
    limit: int,
    keyword: str | None = None,
    ceiling: int = POSTINGS_CEILING,
) -> list[Scored]:
    """The chunks that match best, best first; none where no word of the query is known."""
    counts = query_terms(text)
    if not counts:
        return []
    cursor = await connection.execute(
        SQL["lexical_hits"],
        {
            "collection": collection,
            "terms": list(counts),
            "counts": [float(count) for count in counts.values()],
            "keyword": keyword,
            "limit": limit,
            "ceiling": ceiling,
        },
    )
    return [Scored(chunk_id=chunk, score=score) for chunk, score in await cursor.fetchall()]
