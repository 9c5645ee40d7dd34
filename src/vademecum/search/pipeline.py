"""Search: a query to the chunks that answer it.

Query --lexical--> ranking ┐
      --dense----> ranking ┴--documents--complete--> candidates --fuse--boost--> [Hit]
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Collection as Ids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vademecum.errors import BadInput
from vademecum.inference.embedder import Embedder
from vademecum.search.boost import BOOSTABLE, boosted
from vademecum.search.fuse import Candidates, Fused, fuse
from vademecum.search.lexical import (
    LexicalScore,
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
from vademecum.types import ChunkId, Contribution, DocumentId, Hit, Query, Scored, Vector
from vademecum.vectors import pgvector

# Measured together: docs/decisions/0006-fusion.md.
DEPTH = 100
"""Chunks asked of each retriever."""
DOCUMENTS = 40
"""Best documents of these of which all chunks are scored, by both retrievers."""
WEIGHTS = {"lexical": 0.6, "dense": 0.4}
CHUNKS_PER_DOCUMENT = 400
"""No more of one document are looked at: a book should not slow down every search."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
MAX_LIMIT = 100
MAX_QUERY_CHARACTERS = 10_000


def check(query: Query) -> None:
    """Raises BadInput for a query that cannot be searched for."""
    if not query.text.strip():
        raise BadInput("the query is empty")
    if _UNSTORABLE.search(query.text + (query.keyword or "")):
        raise BadInput("the query holds a zero byte or half a character")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the retrievers that took part found, best first."""

    terms: WeightedTerms | None
    vector: Vector | None
    rankings: Mapping[str, Sequence[Scored]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """What each retriever says of the candidates, as it says it."""

    lexical: Mapping[ChunkId, LexicalScore]
    dense: Mapping[ChunkId, Scored]


async def search(
    database: Database, collection: Collection, embedder: Embedder | None, query: Query
) -> list[Hit]:
    """The best hits of a checked query in its collection, best first."""
    found = await _find(database, collection, embedder, query)
    scores = await _complete(database, collection, found, _best_documents(found))
    fused = fuse(_candidates(found, scores, query.threshold), _weights(found))
    wanted = query_terms(query.text)
    if query.boost:
        fused = boosted(fused, await _stored(database, collection, fused), wanted, query.boost)
    best, stored = await _distinct(database, collection, fused, query.limit)
    return [_hit(hit, stored[hit.chunk_id], wanted, found, scores) for hit in best]


async def _find(
    database: Database, collection: Collection, embedder: Embedder | None, query: Query
) -> _Found:
    (terms, lexical), (vector, dense) = await asyncio.gather(
        _lexical(database, collection, query), _dense(database, collection, embedder, query)
    )
    rankings: dict[str, Sequence[Scored]] = {}
    if terms is not None:
        rankings["lexical"] = lexical
    if vector is not None:
        rankings["dense"] = dense
    return _Found(terms=terms, vector=vector, rankings=rankings)


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


def _best_documents(found: _Found) -> set[DocumentId]:
    """The documents that are worth a closer look, by their best chunk in each ranking.

    One that a ranking does not hold is taken to score there as the last one of it.
    """
    totals: dict[DocumentId, float] = defaultdict(float)
    for name, ranking in found.rankings.items():
        if not ranking:
            continue
        scale = 1 / found.terms.bound if name == "lexical" and found.terms else 1.0
        best: dict[DocumentId, float] = {}
        for scored in ranking:
            best.setdefault(scored.document_id, scored.score)
        for document, score in best.items():
            totals[document] += WEIGHTS[name] * scale * (score - ranking[-1].score)
    return set(sorted(totals, key=lambda d: (-totals[d], d))[:DOCUMENTS])


async def _complete(
    database: Database, collection: Collection, found: _Found, documents: Ids[DocumentId]
) -> _Scores:
    """Every retriever's score of every chunk of these documents, found by it or not."""

    async def lexical() -> Sequence[LexicalScore]:
        if found.terms is None:
            return []
        async with database.connection() as connection:
            return await lexical_scores(
                connection,
                collection.id,
                found.terms,
                documents=documents,
                found=[s.chunk_id for ranking in found.rankings.values() for s in ranking],
                chunks_per_document=CHUNKS_PER_DOCUMENT,
            )

    async def dense() -> Sequence[Scored]:
        if found.vector is None or collection.space_id is None:
            return []
        async with database.connection() as connection:
            return await pgvector.similarities(
                connection,
                space=collection.space_id,
                collection=collection.id,
                vector=found.vector,
                documents=documents,
                windows_per_document=CHUNKS_PER_DOCUMENT,
            )

    by_word, by_meaning = await asyncio.gather(lexical(), dense())
    ranked = [s for s in found.rankings.get("dense", ()) if s.document_id in documents]
    return _Scores(
        lexical={score.chunk_id: score for score in by_word},
        dense={scored.chunk_id: scored for scored in (*by_meaning, *ranked)},
    )


def _candidates(found: _Found, scores: _Scores, threshold: float | None) -> Candidates:
    """The chunks that are similar enough; a word score of a chunk without words is 0."""
    documents = {chunk: score.document_id for chunk, score in scores.lexical.items()}
    documents |= {chunk: score.document_id for chunk, score in scores.dense.items()}
    if threshold is not None:
        documents = {
            chunk: document
            for chunk, document in documents.items()
            if chunk in scores.dense and scores.dense[chunk].score >= threshold
        }
    values = {
        "lexical": [s.calibrated if (s := scores.lexical.get(c)) else 0.0 for c in documents],
        "dense": [d.score if (d := scores.dense.get(c)) else 0.0 for c in documents],
    }
    return Candidates(
        chunks=list(documents),
        documents=list(documents.values()),
        scores={name: np.array(values[name]) for name in found.rankings},
    )


def _weights(found: _Found) -> Mapping[str, float]:
    """Those who did not take part leave their weight to the others."""
    total = sum(WEIGHTS[name] for name in found.rankings)
    return {name: WEIGHTS[name] / total for name in found.rankings}


async def _stored(
    database: Database, collection: Collection, fused: Sequence[Fused]
) -> Mapping[ChunkId, StoredChunk]:
    async with database.connection() as connection:
        return await chunks.by_id(connection, collection.id, [hit.chunk_id for hit in fused])


async def _distinct(
    database: Database, collection: Collection, fused: Sequence[Fused], limit: int
) -> tuple[list[Fused], Mapping[ChunkId, StoredChunk]]:
    """The best chunk of each section, and the chunks' texts; rarely more than a look is needed."""
    for looked_at in (limit * 2, len(fused)):
        stored = await _stored(database, collection, fused[:looked_at])
        best: dict[tuple[DocumentId, str], Fused] = {}
        for hit in fused[:looked_at]:
            if (chunk := stored.get(hit.chunk_id)) is not None:
                best.setdefault((chunk.document_id, chunk.section_id), hit)
        if len(best) >= limit or looked_at >= len(fused):
            break
    return list(best.values())[:limit], stored


def _hit(
    fused: Fused,
    chunk: StoredChunk,
    wanted: Mapping[str, int],
    found: _Found,
    scores: _Scores,
) -> Hit:
    said = {
        "lexical": s.bm25 if (s := scores.lexical.get(fused.chunk_id)) else 0.0,
        "dense": d.score if (d := scores.dense.get(fused.chunk_id)) else 0.0,
    }
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
        contributions=tuple(
            Contribution(
                retriever=name,
                rank=_rank(found.rankings.get(name, ()), fused.chunk_id),
                score=said.get(name, 0.0),
                share=share,
            )
            for name, share in fused.shares.items()
        ),
    )


def _rank(ranking: Sequence[Scored], chunk: ChunkId) -> int:
    return next((rank for rank, scored in enumerate(ranking, 1) if scored.chunk_id == chunk), 0)
