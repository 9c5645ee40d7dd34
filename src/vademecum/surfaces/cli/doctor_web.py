"""doctor's part for the web: one page through the cache's hooks, and the server that runs.

before-hook: carry on --> after-hook: queued --> fetched --> before-hook: the page
"""

import asyncio
import json
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from vademecum.errors import VadeError

if TYPE_CHECKING:
    from vademecum.app import App

FACT = "The spare wicks are in the drawer under the stairs."
PAGE = f"""<html><head><title>The lighthouse</title></head><body><main>
<h1>The lighthouse</h1>
<p>The lamp is lit by the keeper at dusk and put out at dawn, every day of the year.</p>
<h2>Stores</h2>
<p>{FACT} The oil is kept in the cellar, in barrels of forty litres each.</p>
</main></body></html>"""
FETCH_SECONDS = 30
TRIES = 3
"""Another worker may take our page from the queue, and must refuse it: only we allow loopback."""


async def chain(app: "App") -> str:
    """Drive a page of this machine through the hooks. Raises VadeError that says what is broken."""
    from vademecum.cache.rules import Rule
    from vademecum.surfaces import hooks

    # Absolute, so that no repository around the working folder passes for the project.
    project = f"/doctor-{uuid.uuid4().hex[:12]}"
    with _site() as (place, url):
        cache = app.cache.trial(project, Rule(match=f"{place}/*", private_network=True))
        given: dict[str, Any] = {
            "tool_name": "WebFetch",
            "tool_input": {"url": url, "prompt": "Where are the spare wicks?"},
            "cwd": project,
        }
        fetched = {"tool_response": {"code": 200, "result": "A page about a lighthouse."}}
        collection = cache.collection_name(project)
        try:
            if await hooks.before_tool(cache, given) is not None:
                raise VadeError("before-hook: it serves a page that was never fetched")
            for _ in range(TRIES):
                await hooks.after_tool(cache, given | fetched)
                try:
                    async with asyncio.timeout(FETCH_SECONDS):
                        await cache.fetch_due()
                except TimeoutError:
                    raise VadeError(
                        f"queue: it is not worked off within {FETCH_SECONDS} s",
                        hint="`vade status` shows what waits; `vade process-queue` works it off.",
                    ) from None
                started = time.perf_counter()
                said = await hooks.before_tool(cache, given)
                took = (time.perf_counter() - started) * 1000
                if said is not None:
                    break
            else:
                raise VadeError("queue: the page was queued and is not stored")
        finally:
            if collection in [found.name for found in await app.list_collections()]:
                await app.delete_collection(collection)
    if FACT not in said["hookSpecificOutput"]["permissionDecisionReason"]:
        raise VadeError("hit: the page that is served lacks what it says")
    return f"before-hook, after-hook, queue, and a hit in {took:.1f} ms"


async def server(app: "App") -> str:
    """Ask the server of this home what an agent's client asks. Raises VadeError."""
    import httpx

    from vademecum.surfaces.http.instance import find, token

    home = app.settings.home
    address = find(home)
    if address is None:
        return "none runs for this home, and agents fetch as ever; `vade serve` starts one"
    bearer = {"Authorization": f"Bearer {token(home)}"}
    try:
        async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
            health = await client.get(f"{address.url}/health", headers=bearer)
    except httpx.HTTPError as error:
        raise VadeError(
            f"{address.url} does not answer: {type(error).__name__}",
            hint="Stop it and start `vade serve` again.",
        ) from None
    if health.status_code != 200:
        raise VadeError(f"{address.url} answers {health.status_code}: {health.text[:300]}")
    took = await _command_hook(app)
    return f"{address.url}, process {address.pid}; vade-hook in {took:.0f} ms"


async def agent(app: "App") -> str:
    """Whether the hooks in an agent's settings reach the server. Raises VadeError."""
    from vademecum.surfaces.claude_code.installed import check_installed

    return await check_installed(app.settings)


async def _command_hook(app: "App") -> float:
    """Run vade-hook as a client does; milliseconds of the whole process."""
    import vademecum.hook

    log = app.settings.home / "serve" / "hooks.log"
    before = log.stat().st_size if log.exists() else 0
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", vademecum.hook.__file__, "pre-tool-use",
        "--home", str(app.settings.home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    await process.communicate(json.dumps({"tool_name": "Read"}).encode())
    took = (time.perf_counter() - started) * 1000
    if log.exists() and log.stat().st_size > before:
        said = log.read_bytes()[before:].decode(errors="replace").strip()
        raise VadeError(f"vade-hook: {said}")
    return took


@contextmanager
def _site() -> Iterator[tuple[str, str]]:
    """One page on a free port of loopback: its host with port, and its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = PAGE.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            place = f"127.0.0.1:{site.server_port}"
            yield place, f"http://{place}/lighthouse"
        finally:
            site.shutdown()
