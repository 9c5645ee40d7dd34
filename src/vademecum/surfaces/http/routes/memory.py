"""The memory of users. Every call names its user, in the body: addresses are not for URLs and logs.

Whoever holds the token, or a key of scope memory that is not bound to one user, may name any user:
nobody can tell who asks.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse

from vademecum.memory.exchange import MemoryUpdate
from vademecum.memory.exported import as_text
from vademecum.memory.facade import MAX_EXCHANGE, Memory
from vademecum.memory.recall import Recalled
from vademecum.store.memory import MemoryVersion, Receipt
from vademecum.surfaces.http.routes.shared import FAILURES, OpenApp, Short, Text

router = APIRouter(prefix="/memory", tags=["memory"], responses=FAILURES)

Long = Annotated[Text, Field(max_length=MAX_EXCHANGE)]


class OfUser(BaseModel):
    user: Annotated[Text, Field(min_length=1, max_length=1000)]
    """The user's address; its part before the @ counts."""


class OfProject(OfUser):
    project: Short = ""
    """Instead of the general memory."""


class InjectRequest(OfProject):
    prompt: Long
    note: bool = False
    """Whether a new user has a block that says so."""


class Exchange(OfProject):
    exchange: Annotated[Short, Field(min_length=1)]
    """The exchange's id: each counts once."""
    message: Long
    reply: Long = ""
    agent: Short = ""
    outcome: Literal["ok", "failed"] = "ok"


class Fact(OfProject):
    fact: Long


class Edit(OfProject):
    text: Long
    expected: Annotated[int, Field(ge=0)] | None = None
    """The version that was edited; another one since then is an error."""


class MemorySearch(OfProject):
    query: Annotated[Text, Field(max_length=10_000)]
    every_project: bool = False
    """In the general memory and in all projects of the user."""
    limit: Annotated[int, Field(ge=1, le=100)] = 8


class DiffRequest(OfProject):
    old: Annotated[int, Field(ge=0)]
    new: Annotated[int, Field(ge=0)]


class ExportRequest(OfUser):
    format: Literal["json", "text"] = "json"


class Prompt(BaseModel):
    prompt: str


class Difference(BaseModel):
    diff: str
    """Unified."""


class Forgotten(BaseModel):
    receipt: Receipt | None
    """None where nothing was held."""


@router.post("/show")
async def show(app: OpenApp, of: OfProject) -> Memory:
    """The narrative as it is; version 0 is a new user."""
    return await app.memory.show(of.user, project=of.project)


@router.post("/inject")
async def inject(app: OpenApp, asked: InjectRequest) -> Prompt:
    """A system prompt with the user's `<memory>` block."""
    return Prompt(
        prompt=await app.memory.inject(
            asked.user, asked.prompt, project=asked.project, note=asked.note
        )
    )


@router.post("/update")
async def update(app: OpenApp, told: Exchange) -> MemoryUpdate:
    """Take an exchange into the memory; the exchange itself is not kept."""
    return await app.memory.update(
        told.user,
        message=told.message,
        reply=told.reply,
        exchange=told.exchange,
        agent=told.agent,
        project=told.project,
        outcome=told.outcome,
    )


@router.post("/remember")
async def remember(app: OpenApp, told: Fact) -> MemoryUpdate:
    """Note a fact about the user."""
    return await app.memory.remember(told.user, told.fact, project=told.project)


@router.post("/edit")
async def edit(app: OpenApp, told: Edit) -> MemoryUpdate:
    """Replace the narrative by a text; the gate holds for it, too."""
    return await app.memory.edit(told.user, told.text, project=told.project, expected=told.expected)


@router.post("/search")
async def search(app: OpenApp, asked: MemorySearch) -> list[Recalled]:
    """Sentences of the narrative and its versions that answer a query, best first."""
    return await app.memory.search(
        asked.user,
        asked.query,
        project=asked.project,
        every_project=asked.every_project,
        limit=asked.limit,
    )


@router.post("/versions")
async def versions(app: OpenApp, of: OfProject) -> list[MemoryVersion]:
    """Every change and its reason, oldest first."""
    return await app.memory.versions(of.user, project=of.project)


@router.post("/diff")
async def diff(app: OpenApp, asked: DiffRequest) -> Difference:
    """What changed between two versions."""
    return Difference(
        diff=await app.memory.diff(asked.user, asked.old, asked.new, project=asked.project)
    )


@router.post("/undo")
async def undo(app: OpenApp, of: OfProject) -> Memory:
    """Go back to the version before, as a new version."""
    return await app.memory.undo(of.user, project=of.project)


@router.post("/export", response_model=dict[str, Any])
async def export(app: OpenApp, of: ExportRequest) -> dict[str, Any] | PlainTextResponse:
    """All that is held about the user."""
    held = await app.memory.export(of.user)
    return PlainTextResponse(as_text(held) + "\n") if of.format == "text" else held


@router.post("/forget")
async def forget(app: OpenApp, of: OfUser) -> Forgotten:
    """Remove all of the user, prove it, and answer with the receipt."""
    return Forgotten(receipt=await app.memory.forget(of.user))


@router.get("/receipts")
async def receipts(app: OpenApp) -> list[Receipt]:
    """What was forgotten, without whom; incomplete ones first."""
    return await app.memory.receipts()
