"""Live progress of runs, as server-sent events.

    event: run
    data: {"id": 12, "state": "running", "files_processed": 80, ...}

A stream of one run ends with `event: end`; that of all goes on. A comment is sent when nothing
happens, so that nobody between closes the connection.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field, TypeAdapter
from starlette.responses import StreamingResponse

from vademecum.errors import VadeError
from vademecum.store.runs import MAX_RUN, Run
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp

STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "Events, each with a run as JSON"}
}
router = APIRouter(tags=["runs"], responses=FAILURES | STREAM)

QUIET_SECONDS = 15.0
_RUN = TypeAdapter(Run)


@router.get("/runs/{run}/events", response_class=StreamingResponse)
async def run_events(
    app: OpenApp, run: Annotated[int, Field(ge=1, le=MAX_RUN)]
) -> StreamingResponse:
    """How far a run is, whenever that changes, until it has ended."""
    await app.runs.one(run)  # one that is not there is an error before the stream begins
    return _stream(app.runs.follow(run))


@router.get("/events", response_class=StreamingResponse)
async def events(app: OpenApp, collection: Name | None = None) -> StreamingResponse:
    """How far all runs are, of one collection or of all, for as long as somebody listens."""
    await app.runs.listed(collection, limit=1)
    return _stream(app.runs.follow_all(collection))


def _stream(changes: AsyncIterator[Run]) -> StreamingResponse:
    return StreamingResponse(
        _events(changes),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(changes: AsyncIterator[Run]) -> AsyncIterator[bytes]:
    yield b": the runs follow\n\n"
    following = asyncio.ensure_future(anext(changes))
    try:
        while True:
            done, _ = await asyncio.wait([following], timeout=QUIET_SECONDS)
            if not done:
                yield b": nothing happened\n\n"
                continue
            try:
                run = following.result()
            except StopAsyncIteration:
                yield b"event: end\ndata: {}\n\n"
                return
            except VadeError as error:  # the run was deleted, or the database is away
                yield f"event: error\ndata: {_line(str(error))}\n\n".encode()
                return
            yield b"event: run\ndata: " + _RUN.dump_json(run) + b"\n\n"
            following = asyncio.ensure_future(anext(changes))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _line(text: str) -> str:
    return " ".join(text.split())
