"""Search: a query to the chunks that answer it.

Query --lexical--> ranking ┐
      --dense----> ranking ┴--complete--> [Candidate] --fuse--> --boost--> [Hit]
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vademecum.errors import BadInput
from vademecum.inference.embedder import Embedder
from vademecum.search.boost import BOOSTABLE, boosted
from vademecum.search.fuse import Candidate, Fused, calibrated, contributions
from vademecum.search.lexical import (
    Placed,
    WeightedTerms,
    lexical_hits,
    lexical_scores,
    weighted_terms,
)
from vademecum.search.snippet import snippet
from vademecum.search.terms import query_terms
from vademecum.store import chunks
from vademecum.store.chunks import StoredChunk
from vademecum.store.collections import Collection
from vademecum.store.db import Database
from vademecum.types import ChunkId, DocumentId, Hit, Query, Scored, Vector
from vademecum.vectors import pgvector

DEPTH = 100
"""Chunks asked of each retriever: with the spec's 16, documents that both rank in the middle and
those with many fair chunks are lost."""
WEIGHTS = {"lexical": 0.5, "dense": 0.5}
MAX_LIMIT = 100
MAX_QUERY_CHARACTERS = 10_000


def check(query: Query) -> None:
    """Raises BadInput for a query that cannot be searched for."""
    if not query.text.strip():
        raise BadInput("the query is empty")
    if "\x00" in query.text + (query.keyword or ""):
        raise BadInput("the query holds a zero byte")
    if len(query.text) > MAX_QUERY_CHARACTERS:
        raise BadInput(f"the query is longer than {MAX_QUERY_CHARACTERS} characters")
    if not 1 <= query.limit <= MAX_LIMIT:
        raise BadInput(f"k must be from 1 to {MAX_LIMIT}, not {query.limit}")
    if query.threshold is not None and not -1 <= query.threshold <= 1:
        raise BadInput(f"the threshold must be from -1 to 1, not {query.threshold}")
    if query.threshold is not None and query.mode == "lexical":
        raise BadInput("a threshold needs mode hybrid or dense: it is a cosine similarity")
    if unknown := set(query.boost) - BOOSTABLE:
        raise BadInput(
            f"there is no field {', '.join(sorted(unknown))} to boost",
            hint=f"Fields are {', '.join(sorted(BOOSTABLE))}.",
        )


@dataclass(slots=True, kw_only=True)
class _Evidence:
    """What the retrievers found, and what each says of what the others found."""

    rankings: dict[str, Sequence[Scored]] = field(default_factory=dict)
    raw: dict[str, dict[ChunkId, float]] = field(default_factory=dict)
    places: dict[ChunkId, Placed] = field(default_factory=dict)


async def search(
    database: Database, collection: Collection, embedder: Embedder | None, query: Query
) -> list[Hit]:
    """The best hits of a checked query in its collection, best first."""
    (terms, lexical), (vector, dense) = await asyncio.gather(
        _lexical(database, collection, query), _dense(database, collection, embedder, query)
    )
    evidence = await _complete(database, collection, terms, vector, lexical, dense)
    fused = _fuse(evidence, terms, query)
    wanted = query_terms(query.text)
    if query.boost:
        fused = boosted(fused, await _stored(database, collection, fused), wanted, query.boost)
    best = _distinct(fused, evidence.places, query.limit)
    stored = await _stored(database, collection, best)
    return [
        _hit(hit, stored[hit.chunk_id], wanted, evidence) for hit in best if hit.chunk_id in stored
    ]


async def _stored(
    database: Database, collection: Collection, fused: Sequence[Fused]
) -> Mapping[ChunkId, StoredChunk]:
    async with database.connection() as connection:
        return await chunks.by_id(connection, collection.id, [hit.chunk_id for hit in fused])


async def _lexical(
    database: Database, collection: Collection, query: Query
) -> tuple[WeightedTerms | None, list[Scored]]:
    if query.mode == "dense":
        return None, []
    async with database.connection() as connection:
        terms = await weighted_terms(connection, collection.id, query.text)
        if terms is None:
            return None, []
        return terms, await lexical_hits(
            connection, terms, limit=DEPTH, exact=query.limit, keyword=query.keyword
        )


async def _dense(
    database: Database, collection: Collection, embedder: Embedder | None, query: Query
) -> tuple[Vector | None, list[Scored]]:
    if query.mode == "lexical" or embedder is None or collection.space_id is None:
        return None, []
    vector = await embedder.embed_query(query.text)
    async with database.connection() as connection:
        return vector, await pgvector.nearest(
            connection,
            space=collection.space_id,
            collection=collection.id,
            vector=vector,
            limit=DEPTH,
            keyword=query.keyword,
        )


async def _complete(
    database: Database,
    collection: Collection,
    terms: WeightedTerms | None,
    vector: Vector | None,
    lexical: list[Scored],
    dense: list[Scored],
) -> _Evidence:
    """Every retriever's score of every candidate, also of those it did not find itself."""
    evidence = _Evidence()
    found = {scored.chunk_id for scored in (*lexical, *dense)}

    async def lexical_view() -> None:
        async with database.connection() as connection:
            evidence.places = await lexical_scores(connection, collection.id, terms, found)
        if terms is not None:
            evidence.rankings["lexical"] = lexical
            evidence.raw["lexical"] = {c: placed.score for c, placed in evidence.places.items()}

    async def dense_view() -> None:
        if vector is None or collection.space_id is None:
            return
        known = {scored.chunk_id: scored.score for scored in dense}
        async with database.connection() as connection:
            known |= await pgvector.similarities(
                connection,
                space=collection.space_id,
                collection=collection.id,
                vector=vector,
                chunks=found - known.keys(),
            )
        evidence.rankings["dense"] = dense
        evidence.raw["dense"] = known

    await asyncio.gather(lexical_view(), dense_view())
    return evidence


def _fuse(evidence: _Evidence, terms: WeightedTerms | None, query: Query) -> list[Fused]:
    """Candidates above the threshold, by all retrievers that took part."""
    scale = {"dense": 1.0, "lexical": 1 / terms.bound if terms else 1.0}
    similar = evidence.raw.get("dense", {})
    candidates = [
        Candidate(
            chunk_id=chunk,
            document_id=place.document_id,
            scores={
                retriever: scores.get(chunk, 0.0) * scale[retriever]
                for retriever, scores in evidence.raw.items()
            },
        )
        for chunk, place in evidence.places.items()
        if query.threshold is None or similar.get(chunk, -1.0) >= query.threshold
    ]
    total = sum(WEIGHTS[retriever] for retriever in evidence.raw)
    weights = {retriever: WEIGHTS[retriever] / total for retriever in evidence.raw}
    return calibrated(candidates, weights)


def _distinct(fused: Sequence[Fused], places: Mapping[ChunkId, Placed], limit: int) -> list[Fused]:
    """The best chunk of each section."""
    best: dict[tuple[DocumentId, str], Fused] = {}
    for hit in fused:
        place = places[hit.chunk_id]
        best.setdefault((place.document_id, place.section_id), hit)
        if len(best) == limit:
            break
    return list(best.values())


def _hit(fused: Fused, chunk: StoredChunk, wanted: Mapping[str, int], evidence: _Evidence) -> Hit:
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
        contributions=contributions(fused, evidence.rankings, evidence.raw),
    )
