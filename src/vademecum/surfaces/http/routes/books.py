"""Search of a course, in the words of its readers."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from vademecum.search.book import (
    BOOK,
    MAX_RESULTS,
    MIN_TEXT,
    BookQuery,
    BookResponse,
    ModuleName,
    ProficiencyLevel,
    TeachingLayer,
)
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp, Text
from vademecum.types import Mode

router = APIRouter(prefix="/books", tags=["search"], responses=FAILURES)


class BookSearch(BaseModel):
    """All filters must hold; within `proficiency_levels` any of them."""

    text: Annotated[Text, Field(min_length=MIN_TEXT, max_length=10_000)]
    book_id: Name = BOOK
    hardware_tier_filter: Annotated[int, Field(ge=1, le=4)] = 1
    """What this tier or a lower one can do."""
    module_filter: ModuleName | None = None
    chapter_min: Annotated[int, Field(ge=0, le=20)] | None = None
    chapter_max: Annotated[int, Field(ge=0, le=20)] | None = None
    lesson_filter: Annotated[int, Field(ge=0, le=15)] | None = None
    proficiency_levels: Annotated[list[ProficiencyLevel], Field(max_length=6)] | None = None
    layer_filter: TeachingLayer | None = None
    parent_doc_id: UUID | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_RESULTS)] = 5
    mode: Mode = "hybrid"
    """In mode dense the scores are cosine similarities as they are."""


@router.post("/search")
async def search_book(app: OpenApp, asked: BookSearch) -> BookResponse:
    """The passages of a book that answer a query, for a reader of this tier and level."""
    return await app.search_book(BookQuery(**asked.model_dump()))
