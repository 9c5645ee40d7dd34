"""Notes about projects, and the context of a task. Every call names its project."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import AliasChoices, BaseModel, Field

from vademecum.context.decide import Decision
from vademecum.context.outside import Outside
from vademecum.context.stale import Stale
from vademecum.notes.draft import MAX_CONTENT
from vademecum.notes.facade import FoundNote, SavedNote
from vademecum.notes.types import NoteType
from vademecum.store.notes import Note
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp, Short, Text, Traceback

router = APIRouter(tags=["notes"], responses=FAILURES)

# What it was called before.
_ALSO_KIND = Field(validation_alias=AliasChoices("type", "kind"))


class OfProject(BaseModel):
    project: Name


class NewNote(OfProject):
    content: Annotated[Text, Field(min_length=1, max_length=MAX_CONTENT)]
    title: Annotated[Text, Field(max_length=200)] = ""
    type: Annotated[NoteType, _ALSO_KIND] = "learning"
    tags: Annotated[list[Name], Field(max_length=20)] = []
    importance: Annotated[int, Field(ge=1, le=10)] = 5
    evidence: Annotated[list[Short], Field(max_length=20)] = []
    agent: Annotated[Text, Field(max_length=200)] = ""
    replaces: Annotated[list[UUID], Field(max_length=100)] = []


class Chosen(OfProject):
    type: Annotated[NoteType | Literal["answer"] | None, _ALSO_KIND] = None
    tags: Annotated[list[Name], Field(max_length=20)] = []
    importance: Annotated[int, Field(ge=1, le=10)] = 1
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class NoteSearch(Chosen):
    query: Annotated[Text, Field(min_length=1, max_length=10_000)]


class OfNote(OfProject):
    id: UUID


class Notes(BaseModel):
    notes: list[Note]


class Found(BaseModel):
    results: list[FoundNote]


class Task(OfProject):
    task: Annotated[Text, Field(min_length=1, max_length=10_000)]
    error: Traceback = ""
    user: Short = ""
    budget: Annotated[int, Field(ge=100, le=20_000)] = 1500
    fetch: bool = False
    """Look up what the task names and is not known; asks for write."""


class ContextAnswer(BaseModel):
    markdown: str
    tokens: int
    notes: list[Note]
    solutions: list[Note]
    outside: list[Outside]
    decision: Decision
    left_out: list[str]
    notices: list[str]


class ApiSearch(BaseModel):
    name: Annotated[Text, Field(min_length=1, max_length=1000)]
    project: Short = ""


class Apis(BaseModel):
    apis: list[Outside]


class Outcome(OfProject):
    id: UUID
    outcome: Literal["success", "failure", "misled", "unknown"]
    agent: Name = "http"
    task: Short = ""
    decision: Short = ""
    error: Traceback = ""


class StaleList(BaseModel):
    stale: list[Stale]


class Left(BaseModel):
    stale: Stale
    reason: str


class Refreshing(BaseModel):
    collection: Name | None = None


class RefreshedList(BaseModel):
    refreshed: list[Stale]
    left: list[Left]


class Recorded(BaseModel):
    recorded: bool


@router.post("/notes/save")
async def save(app: OpenApp, note: NewNote) -> SavedNote:
    """Keep a note; `replaced` names those that hold no longer, and why."""
    return await app.notes.save(
        note.project,
        note.content,
        title=note.title,
        type=note.type,
        tags=note.tags,
        importance=note.importance,
        evidence=note.evidence,
        agent=note.agent,
        replaces=note.replaces,
    )


@router.post("/notes/list")
async def list_notes(app: OpenApp, asked: Chosen) -> Notes:
    """Notes that hold, the most important and newest first."""
    return Notes(
        notes=await app.notes.list_notes(
            asked.project,
            type=asked.type,
            tags=asked.tags,
            importance=asked.importance,
            limit=asked.limit,
        )
    )


@router.post("/notes/search")
async def search(app: OpenApp, asked: NoteSearch) -> Found:
    """Notes that answer a query, best first."""
    return Found(
        results=await app.notes.search(
            asked.project,
            asked.query,
            type=asked.type,
            tags=asked.tags,
            importance=asked.importance,
            limit=asked.limit,
        )
    )


@router.post("/notes/remove")
async def remove(app: OpenApp, asked: OfNote) -> Recorded:
    """Delete the text of a note for good."""
    await app.notes.remove(asked.project, asked.id)
    return Recorded(recorded=True)


@router.post("/notes/confirm")
async def confirm(app: OpenApp, asked: OfNote) -> Note:
    """Say that a stale note holds still."""
    return await app.notes.confirm(asked.project, asked.id)


@router.get("/stale")
async def list_stale(app: OpenApp, collection: Name | None = None) -> StaleList:
    """What may no longer hold, since what it rests on has changed or is gone."""
    return StaleList(stale=await app.stale.list_stale(collection))


@router.post("/stale/refresh")
async def refresh_stale(app: OpenApp, asked: Refreshing) -> RefreshedList:
    """Ask stale answers again, make stale summaries again, and say what is left."""
    found = await app.stale.refresh(asked.collection)
    left = [Left(stale=one, reason=reason) for one, reason in found.left]
    return RefreshedList(refreshed=found.refreshed, left=left)


@router.post("/context")
async def context(app: OpenApp, asked: Task) -> ContextAnswer:
    """What an agent should know for a task, within a budget."""
    found = await app.context.build(
        asked.task,
        project=asked.project,
        error=asked.error,
        user=asked.user,
        budget=asked.budget,
        fetch=asked.fetch,
    )
    return ContextAnswer.model_validate(found, from_attributes=True)


@router.post("/apis/find")
async def find_api(app: OpenApp, asked: ApiSearch) -> Apis:
    """The API references of a name."""
    return Apis(apis=await app.context.find_api(asked.name, project=asked.project))


@router.post("/outcomes")
async def record_outcome(app: OpenApp, told: Outcome) -> Recorded:
    """Say whether a piece of knowledge helped."""
    await app.context.record(
        told.id,
        outcome=told.outcome,
        agent=told.agent,
        project=told.project,
        task=told.task,
        decision=told.decision,
        error=told.error,
    )
    return Recorded(recorded=True)
