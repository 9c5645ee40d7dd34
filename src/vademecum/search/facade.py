"""Searching a collection with what there is: its embedder, its index, a reranker.

Query --search--> [Hit] --rerank--> [Hit]

What cannot take part is left out, and the result says so.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from vademecum.access import may_spend, require
from vademecum.errors import ModelUnavailable, NoVectors
from vademecum.inference.embedder import Embedder
from vademecum.inference.reranker import Reranker
from vademecum.search import pipeline
from vademecum.search.pipeline import Kept
from vademecum.search.query_vector import QueryVector, QueryVectors
from vademecum.search.rerank import SHORTLIST, STANDS, rerank
from vademecum.store import collections
from vademecum.store.collections import Collection
from vademecum.store.db import Database
from vademecum.store.lexical import KeptEntries
from vademecum.store.replica import Reads
from vademecum.types import Hit, Query
from vademecum.vectors.fallback import Fallback
from vademecum.vectors.kept import KeptChunks

ALONE = "the database does not answer: found in its replica, which may lack what is newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    query: str
    mode: str
    took_ms: float
    results: list[Hit]
    notices: list[str]
    """What the result lacks, such as a retriever that could not take part."""
    reranked_by: str | None = None
    """Who put the best hits in order; None where the fused order stands."""


class Searcher:
    def __init__(
        self,
        reads: Reads,
        *,
        embedder: Callable[[Collection], Embedder | None],
        index: Callable[[Collection], Awaitable[Fallback | None]],
        reranker: Callable[[], Reranker | None],
        rerank_ms: int,
        kept_bytes: int,
    ) -> None:
        """`index` is where the vectors of a collection are searched, None for PostgreSQL;
        `kept_bytes` is what collections in memory may take."""
        self._reads = reads
        self._embedder = embedder
        self._index = index
        self._reranker = reranker
        self._rerank_ms = rerank_ms
        self._chunks = KeptChunks(most=kept_bytes)
        self._kept = Kept(chunks=self._chunks)
        self._vectors = QueryVectors()

    @property
    def entries(self) -> KeptEntries:
        return self._kept.entries

    async def close(self) -> None:
        await self._chunks.close()

    async def search(self, query: Query) -> SearchResult:
        """Raises BadInput, UnknownCollection; ModelUnavailable in mode dense."""
        return await self._reads.read(lambda database: self._search_in(database, query))

    async def _search_in(self, database: Database, query: Query) -> SearchResult:
        # The connections at hand may be dead: a database of the cloud sleeps when idle.
        found = await database.retry(lambda: self._search(database, query), tries=2)
        if self._reads.alone and database is not self._reads.primary:
            found.notices.append(ALONE)
        return found

    async def _search(self, database: Database, query: Query) -> SearchResult:
        started = time.perf_counter()
        pipeline.check(query)
        require("read", query.collection)
        reranker = self._reranker() if query.rerank else None
        limit = query.limit if reranker is None else max(query.limit, SHORTLIST)
        with self._vectors.of(query) as vector:
            async with database.connection() as connection:
                target = await collections.find(connection, query.collection)
            mode, hits, notices = await self._found(
                database, target, replace(query, limit=limit), vector
            )
        by = None
        if reranker is not None:
            again = await rerank(hits, reranker, query.text, milliseconds=self._rerank_ms)
            hits, by = again.hits[: query.limit], again.by
            notices += [again.notice] if again.notice else []
        elif query.rerank and not may_spend():
            notices.append(f"no reranker without a language model is here: {STANDS}")
        elif query.rerank:
            notices.append(f"no reranker is here, VADE_RERANKER names one: {STANDS}")
        return SearchResult(
            query=query.text,
            mode=mode,
            took_ms=(time.perf_counter() - started) * 1000,
            results=hits,
            notices=notices,
            reranked_by=by,
        )

    async def _found(
        self, database: Database, target: Collection, query: Query, vector: QueryVector
    ) -> tuple[str, list[Hit], list[str]]:
        """The mode that was possible, what it found, and what there is to say about it."""
        notices: list[str] = []
        embedder = None
        if query.mode != "lexical":
            try:
                embedder = self._embedder(target)
            except ModelUnavailable as error:
                if query.mode == "dense":
                    raise
                notices.append(f"{error}: lexical search only")
            if embedder is None and query.mode == "dense":
                raise NoVectors(query.collection)
        index = await self._index(target)
        embedding = None if embedder is None else vector.by(embedder)
        try:
            hits = await pipeline.search(database, target, embedding, query, self._kept, index)
        except ModelUnavailable as error:  # a server of the model that went away since
            if query.mode == "dense":
                raise
            notices.append(f"{error}: lexical search only")
            embedder = None
            hits = await pipeline.search(database, target, None, query, self._kept)
        notices += index.notices if index is not None else []
        return (query.mode if embedder else "lexical"), hits, notices
