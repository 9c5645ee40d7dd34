"""Search and answer."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from vademecum.answer.facade import AnswerResult
from vademecum.search.facade import SearchResult
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp, Text
from vademecum.types import Boost, Mode, Query

router = APIRouter(tags=["search"], responses=FAILURES)

Filters = Annotated[
    list[Annotated[Text, Field(max_length=1000)]],
    Field(max_length=50, description="Facets, all of which must hold: tier<=2, level=A2,B1"),
]


class SearchRequest(BaseModel):
    query: Annotated[Text, Field(max_length=10_000)]
    collection: Name
    mode: Mode = "hybrid"
    limit: Annotated[int, Field(ge=1, le=100)] = 8
    threshold: Annotated[float, Field(ge=-1, le=1)] | None = None
    keyword: Annotated[Text, Field(max_length=1000)] | None = None
    filters: Filters = []
    boost: list[Boost] = []
    rerank: bool = False


class AnswerRequest(BaseModel):
    question: Annotated[Text, Field(max_length=10_000)]
    collection: Name
    filters: Filters = []
    model: (
        Annotated[
            Text,
            Field(max_length=200, description="provider:model, or none; if absent, the server's"),
        ]
        | None
    ) = None
    keep_for: Annotated[Name, Field(description="project that keeps the answer")] | None = None


@router.post("/search")
async def search(app: OpenApp, asked: SearchRequest) -> SearchResult:
    """The passages of a collection that answer a query."""
    return await app.search(
        Query(
            text=asked.query,
            collection=asked.collection,
            mode=asked.mode,
            limit=asked.limit,
            threshold=asked.threshold,
            keyword=asked.keyword,
            filters=tuple(asked.filters),
            boost=tuple(asked.boost),
            rerank=asked.rerank,
        )
    )


@router.post("/answer")
async def answer(app: OpenApp, asked: AnswerRequest) -> AnswerResult:
    """An answer with citations, in a language model's words or those of the sources."""
    return await app.answer(
        asked.question,
        collection=asked.collection,
        filters=tuple(asked.filters),
        model=asked.model,
        keep_for=asked.keep_for,
    )
