"""Work that takes longer than an answer should: told as it goes, as server-sent events.

    event: progress
    data: {"chunks": 256}

    event: notice
    data: {"text": "handbook is still searched where it was"}

    event: done
    data: {"collection": "handbook", "store": "qdrant", "switched": true, ...}

What goes wrong in the first second is a problem document as ever, and later `event: error` with the
same fields. Whoever goes away stops the work; asked for again, it goes on from where it was.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter
from starlette.responses import StreamingResponse

from vademecum.errors import VadeError
from vademecum.surfaces.http.problems import told

QUIET_SECONDS = 15.0
"""After which a comment is sent, so that nobody between closes the connection."""
FIRST_SECONDS = 1.0

Result = TypeVar("Result")
Tell = Callable[[str, dict[str, Any]], None]
"""An event's name and what it tells."""

WORK: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {}},
        "description": "Events: progress, notice, and in the end done or error",
    }
}


async def streamed(
    work: Callable[[Tell], Awaitable[Result]],
    result: TypeAdapter[Result],
    *,
    without: set[str] | None = None,
) -> StreamingResponse:
    """The work as a stream of events; raises what it raises in its first second. `without` are
    fields of the result that are not told."""
    events: asyncio.Queue[bytes] = asyncio.Queue()
    working = asyncio.ensure_future(
        work(lambda name, value: events.put_nowait(_event(name, json.dumps(value).encode())))
    )
    try:
        await asyncio.wait([working], timeout=FIRST_SECONDS)
    except asyncio.CancelledError:
        working.cancel()
        raise
    if working.done():
        working.result()
    return StreamingResponse(
        _events(working, events, result, without),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(
    working: "asyncio.Future[Result]",
    events: asyncio.Queue[bytes],
    result: TypeAdapter[Result],
    without: set[str] | None,
) -> AsyncIterator[bytes]:
    yield b": it goes on\n\n"
    try:
        while not (working.done() and events.empty()):
            coming = asyncio.ensure_future(events.get())
            try:
                either: set[asyncio.Future[Any]] = {coming, working}
                await asyncio.wait(
                    either, timeout=QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if coming.done():
                    yield coming.result()
                elif not working.done():
                    yield b": nothing to tell\n\n"
            finally:
                coming.cancel()
        try:
            yield _event("done", result.dump_json(working.result(), exclude=_each(without)))
        except VadeError as error:
            yield _event("error", json.dumps(told(error)).encode())
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


def _each(without: set[str] | None) -> Any:
    """The fields, of a result or of each result of a list."""
    return None if without is None else {"__all__": without}


def _event(name: str, value: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + value + b"\n\n"
