"""Knowledge from outside: what can be looked up where, and looking it up."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field, TypeAdapter
from starlette.responses import StreamingResponse

from vademecum.context.errors import subject_of
from vademecum.errors import BadInput
from vademecum.graph.fetching import FetchReport, SourceOverview
from vademecum.graph.sources.adapter import Subject, SubjectKind
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp, Short, Traceback
from vademecum.surfaces.http.routes.work import WORK, Tell, streamed

router = APIRouter(tags=["sources"], responses=FAILURES)


class SourceList(BaseModel):
    sources: list[SourceOverview]


class Fetching(BaseModel):
    kind: SubjectKind
    name: Short = ""
    """Of an API or a package; the words of a topic."""
    error: Traceback = ""
    """For the kind `error`."""
    language: Short = "python"
    package: Short = ""
    version: Short = ""
    repository: Short = ""
    sources: Annotated[list[Name], Field(max_length=20)] = []
    """Only these; all that take it, if none is named."""


@router.get("/sources")
async def sources(app: OpenApp) -> SourceList:
    """The sources: what each is asked for, its tier, trust, freshness and filter."""
    return SourceList(sources=app.sources.overview())


@router.post("/fetch", responses=WORK, response_class=StreamingResponse)
async def fetch(app: OpenApp, asked: Fetching) -> StreamingResponse:
    """Look a subject up at the sources that take it, and keep what they have in the graph."""
    subject = _subject(asked)

    async def work(tell: Tell) -> FetchReport:
        return await app.sources.fetch(
            subject,
            only=asked.sources,
            progress=lambda text: tell("progress", {"text": text}),
        )

    return await streamed(work, TypeAdapter(FetchReport))


def _subject(asked: Fetching) -> Subject:
    if asked.kind == "error":
        if asked.name:
            raise BadInput("an error is looked up by its text", hint="Give it as `error`.")
        return subject_of(asked.error, package=asked.package, repository=asked.repository)
    return Subject(
        kind=asked.kind,
        name=asked.name.strip().removesuffix("()"),
        language=asked.language.lower(),
        package=asked.package,
        version=asked.version,
        repository=asked.repository,
    )
