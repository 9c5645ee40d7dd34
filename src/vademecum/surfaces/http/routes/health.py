"""Whether all is well, and what is stored."""

import asyncio
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from vademecum.app import Status
from vademecum.errors import VadeError
from vademecum.store.jobs import OpenJobs
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp

router = APIRouter(tags=["state"])

PATIENCE = 2.0
"""Seconds after which a database that does not answer counts as away."""


@router.get("/health", responses={503: {"description": "Something is wrong"}})
async def health(app: OpenApp, request: Request) -> JSONResponse:
    """The database asked, the queue counted, the embedder looked at; details for token holders."""
    parts: dict[str, Any] = {}
    try:
        async with asyncio.timeout(PATIENCE):
            parts["queue"] = {"ok": True} | asdict(await app.open_jobs())
        parts["database"] = {"ok": True, "url": app.database.shown}
    except (VadeError, TimeoutError) as error:
        away = str(error) or f"no answer within {PATIENCE:.0f} s"
        parts["database"] = {"ok": False, "url": app.database.shown, "error": away}
        parts["queue"] = {"ok": False, "error": "not known without the database"}
    parts["embedder"] = await asyncio.to_thread(app.embedders.state)
    well = all(part["ok"] for part in parts.values())
    body: dict[str, Any] = {"status": "ok" if well else "failing"}
    if request.state.trusted:
        body |= parts
    return JSONResponse(body, 200 if well else 503)


@router.get("/status", responses=FAILURES)
async def status(app: OpenApp, collection: Name | None = None) -> Status:
    """What is stored, what is still to do, and what failed."""
    return await app.status(collection)


@router.get("/jobs", responses=FAILURES)
async def jobs(app: OpenApp, collection: Name | None = None) -> OpenJobs:
    """What the queue holds."""
    return await app.open_jobs(collection)
