"""The server's life: lock, socket, app, workers, and an end in good order."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address

import uvicorn
from fastapi import FastAPI

from vademecum.app import App
from vademecum.errors import BadInput, VadeError
from vademecum.ingest.report import Listener
from vademecum.settings import Settings
from vademecum.surfaces.http.api import create_api
from vademecum.surfaces.http.guard import LOOPBACK_NAMES, Guard
from vademecum.surfaces.http.instance import Address, announced, only_one, token
from vademecum.surfaces.http.mcp import answering_agents
from vademecum.surfaces.http.sessions import Sessions

GRACE_SECONDS = 5
"""How long requests under way may take to end after SIGTERM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    host: str = "127.0.0.1"
    port: int
    expose: bool = False
    """Listen on an address that others can reach."""
    names: tuple[str, ...] = ()
    """Host names, beside loopback's, under which clients reach the server."""
    workers: int = 1
    idle_exit: float | None = None
    """Minutes without a request and without work after which the server ends."""


async def serve(settings: Settings, serving: Serving, *, notice: Callable[[str], None]) -> None:
    """Serve until SIGTERM, SIGINT or idleness. Raises AlreadyServing, BadInput, and what opening
    the app raises."""
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    with only_one(settings.home), _listening(serving) as listener:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        async with App.open(settings, notice=notice) as app:
            app.models.check()
            api = create_api(app)
            async with answering_agents(api, app):
                await _serve(app, api, serving, listener, stop, notice)


async def _serve(
    app: App,
    api: FastAPI,
    serving: Serving,
    listener: socket.socket,
    stop: asyncio.Event,
    notice: Callable[[str], None],
) -> None:
    home = app.settings.home
    api.state.sessions = sessions = Sessions(token(home))
    guard = Guard(
        api,
        token=token(home),
        hook_token=token(home, "hook-token"),
        hosts=(*LOOPBACK_NAMES, serving.host, *serving.names),
        find_key=app.keys.access,
        key_rate=app.settings.key_rate,
        at_once=app.settings.max_requests,
        sessions=sessions,
    )
    server = _Server(
        uvicorn.Config(
            guard,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    host, port = listener.getsockname()[:2]
    address = Address(host=host, port=port, pid=os.getpid(), cap_ms=app.settings.hook_cap_ms)
    answering = asyncio.create_task(server.serve(sockets=[listener]))
    aside = [asyncio.create_task(app.embedders.warm())]
    aside += [
        asyncio.create_task(app.work(listener=Listener(notice=notice)))
        for _ in range(serving.workers)
    ]
    if serving.idle_exit is not None:
        aside.append(asyncio.create_task(_idle(app, guard, serving.idle_exit * 60, stop)))
    stopping = asyncio.create_task(stop.wait())
    gc.freeze()  # what there is now stays: no request waits until it has been looked through again
    try:
        with announced(home, address, database=app.settings.database_url):
            notice(f"serving {app.database.shown} at {address.url}")
            await asyncio.wait({stopping, answering}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        for task in (*aside, stopping):
            task.cancel()
        ended = await asyncio.gather(*aside, stopping, answering, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                notice(f"{type(error).__name__}: {error}")
    notice("stopped")


class _Server(uvicorn.Server):
    """Signals are ours: the workers have to end too, not the server alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _idle(app: App, guard: Guard, seconds: float, stop: asyncio.Event) -> None:
    # Looked at now and then: a request only moves the moment further away.
    while (rest := guard.last_request + seconds - time.monotonic()) > 0 or await _busy(app):  # noqa: ASYNC110
        await asyncio.sleep(max(rest, 1.0))
    stop.set()


async def _busy(app: App) -> bool:
    try:
        left, pages = await app.open_jobs(), await app.cache.due()
    except VadeError:  # a queue that cannot be seen keeps nobody awake
        return False
    return bool(left.pending or left.processing or pages or app.runs.holding)


@contextlib.contextmanager
def _listening(serving: Serving) -> Iterator[socket.socket]:
    try:
        address = ip_address("127.0.0.1" if serving.host == "localhost" else serving.host)
    except ValueError:
        raise BadInput(
            f"{serving.host} is not an IP address", hint="Use 127.0.0.1, ::1 or 0.0.0.0."
        ) from None
    if not address.is_loopback and not serving.expose:
        raise BadInput(
            f"{address} can be reached from other machines",
            hint="Add --expose if that is meant, and put TLS before it; the token stays needed.",
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    # With its protocol named asyncio sends at once; without, an answer waits 40 ms for an ACK.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((str(address), serving.port))
            listener.listen(128)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadInput(
                f"port {serving.port} of {address} cannot be used: {reason}",
                hint="Choose another with --port or VADE_PORT; 0 is any free one.",
            ) from None
        yield listener
