"""API keys: made, listed, revoked, by who may do everything else."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from vademecum.access import Scope
from vademecum.store.keys import LEAST_RATE, MOST_RATE, Key
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp, Text

router = APIRouter(prefix="/keys", tags=["keys"], responses=FAILURES)


class KeyRequest(BaseModel):
    name: Annotated[Text, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1)] = ["read"]
    collections: Annotated[list[Name], Field(min_length=1, max_length=1000)] | None = None
    """Only for these; all if absent."""
    rate: Annotated[float, Field(ge=LEAST_RATE, le=MOST_RATE)] | None = None
    """Requests a second."""
    days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    user: Annotated[Text, Field(min_length=1, max_length=1000)] | None = None
    """With scope memory: the memory of this user only."""


class NewKey(BaseModel):
    name: str
    key: str
    """It is not shown again."""


@router.get("")
async def list_keys(app: OpenApp) -> list[Key]:
    """All keys, revoked ones too; their secrets are nowhere."""
    return await app.keys.listed()


@router.post("", status_code=201)
async def create_key(app: OpenApp, asked: KeyRequest) -> NewKey:
    """Make a key, with no scope that the caller has not got."""
    secret = await app.keys.create(
        asked.name,
        scopes=asked.scopes,
        collections=asked.collections,
        rate=asked.rate,
        days=asked.days,
        user=asked.user,
    )
    return NewKey(name=asked.name, key=secret)


@router.delete("/{name}", status_code=204)
async def revoke_key(app: OpenApp, name: Name) -> None:
    """Let a key open nothing any more, within five seconds."""
    await app.keys.revoke(name)
