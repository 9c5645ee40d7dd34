"""The cache of the web: look before a fetch, store a page, read on in it."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from vademecum.cache.report import Report
from vademecum.cache.serve import CacheResult
from vademecum.cache.store import Fetched
from vademecum.surfaces.http.routes.shared import FAILURES, OpenApp, Text

router = APIRouter(prefix="/cache", tags=["cache"], responses=FAILURES)

Address = Annotated[Text, Field(max_length=8000)]
Project = Annotated[Text, Field(max_length=4000)] | None
Budget = Annotated[int, Field(ge=200, le=1_000_000)] | None


class CheckRequest(BaseModel):
    url: Address
    prompt: Text | None = None
    """What is wanted of the page."""
    project: Project = None
    budget_tokens: Budget = None


class ReadRequest(BaseModel):
    url: Address
    section: Text | None = None
    """The heading to begin at."""
    offset: Annotated[int, Field(ge=0)] = 0
    """Or so many characters."""
    project: Project = None
    budget_tokens: Budget = None


class StoreRequest(BaseModel):
    url: Address
    content: Annotated[Text, Field(min_length=1)] | None = None
    """Markdown to store instead of a fetch."""
    project: Project = None


class Stored(BaseModel):
    url: str
    action: Fetched


@router.post("/check")
async def check(app: OpenApp, asked: CheckRequest) -> CacheResult:
    """What is to be read of a page; outcome `miss` where it is not stored."""
    return await app.cache.check(
        asked.url,
        prompt=asked.prompt,
        project=asked.project,
        budget_tokens=asked.budget_tokens,
    )


@router.post("/read")
async def read(app: OpenApp, asked: ReadRequest) -> CacheResult:
    """A stored page from a heading, or from an offset, on."""
    return await app.cache.read_page(
        asked.url,
        section=asked.section,
        offset=asked.offset,
        project=asked.project,
        budget_tokens=asked.budget_tokens,
    )


@router.post("/pages")
async def store(app: OpenApp, asked: StoreRequest) -> Stored:
    """Fetch and store a page at once; its vectors are made by a worker."""
    action = await app.cache.store_page(asked.url, content=asked.content, project=asked.project)
    return Stored(url=asked.url, action=action)


@router.get("/report")
async def report(app: OpenApp, hours: Annotated[float, Query(gt=0, le=24 * 365)] = 24.0) -> Report:
    """How the cache did in the last hours, against its targets."""
    return await app.cache.report(timedelta(hours=hours))
