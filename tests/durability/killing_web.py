"""Kills `vade serve`, `vade worker`, `vade refresh` and the database while agents use the cache.

A round: pages of a site change, agents ask before each fetch and tell after it, and something is
killed under them. They must always be told to carry on or be given one version of the page, and
what they were told is kept must be kept. At the end one undisturbed refresh must leave the same
as fetching every page for the first time.
"""

import asyncio
import hashlib
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
from killed_home import LIMIT, BrokenError, KilledHome, differences
from whole import rows

import vademecum.hook
from cache.site import Site
from vademecum.app import App
from vademecum.cache.polite import Politeness
from vademecum.settings import Settings
from vademecum.surfaces.http.instance import Address, find, hook_log, is_served, token

KINDS = ("serve", "terminate", "database", "database and serve", "refresh", "worker")
HOSTS = 6
"""Sites, each a host of its own: a host is asked for one page at a time, with a pause."""
RULES = '[defaults]\nprivate_network = true\nleast_ttl = "0s"\n'
HOOK = (sys.executable, "-I", "-S", vademecum.hook.__file__, "pre-tool-use")
VERSION = re.compile(r"page (\w+) in version (\d+)")

FORGOTTEN = """
SELECT url FROM web_pages WHERE document_id IS NULL AND due_at IS NULL AND error IS NULL"""
WITHOUT_PAGE = """
SELECT d.url FROM crawled_documents d WHERE (SELECT count(*) FROM web_pages
 WHERE document_id = d.id) <> 1"""
IN_HAND = """
SELECT url FROM web_pages WHERE due_at > now() AND failures > 0 AND error IS NULL"""
DUE = "SELECT url FROM web_pages WHERE due_at IS NOT NULL"
LEASES_END = "UPDATE web_pages SET due_at = now() WHERE due_at > now()"


@dataclass(kw_only=True)
class Web(KilledHome):
    """A home, sites that change, and the agents that read them."""

    sites: list[Site] = field(default_factory=lambda: [Site() for _ in range(HOSTS)])
    pages: int = 24
    said: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By address, every version that its site ever had, as HTML."""
    kept: set[tuple[str, str]] = field(default_factory=set)
    """Address and prompt of what agents told after a fetch, and was not refused."""
    hooks: list[float] = field(default_factory=list)
    """Seconds that each hook took."""
    served: int = 0
    """Hooks that were answered with a page."""

    # --- the sites ----------------------------------------------------------------------------

    def change(self) -> None:
        """A quarter of the pages get a new version; at first all get one."""
        for number in range(self.pages):
            site, path = self.sites[number % HOSTS], f"/page{number}"
            if path in site.pages and self.chance.random() > 0.25:
                continue
            versions = self.said[site.url(path)]
            versions.append(self.page(number, len(versions)))
            site.pages[path] = versions[-1]
            site.answers[path] = _slowly(site, self.chance.uniform(0, 0.2))

    def page(self, number: int, version: int) -> str:
        """Every paragraph says of which version it is."""
        parts = [
            f"<h2>Part {part}</h2><p>Part {part} of page p{number} in version {version} says"
            f" {' '.join(self.chance.choices(('oil', 'lamp', 'wick', 'cellar'), k=40))}.</p>"
            for part in range(self.chance.randint(2, 12))
        ]
        return f"<html><title>Page {number}</title><h1>Page {number}</h1>{''.join(parts)}</html>"

    # --- agents -------------------------------------------------------------------------------

    def agent(self, address: Address, stop: threading.Event, chance: random.Random) -> None:
        """Looks before each fetch and tells after it, until it is stopped."""
        bearer = {"Authorization": f"Bearer {token(self.home, 'hook-token')}"}
        with httpx.Client(base_url=address.url, headers=bearer, timeout=LIMIT) as client:
            while not stop.is_set():
                url, prompt = chance.choice(list(self.said)), f"prompt {chance.randint(0, 10**6)}"
                if self.before(client, url, prompt):
                    continue
                log = hook_log(self.home)
                size = log.stat().st_size if log.exists() else 0
                answered = self.hook(client, "post-tool-use", url, prompt)
                refused = log.exists() and log.stat().st_size != size
                if answered is not None and not refused:
                    self.kept.add((url, prompt))

    def before(self, client: httpx.Client, url: str, prompt: str) -> bool:
        said = self.hook(client, "pre-tool-use", url, prompt)
        if said:
            self.served += 1
            self.one_version(url, json.loads(said)["hookSpecificOutput"])
        return bool(said)

    def hook(self, client: httpx.Client, event: str, url: str, prompt: str) -> bytes | None:
        """What the server says; None where it is away, and the client carries on."""
        began = time.monotonic()
        try:
            answer = client.post(f"/hooks/{event}", json=told(url, prompt))
        except httpx.TransportError:
            time.sleep(0.05)
            return None
        finally:
            self.hooks.append(time.monotonic() - began)
        if answer.status_code != 200:
            raise BrokenError(f"a hook was answered {answer.status_code}: {answer.text[:200]}")
        return answer.content

    def one_version(self, url: str, decision: dict[str, str]) -> None:
        """Raises BrokenError for a page of which some is old and some is new."""
        text = decision["permissionDecisionReason"]
        versions = {int(number) for _, number in VERSION.findall(text)}
        if len(versions) != 1 or max(versions) >= len(self.said[url]):
            raise BrokenError(f"{url} was served in versions {versions}:\n{text[:1000]}")

    def command_hook(self) -> None:
        """`vade-hook` with the server in any state: it ends well, and says one thing or nothing."""
        url = self.chance.choice(list(self.said))
        began = time.monotonic()
        done = subprocess.run(
            [*HOOK, "--home", self.home],
            input=json.dumps(told(url, "the oil")).encode(),
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
        self.hooks.append(time.monotonic() - began)
        if done.returncode != 0 or done.stderr:
            raise BrokenError(f"vade-hook ended with {done.returncode}: {done.stderr!r}")
        if done.stdout:
            self.one_version(url, json.loads(done.stdout)["hookSpecificOutput"])

    # --- a round ------------------------------------------------------------------------------

    def round(self, kind: str | None = None) -> None:
        kind = kind or self.chance.choice(KINDS)
        self.rounds[kind] += 1
        self.change()
        lost = asyncio.run(self.column(IN_HAND))
        server, address = self.serve()
        beside = self.start(kind) if kind in ("refresh", "worker") else None
        stop, failures = threading.Event(), list[BaseException]()

        def work(seed: int) -> None:
            try:
                self.agent(address, stop, random.Random(seed))
            except BaseException as error:
                failures.append(error)

        seeds = [self.chance.getrandbits(32) for _ in range(3)]
        agents = [threading.Thread(target=work, args=(seed,)) for seed in seeds]
        for agent in agents:
            agent.start()
        time.sleep(self.chance.uniform(0.1, 3.0))
        self.hit[kind] += (beside or server).poll() is None
        self.kill(kind, server, beside)
        self.command_hook()
        time.sleep(self.chance.uniform(0.0, 1.5))
        stop.set()
        for agent in agents:
            agent.join(LIMIT)
        if failures:
            raise failures[0]
        self.end(server)
        self.command_hook()
        self.look()
        if kind == "terminate" and (kept := asyncio.run(self.column(IN_HAND)) - lost):
            raise BrokenError(f"the server was stopped and kept in hand {sorted(kept)}")

    def serve(self) -> "tuple[subprocess.Popen[str], Address]":
        server = self.start("serve", "--port", "0")
        deadline = time.monotonic() + LIMIT
        while (address := find(self.home)) is None or address.pid != server.pid:
            if server.poll() is not None or time.monotonic() > deadline:
                server.kill()
                raise BrokenError(f"the server did not start: {self.finish(server)}")
            time.sleep(0.02)
        return server, address

    def kill(
        self,
        kind: str,
        server: "subprocess.Popen[str]",
        beside: "subprocess.Popen[str] | None",
    ) -> None:
        if kind.startswith("database") or (beside and self.chance.random() < 0.3):
            self.kill_server()
        if kind in ("serve", "database and serve"):
            server.kill()
        if kind == "terminate":
            server.terminate()
        if beside is not None:
            how = self.chance.choice((signal.SIGKILL, signal.SIGTERM, None))
            if how is not None or kind == "worker":
                beside.send_signal(how or signal.SIGTERM)
            code, _, err = self.finish(beside)
            if how is signal.SIGTERM and not self.stopped_well(code) and code != 1:
                raise BrokenError(f"{kind} did not stop in good order: {code}\n{err}")

    def end(self, server: "subprocess.Popen[str]") -> None:
        """Stop it in good order where it is still there."""
        killed = server.poll() == -signal.SIGKILL
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
        code, _, err = self.finish(server)
        if is_served(self.home) or find(self.home):
            raise BrokenError("a server that is gone holds its lock")
        if not killed and not self.stopped_well(code):
            raise BrokenError(f"the server did not stop in good order: {code}\n{err}")

    # --- what is left -------------------------------------------------------------------------

    async def broken(self) -> dict[str, list[str]]:
        wrong = await super().broken()
        async with await self.connect() as connection:
            stored = await rows(
                connection,
                "SELECT p.url, p.etag, d.content FROM web_pages p"
                " JOIN crawled_documents d ON d.id = p.document_id",
            )
        known = await self.column("SELECT url FROM web_pages UNION SELECT url FROM web_aliases")
        digests = await self.column("SELECT url || ' ' || prompt FROM web_digests")
        found = {
            "pages that nobody will fetch": await self.column(FORGOTTEN),
            "documents that are not of one page": await self.column(WITHOUT_PAGE),
            "pages told of and lost": {url for url, _ in self.kept} - known,
            "digests told of and lost": {f"{url} {prompt}" for url, prompt in self.kept} - digests,
            "pages of which some is old and some is new": {
                url for url, etag, text in stored if not self.is_version(url, etag, text)
            },
        }
        return wrong | {name: sorted(urls) for name, urls in found.items() if urls}

    def is_version(self, url: str, etag: str, text: str) -> bool:
        """Whether text and validator are of one and the same version that the site had."""
        versions = {int(number) for _, number in VERSION.findall(text)}
        if len(versions) != 1:
            return False
        html = self.said[url][versions.pop()]
        return etag == f'"{hashlib.sha256(html.encode()).hexdigest()[:16]}"' and len(
            VERSION.findall(html)
        ) == len(VERSION.findall(text))

    async def column(self, query: str) -> set[str]:
        async with await self.connect() as connection:
            if await rows(connection, "SELECT to_regclass('web_sources')") == [(None,)]:
                return set()  # there are no tables yet
            return {text for (text,) in await rows(connection, query)}

    # --- the end ------------------------------------------------------------------------------

    def compare(self) -> None:
        """Undisturbed, everything told of gets fetched, and a refresh finds what has changed."""
        asyncio.run(self.leases_end())
        server, _ = self.serve()
        deadline = time.monotonic() + LIMIT
        while left := asyncio.run(
            self.column("SELECT url FROM web_pages WHERE due_at IS NOT NULL")
        ):
            if time.monotonic() > deadline:
                raise BrokenError(f"never fetched: {sorted(left)}")
            time.sleep(0.2)
        self.end(server)
        code, out, err = self.finish(self.start("refresh"))
        if code != 0:
            raise BrokenError(f"an undisturbed refresh failed: {out}\n{err}")
        self.look()
        if told_wrong := asyncio.run(self.column("SELECT url FROM web_pages WHERE error <> ''")):
            raise BrokenError(f"pages with an error of old: {sorted(told_wrong)}")
        ours, jobs = asyncio.run(self.everything("postgres"))
        if jobs:
            raise BrokenError(f"jobs are left: {jobs}")
        asyncio.run(self.make_database("fresh"))
        asyncio.run(self.fetch_anew())
        fresh, _ = asyncio.run(self.everything("fresh"))
        differences(ours, fresh)

    async def leases_end(self) -> None:
        """As if the time had passed after which the fetches of a killed process come back."""
        async with await self.connect() as connection:
            await connection.execute(LEASES_END)

    async def fetch_anew(self) -> None:
        urls = await self.column("SELECT url FROM web_pages")
        url = await self.url_of("fresh")
        settings = Settings(home=self.home, database_url=url, embedder=self.embedder)
        async with App.open(settings) as app:
            state = app.cache.state
            state.fetcher = replace(state.fetcher, politeness=Politeness(app.database, 0))
            for one in urls:
                await app.cache.store_page(one)
            await app.process_queue()

    def close(self) -> None:
        super().close()
        for site in self.sites:
            site.close()


def told(url: str, prompt: str) -> dict[str, object]:
    """What a client says before and after a fetch."""
    return {
        "tool_name": "WebFetch",
        "tool_input": {"url": url, "prompt": prompt},
        "tool_response": {"code": 200, "result": "What a small model made of it."},
    }


def _slowly(site: Site, seconds: float) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        site.page(request)

    return answer


def web(root: Path, *, seed: int) -> Web:
    """New under `root`."""
    home = root / "home"
    home.mkdir()
    (home / "cache.toml").write_text(RULES)
    made = Web(home=home, chance=random.Random(seed))
    for number, site in enumerate(made.sites):
        site.cache_control = f"max-age={3600 if number % 3 else 0}"
    return made
