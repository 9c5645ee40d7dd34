"""/mcp: the MCP server over streamable HTTP, in both of its eras, behind the guard of the API.

The SDK takes a second to import, and the hooks of agents should not wait for it: it is imported
when an agent first asks.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from vademecum.app import App
from vademecum.surfaces.http.guard import MAX_BODY_BYTES

if TYPE_CHECKING:
    from mcp.server import MCPServer


@asynccontextmanager
async def answering_agents(api: FastAPI, app: App) -> AsyncIterator[None]:
    """`/mcp` of the API answers as long as this is open. Nothing is kept between requests."""
    agents = _Agents(app)
    api.router.routes.append(Route("/mcp", endpoint=agents))
    try:
        yield
    finally:
        await agents.close()


class _Agents:
    """The MCP server as an ASGI app that starts with its first request."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._running: asyncio.Task[None] | None = None
        self._started: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._started is None:
            self._started = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._started))
        served = await asyncio.shield(self._started)
        await served(scope, receive, send)

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self, started: "asyncio.Future[ASGIApp]") -> None:
        """In a task of its own: what the SDK opens must be closed by the task that opened it."""
        try:
            server, served = await asyncio.to_thread(_build, self._app)
            async with server.session_manager.run():
                started.set_result(served)
                await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001 - told to whoever asks
            if not started.done():
                started.set_exception(error)


def _build(app: App) -> "tuple[MCPServer, ASGIApp]":
    from mcp.server.transport_security import TransportSecuritySettings

    from vademecum.surfaces.mcp import build

    async def opened() -> App:
        return app

    server = build(opened)
    served = server.streamable_http_app(
        stateless_http=True,
        max_request_body_size=MAX_BODY_BYTES,
        # The guard looks at hosts and tokens, and knows the names it is served under.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return server, served
