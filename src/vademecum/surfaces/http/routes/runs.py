"""Ingestion runs: started, looked at, followed, cancelled, resumed."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from vademecum.errors import BadInput
from vademecum.ingest.runs import RunDetails
from vademecum.store.runs import MAX_LISTED, MAX_RUN, Run, RunMode
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp, Text

router = APIRouter(prefix="/runs", tags=["runs"], responses=FAILURES)

Number = Annotated[int, Field(ge=1, le=MAX_RUN)]


class RunRequest(BaseModel):
    collection: Name
    folder: Annotated[Text, Field(min_length=1, max_length=4000)] | None = None
    """A folder on the server, which asks for a key of scope admin for all collections. Without one
    the chunks of stored documents are made again."""
    profile: Name | None = None
    """Of a new collection: one that comes with Vademecum."""
    mode: RunMode = "incremental"


@router.post("", status_code=202)
async def start_run(app: OpenApp, asked: RunRequest, response: Response) -> Run:
    """Queue a run; a worker of the server takes it up."""
    if asked.profile is not None and asked.profile.endswith(".toml"):
        raise BadInput("a profile of your own is given with `vade runs start --profile FILE`")
    run = await app.ingest.start_run(
        asked.collection,
        folder=Path(asked.folder) if asked.folder is not None else None,
        profile=asked.profile,
        mode=asked.mode,
    )
    response.headers["Location"] = f"/runs/{run.id}"
    return run


@router.get("")
async def list_runs(
    app: OpenApp,
    collection: Name | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 50,
) -> list[Run]:
    """Runs, newest first."""
    return await app.runs.listed(collection, limit=limit)


@router.get("/{run}")
async def show_run(app: OpenApp, run: Number) -> RunDetails:
    """One run, and by name what it could not take."""
    return await app.runs.details(run)


@router.post("/{run}/cancel")
async def cancel_run(app: OpenApp, run: Number) -> Run:
    """Stop a run; one that is worked on stops within seconds, and can be resumed."""
    return await app.runs.cancel(run)


@router.post("/{run}/resume", status_code=202)
async def resume_run(app: OpenApp, run: Number) -> Run:
    """Queue a failed or cancelled run again; it goes on from where it was."""
    return await app.runs.requeue(run)
