"""Search: a query to the chunks that answer it.

Query --lexical--> ranking ┐
      --dense----> ranking ┴--> candidates --fuse--boost--> [Hit]

Each retriever looks at what it found with the other one's eyes, too, while that one works.
"""

import asyncio
import re
from asyncio import Task
from collections.abc import Collection as Ids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vademecum.errors import BadInput
from vademecum.profiles.profile import load_profile
from vademecum.ranking import Ranking, ranking_of
from vademecum.search.boost import BOOSTABLE, boosts
from vademecum.search.candidates import Candidates, candidates
from vademecum.search.filters import met, parse_filters
from vademecum.search.fuse import WEIGHTS, fuse
from vademecum.search.lexical import LexicalRanking, Matches, best_kept, best_matches, matches
from vademecum.search.snippet import snippet
from vademecum.search.terms import query_terms
from vademecum.store import chunks, documents, facets, lexical, reading
from vademecum.store.chunks import StoredChunk
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.lexical import KeptEntries
from vademecum.types import (
    ChunkId,
    Condition,
    Contribution,
    DocumentId,
    Hit,
    Query,
    Vector,
)
from vademecum.vectors import pgvector
from vademecum.vectors.index import Filter, Narrowed, Nearest
from vademecum.vectors.kept import KeptChunks
from vademecum.vectors.view import View

# Measured together: docs/decisions/0006-fusion.md.
DEPTH = 100
"""Chunks asked of each retriever."""
BOOSTED = 250
"""Best candidates that a boost may move."""
PER_HIT = 10
"""Best candidates looked at for each hit wanted, since several may be of one section."""

TRIES = 3
"""A writer may replace a document between two looks at it; a search that saw that looks again, so
that it sees the document as it was or as it is."""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
MAX_LIMIT = 100
MAX_QUERY_CHARACTERS = 10_000


def check(query: Query) -> None:
    """Raises BadInput for a query that cannot be searched for."""
    if not query.text.strip():
        raise BadInput("the query is empty")
    if _UNSTORABLE.search(query.text + (query.keyword or "") + "".join(query.filters)):
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
class Kept:
    """What one process keeps of what it reads for searches."""

    entries: KeptEntries = field(default_factory=KeptEntries)
    chunks: KeptChunks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the retrievers that took part found, best first."""

    matches: Matches | None
    words: LexicalRanking | None
    near: Ranking | None

    @property
    def rankings(self) -> dict[str, Ranking]:
        """Of the retrievers that took part."""
        by_words = {"lexical": self.words.hits} if self.words is not None else {}
        return by_words | ({"dense": self.near} if self.near is not None else {})

    @property
    def outdated(self) -> bool:
        """Whether something of it was written anew meanwhile."""
        return self.words is not None and self.words.outdated


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """A candidate with its score and the shares it consists of; `index` is its place among them."""

    index: int
    chunk_id: ChunkId
    score: float
    shares: Mapping[str, float]


async def search(
    database: Database,
    collection: Collection,
    embedding: Task[Vector] | None,
    query: Query,
    kept: Kept,
    index: Nearest | None = None,
) -> list[Hit]:
    """The best hits of a checked query in its collection, best first.

    `embedding` makes a vector of the query in the collection's space, None for a search by words
    only; `kept` is what was read before; `index` finds the nearest chunks where they are looked for
    elsewhere than in PostgreSQL.
    """
    conditions: Sequence[Condition] = ()
    if query.filters:
        conditions = parse_filters(
            query.filters, load_profile(collection.profile, collection.declaration)
        )
    within = await _let_through(database, collection, query, conditions)
    if within == []:
        return []
    if index is not None:
        index = Narrowed(index, Filter(conditions=tuple(conditions), documents=within))
    wanted = query_terms(query.text)
    for tried in range(1, TRIES + 1):
        found = await _find(database, collection, embedding, query, within, index, kept)
        if not found.rankings:
            return []
        seen = candidates(found.words, found.matches, found.near)
        if (found.outdated or seen.outdated) and tried < TRIES:
            continue
        ranks = _rank(seen, found, query)
        async with database.connection() as connection:
            ranked = (
                await _boost(connection, collection, ranks, wanted, query)
                if query.boost
                else ranks.of_sections()
            )
            best = await _distinct(connection, collection, ranked, query.limit, conditions)
        if not best.gone:
            break
    places = {
        name: {number: place for place, number in enumerate(ranking["number"].tolist(), 1)}
        for name, ranking in found.rankings.items()
    }
    shown = wanted if query.snippets else None
    return [_hit(hit, best.stored[hit.chunk_id], shown, places, seen) for hit in best.hits]


async def _let_through(
    database: Database,
    collection: Collection,
    query: Query,
    conditions: Sequence[Condition],
) -> list[DocumentId] | None:
    """The documents that meet the conditions, hold the keyword and are of the parent; None where
    all may be found."""
    within = await _passing(database, collection, query, conditions)
    if query.parent is None:
        return within
    async with database.connection() as connection:
        of_parent = await reading.documents_of_parent(connection, collection.id, query.parent)
    return [document for document in of_parent if within is None or document in within]


async def _passing(
    database: Database,
    collection: Collection,
    query: Query,
    conditions: Sequence[Condition],
) -> list[DocumentId] | None:
    if not conditions and query.keyword is None:
        return None
    async with database.connection() as connection:
        if query.keyword is None:
            return await facets.matching(connection, collection.id, conditions)
        holding = await documents.holding(connection, collection.id, query.keyword)
        if not conditions:
            return holding
        meeting = set(await facets.matching(connection, collection.id, conditions))
        return [document for document in holding if document in meeting]


async def _find(
    database: Database,
    collection: Collection,
    embedding: Task[Vector] | None,
    query: Query,
    within: Sequence[DocumentId] | None,
    index: Nearest | None,
    kept: Kept,
) -> _Found:
    if index is None and kept.chunks is not None and kept.chunks.worth(collection):
        held = await _matches(database, collection, query, within, kept)
        segments = None if held is None else held.statistics.segments
        view = await kept.chunks.view(database, collection, segments)
        if view is not None:
            return await _find_in(view, held, within, embedding)
    (held, words), near = await asyncio.gather(
        _lexical(database, collection, query, within, embedding, kept),
        _dense(database, collection, query, within, index, embedding),
    )
    return _Found(matches=held, words=words, near=near)


async def _find_in(
    view: View,
    held: Matches | None,
    within: Sequence[DocumentId] | None,
    embedding: Task[Vector] | None,
) -> _Found:
    """In a collection in memory. What needs no vector is done while the query becomes one."""
    words = None if held is None else best_kept(view, held, limit=DEPTH)
    if embedding is None:
        return _Found(matches=held, words=words, near=None)
    vector = await embedding
    if words is not None:
        words = replace(words, similarities=view.similarities(words.numbers, vector))
    near = view.nearest(vector, limit=DEPTH, documents=within)
    return _Found(matches=held, words=words, near=near)


async def _matches(
    database: Database,
    collection: Collection,
    query: Query,
    within: Sequence[DocumentId] | None,
    kept: Kept,
) -> Matches | None:
    if query.mode == "dense":
        return None
    async with database.connection() as connection:
        return await matches(connection, collection.id, query.text, kept.entries, documents=within)


async def _lexical(
    database: Database,
    collection: Collection,
    query: Query,
    within: Sequence[DocumentId] | None,
    embedding: Task[Vector] | None,
    kept: Kept,
) -> tuple[Matches | None, LexicalRanking | None]:
    held = await _matches(database, collection, query, within, kept)
    if held is None:
        return None, None
    near = None
    if embedding is not None and collection.space_id is not None:
        near = collection.space_id, await embedding
    async with database.connection() as connection:
        return held, await best_matches(connection, collection.id, held, limit=DEPTH, near=near)


async def _dense(
    database: Database,
    collection: Collection,
    query: Query,
    within: Sequence[DocumentId] | None,
    index: Nearest | None,
    embedding: Task[Vector] | None,
) -> Ranking | None:
    if embedding is None or collection.space_id is None:
        return None
    vector = await embedding
    if index is not None and query.keyword is None:  # words are looked up in PostgreSQL only
        found = await index.nearest(vector, limit=DEPTH)
        async with database.connection() as connection:
            numbers = await lexical.numbers_of(connection, [one.chunk_id for one in found])
        return ranking_of(found, numbers)
    async with database.connection() as connection:
        return await pgvector.nearest(
            connection,
            space=collection.space_id,
            collection=collection.id,
            vector=vector,
            limit=DEPTH,
            documents=within,
            chunks=collection.chunk_count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranks:
    """The candidates by their fused score, best first, ties by id; none below the threshold."""

    seen: Candidates
    order: NDArray[np.intp]
    scores: NDArray[np.float64]
    shares: Mapping[str, NDArray[np.float64]]
    apart: bool = False
    """Whether no two of them are of one section."""

    def of_sections(self) -> Self:
        """The best of each section, where it is known which one each is of."""
        sections = self.seen.found["section"][self.order]
        if not sections.all():
            return self
        _, first = np.unique(sections, return_index=True)
        return replace(self, order=self.order[np.sort(first)], apart=True)

    def __getitem__(self, places: slice) -> list[_Ranked]:
        return [
            _Ranked(
                index=index,
                chunk_id=self.seen.chunk_id(index),
                score=float(self.scores[index]),
                shares={name: float(share[index]) for name, share in self.shares.items()},
            )
            for index in self.order[places].tolist()
        ]


def _rank(seen: Candidates, found: _Found, query: Query) -> _Ranks:
    total = sum(WEIGHTS[name] for name in found.rankings)
    shares = fuse(
        seen.documents,
        {"lexical": seen.lexical, "dense": seen.dense},
        # Those who did not take part leave their weight to the others.
        {name: WEIGHTS[name] / total for name in found.rankings},
    )
    scores = np.sum(list(shares.values()), axis=0)
    order = np.lexsort((np.arange(len(seen)), -scores))
    if query.threshold is not None:
        order = order[seen.dense[order] >= query.threshold]
    return _Ranks(seen=seen, order=order, scores=scores, shares=shares)


async def _boost(
    connection: Connection,
    collection: Collection,
    ranks: _Ranks,
    wanted: Ids[str],
    query: Query,
) -> list[_Ranked]:
    """The best in their new order; each boost is one more share."""
    ranked = ranks[: max(BOOSTED, PER_HIT * query.limit)]
    stored = await chunks.by_id(connection, collection.id, [hit.chunk_id for hit in ranked])
    boosted = []
    for hit in ranked:
        if (chunk := stored.get(hit.chunk_id)) is not None:
            shares = {**hit.shares, **boosts(chunk, wanted, query.boost)}
            boosted.append(replace(hit, shares=shares, score=sum(shares.values())))
    return sorted(boosted, key=lambda hit: (-hit.score, hit.index))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Best:
    """The hits to show, and what was read of them; `gone` is whether some are no more."""

    hits: Sequence[_Ranked]
    stored: Mapping[ChunkId, StoredChunk]
    gone: bool


async def _distinct(
    connection: Connection,
    collection: Collection,
    ranked: _Ranks | Sequence[_Ranked],
    limit: int,
    conditions: Sequence[Condition],
) -> _Best:
    """The best chunk of each section; rarely more than a look is needed.

    What the filter asks for is asked again of what is read: a document may change meanwhile.
    """
    stored: dict[ChunkId, StoredChunk] = {}
    best: dict[tuple[DocumentId, str], _Ranked] = {}
    looked_at = 0
    enough = limit if isinstance(ranked, _Ranks) and ranked.apart else limit + min(limit, 20)
    for look in (enough, 4 * limit, PER_HIT * limit):
        hits = ranked[looked_at:look]
        stored |= await chunks.by_id(connection, collection.id, [hit.chunk_id for hit in hits])
        looked_at += len(hits)
        for hit in hits:
            chunk = stored.get(hit.chunk_id)
            if chunk is not None and all(met(c, chunk.facets) for c in conditions):
                best.setdefault((chunk.document_id, chunk.section_id), hit)
        if len(best) >= limit or looked_at < look:
            break
    return _Best(hits=list(best.values())[:limit], stored=stored, gone=len(stored) < looked_at)


def _hit(
    ranked: _Ranked,
    chunk: StoredChunk,
    wanted: Ids[str] | None,
    places: Mapping[str, Mapping[int, int]],
    seen: Candidates,
) -> Hit:
    said = {
        "lexical": float(seen.bm25[ranked.index]),
        "dense": float(seen.dense[ranked.index]),
    }
    return Hit(
        chunk_id=ranked.chunk_id,
        document_id=chunk.document_id,
        score=ranked.score,
        title=chunk.title,
        collection=chunk.collection,
        path=chunk.path,
        url=chunk.url,
        heading_path=tuple(chunk.heading_path),
        section_id=chunk.section_id,
        ordinal=chunk.ordinal,
        text=chunk.text,
        snippet="" if wanted is None else snippet(chunk.text, wanted),
        facets=chunk.facets,
        contributions=tuple(
            Contribution(
                retriever=name,
                rank=places.get(name, {}).get(int(seen.numbers[ranked.index]), 0),
                score=said.get(name, 0.0),
                share=share,
            )
            for name, share in ranked.shares.items()
        ),
    )
