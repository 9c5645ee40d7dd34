"""Searching a book: the query, result and response of a course's reader, over profile `course`.

The names are those that readers of such books send and expect; a book is a collection.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from vademecum.errors import BadInput
from vademecum.profiles.profile import load_profile
from vademecum.search.filters import parse_filters
from vademecum.store import collections, facets, reading
from vademecum.store.db import Database
from vademecum.store.reading import ChunkDetails
from vademecum.types import Hit, Mode, Query

ModuleName = Literal["ros2", "gazebo", "isaac", "vla"]
ProficiencyLevel = Literal["A1", "A2", "B1", "B2", "C1", "C2"]
TeachingLayer = Literal["L1", "L2", "L3", "L4"]

MIN_TEXT = 3
MAX_RESULTS = 20
BOOK = "physical-ai-robotics"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookQuery:
    """All filters must hold; within `proficiency_levels` any of them."""

    text: str
    book_id: str = BOOK
    hardware_tier_filter: int = 1
    """What this tier or a lower one can do."""
    module_filter: ModuleName | None = None
    chapter_min: int | None = None
    chapter_max: int | None = None
    lesson_filter: int | None = None
    proficiency_levels: Sequence[ProficiencyLevel] | None = None
    layer_filter: TeachingLayer | None = None
    parent_doc_id: UUID | None = None
    limit: int = 5
    mode: Mode = "hybrid"
    """In mode dense the scores are cosine similarities as they are."""

    @property
    def filters(self) -> tuple[str, ...]:
        """The same in the grammar of all filters."""
        found = [f"hardware_tier<={self.hardware_tier_filter}"]
        if self.module_filter is not None:
            found.append(f"module={self.module_filter}")
        if self.chapter_min is not None or self.chapter_max is not None:
            low, high = (
                "" if bound is None else str(bound)
                for bound in (self.chapter_min, self.chapter_max)
            )
            found.append(f"chapter={low}..{high}")
        if self.lesson_filter is not None:
            found.append(f"lesson={self.lesson_filter}")
        if self.proficiency_levels:
            found.append(f"proficiency_level={','.join(self.proficiency_levels)}")
        if self.layer_filter is not None:
            found.append(f"layer={self.layer_filter}")
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookResult:
    text: str
    score: float
    """From 0 to 1; higher is better."""
    source_file: str
    section_title: str | None
    module: str
    chapter: int
    lesson: int
    hardware_tier: int
    proficiency_level: str
    layer: str
    chunk_index: int
    total_chunks: int
    parent_doc_id: UUID | None
    prev_chunk_id: UUID | None
    next_chunk_id: UUID | None
    content_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookResponse:
    query: str
    results: list[BookResult]
    """The best first."""
    total_found: int
    """Lessons that the filters let through."""
    hardware_tier_filter: int
    module_filter: str | None
    book_id: str


async def search_book(
    database: Database, search: Callable[[Query], Awaitable[list[Hit]]], asked: BookQuery
) -> BookResponse:
    """Raises BadInput, UnknownCollection; BadFilter where the collection is no course."""
    if len(asked.text.strip()) < MIN_TEXT:
        raise BadInput(f"the query must have at least {MIN_TEXT} characters")
    if not 1 <= asked.limit <= MAX_RESULTS:
        raise BadInput(f"limit must be from 1 to {MAX_RESULTS}, not {asked.limit}")
    async with database.connection() as connection:
        target = await collections.find(connection, asked.book_id)
        profile = load_profile(target.profile, target.declaration)
        passed = await facets.matching(connection, target.id, parse_filters(asked.filters, profile))
        if asked.parent_doc_id is not None:
            of_parent = await reading.documents_of_parent(
                connection, target.id, asked.parent_doc_id
            )
            passed = [document for document in passed if document in of_parent]
    hits = await search(
        Query(
            text=asked.text,
            collection=asked.book_id,
            mode=asked.mode,
            limit=asked.limit,
            filters=asked.filters,
            parent=asked.parent_doc_id,
        )
    )
    async with database.connection() as connection:
        chunks = await reading.chunks(connection, target.id, [hit.chunk_id for hit in hits])
    results = [
        _result(chunks[hit.chunk_id], _score(hit, asked.mode))
        for hit in hits
        if hit.chunk_id in chunks
    ]
    return BookResponse(
        query=asked.text,
        results=sorted(results, key=lambda result: -result.score),
        total_found=len(passed),
        hardware_tier_filter=asked.hardware_tier_filter,
        module_filter=asked.module_filter,
        book_id=asked.book_id,
    )


def _score(hit: Hit, mode: Mode) -> float:
    score = hit.score
    if mode == "dense":
        score = max(c.score for c in hit.contributions if c.retriever == "dense")
    return min(max(score, 0.0), 1.0)


def _result(chunk: ChunkDetails, score: float) -> BookResult:
    known = chunk.facets

    def number(name: str) -> int:
        value = known.get(name)
        return value if isinstance(value, int) else 0

    return BookResult(
        text=chunk.text,
        score=score,
        source_file=chunk.path,
        section_title=chunk.heading_path[-1] if chunk.heading_path else None,
        module=str(known.get("module", "")),
        chapter=number("chapter"),
        lesson=number("lesson"),
        hardware_tier=number("hardware_tier"),
        proficiency_level=str(known.get("proficiency_level", "")),
        layer=str(known.get("layer", "")),
        chunk_index=chunk.chunk_index,
        total_chunks=chunk.total_chunks,
        parent_doc_id=chunk.parent_id,
        prev_chunk_id=chunk.previous_id,
        next_chunk_id=chunk.next_id,
        content_hash=chunk.content_hash,
    )
