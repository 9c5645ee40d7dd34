"""Search: a query to the chunks that answer it.

Query --lexical--> ranking ┐
      --dense----> ranking ┴--fuse--> --deduplicate--> [Hit]
"""

import asyncio
from collections.abc import Mapping, Sequence

from vademecum.errors import BadInput
from vademecum.inference.embedder import Embedder
from vademecum.search.fuse import Fused, reciprocal_rank
from vademecum.search.lexical import lexical_hits
from vademecum.search.snippet import snippet
from vademecum.search.terms import query_terms
from vademecum.store import chunks
from vademecum.store.chunks import StoredChunk
from vademecum.store.collections import Collection
from vademecum.store.db import Database
from vademecum.types import ChunkId, Hit, Query, Scored
from vademecum.vectors import pgvector

DEPTH = 100
"""Chunks asked of each retriever: the spec's 16 lose pages that both rank in the middle."""
MAX_LIMIT = 100
MAX_QUERY_CHARACTERS = 10_000


def check(query: Query) -> None:
    """Raises BadInput for a query that cannot be searched for."""
    if not query.text.strip():
        raise BadInput("the query is empty")
    if "\x00" in query.text:
        raise BadInput("the query holds a zero byte")
    if len(query.text) > MAX_QUERY_CHARACTERS:
        raise BadInput(f"the query is longer than {MAX_QUERY_CHARACTERS} characters")
    if not 1 <= query.limit <= MAX_LIMIT:
        raise BadInput(f"k must be from 1 to {MAX_LIMIT}, not {query.limit}")
    if query.threshold is not None and not -1 <= query.threshold <= 1:
        raise BadInput(f"the threshold must be from -1 to 1, not {query.threshold}")


async def search(
    database: Database, collection: Collection, embedder: Embedder | None, query: Query
) -> list[Hit]:
    """The best hits of a checked query in its collection, best first."""
    lexical, dense = await asyncio.gather(
        _lexical(database, collection, query), _dense(database, collection, embedder, query)
    )
    fused = reciprocal_rank(
        {name: ranking for name, ranking in (("lexical", lexical), ("dense", dense)) if ranking}
    )
    async with database.connection() as connection:
        stored = await chunks.by_id(connection, collection.id, [hit.chunk_id for hit in fused])
    wanted = set(query_terms(query.text))
    return [
        _hit(hit, stored[hit.chunk_id], wanted) for hit in _distinct(fused, stored, query.limit)
    ]


async def _lexical(database: Database, collection: Collection, query: Query) -> Sequence[Scored]:
    if query.mode == "dense":
        return []
    async with database.connection() as connection:
        return await lexical_hits(
            connection,
            collection=collection.id,
            text=query.text,
            limit=DEPTH,
            keyword=query.keyword,
        )


async def _dense(
    database: Database, collection: Collection, embedder: Embedder | None, query: Query
) -> Sequence[Scored]:
    if query.mode == "lexical" or embedder is None or collection.space_id is None:
        return []
    vector = await embedder.embed_query(query.text)
    async with database.connection() as connection:
        return await pgvector.nearest(
            connection,
            space=collection.space_id,
            collection=collection.id,
            vector=vector,
            limit=DEPTH,
            keyword=query.keyword,
        )


def _distinct(
    fused: Sequence[Fused], stored: Mapping[ChunkId, StoredChunk], limit: int
) -> list[Fused]:
    """The best chunk of each section."""
    seen: set[tuple[int, str]] = set()
    kept = []
    for hit in fused:
        chunk = stored.get(hit.chunk_id)
        if chunk is None or (section := (chunk.document_id, chunk.section_id)) in seen:
            continue
        seen.add(section)
        kept.append(hit)
        if len(kept) == limit:
            break
    return kept


def _hit(fused: Fused, chunk: StoredChunk, wanted: set[str]) -> Hit:
    return Hit(
        chunk_id=fused.chunk_id,
        document_id=chunk.document_id,
        score=fused.score,
        title=chunk.title,
        collection=chunk.collection,
        path=chunk.path,
        url=chunk.url,
        heading_path=tuple(chunk.heading_path),
        section_id=chunk.section_id,
        ordinal=chunk.ordinal,
        text=chunk.text,
        snippet=snippet(chunk.text, wanted),
        contributions=fused.contributions,
    )
