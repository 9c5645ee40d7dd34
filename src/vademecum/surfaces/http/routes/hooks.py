"""The hooks of agents: answered within the cap, and never with a failure.

"Carry on" is 200 with an empty body; why there was nothing to say is in serve/hooks.log.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from vademecum.app import App
from vademecum.cache.cache import Cache
from vademecum.surfaces import hooks
from vademecum.surfaces.http.instance import hook_log
from vademecum.surfaces.http.routes.shared import OpenApp

router = APIRouter(prefix="/hooks", tags=["hooks"])

Answer = dict[str, Any] | None

MARGIN_MS = 30
"""Of the cap, left for the way back to the agent."""

BODY = {
    "requestBody": {
        "content": {"application/json": {"schema": {"type": "object"}}},
        "required": True,
    }
}

_going_on: set[asyncio.Task[Answer]] = set()


@router.post("/pre-tool-use", openapi_extra=BODY)
async def pre_tool_use(app: OpenApp, request: Request) -> Response:
    """Before a tool: a denial whose reason is the page, where the cache has it."""
    return await _answer(app, request, partial(hooks.before_tool, seconds=_seconds(app)))


@router.post("/post-tool-use", openapi_extra=BODY)
async def post_tool_use(app: OpenApp, request: Request) -> Response:
    """After a tool: what it fetched is queued to be fetched by us."""
    return await _answer(app, request, hooks.after_tool, finish=True)


@router.post("/user-prompt-submit", openapi_extra=BODY)
async def user_prompt_submit(app: OpenApp, request: Request) -> Response:
    """Before a prompt is answered: what is known of it, as further context."""
    budget = app.settings.hook_context_tokens

    async def work(_: Cache, given: dict[str, Any]) -> Answer:
        return await hooks.before_prompt(app.context, given, budget=budget)

    return await _answer(app, request, work)


async def _answer(
    app: App,
    request: Request,
    work: Callable[[Cache, dict[str, Any]], Awaitable[Answer]],
    *,
    finish: bool = False,
) -> Response:
    """Do the work within the cap. With `finish` it goes on after it, and nobody waits."""
    try:
        given = json.loads(await request.body())
    except (ValueError, RecursionError):
        return _carry_on(app, "the input is not JSON")
    if not isinstance(given, dict):
        return _carry_on(app, "the input is not an object")
    cap = _seconds(app)
    task = asyncio.ensure_future(_logged(app, work(app.cache, given)))
    _going_on.add(task)
    task.add_done_callback(_going_on.discard)
    done, _ = await asyncio.wait([task], timeout=cap)
    if not done:
        if not finish:
            task.cancel()
        return _carry_on(app, f"not done within {cap * 1000:.0f} ms")
    said = task.result()
    return JSONResponse(said) if said else Response()


def _seconds(app: App) -> float:
    return max(app.settings.hook_cap_ms - MARGIN_MS, 1) / 1000


async def _logged(app: App, work: Awaitable[Answer]) -> Answer:
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - whatever it is, the agent carries on
        _carry_on(app, f"{type(error).__name__}: {error}")
        return None


def _carry_on(app: App, reason: str) -> Response:
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} serve: {reason}\n"
    try:
        with hook_log(app.settings.home).open("a", encoding="utf-8", errors="replace") as log:
            log.write(line)
    except OSError:
        pass  # a full disk is no reason to hold an agent up
    return Response()
