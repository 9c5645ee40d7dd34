"""A workload for the cache, and its report: pages of Debian's documentation packages on loopback,
several projects with several prompts each, and pages that change in between.

    python benchmarks/workload.py [--pages 240] [--database URL] [--html report.html]
"""

import argparse
import asyncio
import hashlib
import os
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from lxml import html as lxml_html

from scratch import scratch_app
from vademecum.app import App
from vademecum.types import Query

HOSTS = 8
"""Loopback addresses: a host is asked for one page at a time, with a pause."""
RULES = """
[defaults]
private_network = true
least_ttl = "0s"
"""


class Site:
    """Pages by path, with validators; a third of them must be looked at again at each check."""

    def __init__(self, folder: Path, pages: list[Path]) -> None:
        self.pages = {f"/{path.relative_to(folder)}": path.read_bytes() for path in pages}
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = site.pages[self.path]
                etag = f'"{hashlib.md5(body).hexdigest()}"'
                same = self.headers.get("If-None-Match") == etag
                age = 0 if hash_of(self.path) % 3 == 0 else 3600
                self.send_response(304 if same else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("ETag", etag)
                self.send_header("Cache-Control", f"max-age={age}")
                self.send_header("Content-Length", "0" if same else str(len(body)))
                self.end_headers()
                if not same:
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.handler = Handler

    def serve(self, stack: ExitStack) -> list[str]:
        """Start it at several addresses; the URL of each page."""
        bases = []
        for host in range(HOSTS):
            server = ThreadingHTTPServer((f"127.0.0.{host + 2}", 0), self.handler)
            server.daemon_threads = True
            Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            bases.append(f"http://127.0.0.{host + 2}:{server.server_port}")
        return [bases[number % HOSTS] + path for number, path in enumerate(self.pages)]


def hash_of(text: str) -> int:
    return int(hashlib.md5(text.encode()).hexdigest(), 16)


def choose(folder: Path, count: int) -> list[Path]:
    """Real pages, an equal share of each package, in an order that no one picked."""
    by_package: dict[str, list[Path]] = {}
    for path in folder.rglob("*.html"):
        if not path.is_symlink() and path.is_file() and 4_000 < path.stat().st_size < 400_000:
            by_package.setdefault(path.relative_to(folder).parts[0], []).append(path)
    queues = [
        sorted(paths, key=lambda path: hash_of(str(path)))
        for paths in sorted(by_package.values(), key=len, reverse=True)
    ]
    chosen: list[Path] = []
    while len(chosen) < count and any(queues):
        chosen += [queue.pop() for queue in queues if queue]
    return chosen[:count]


def prompts(body: bytes, random_: random.Random) -> list[str]:
    """What its headings speak of: three prompts an agent might have."""
    tree = lxml_html.fromstring(body)
    found = [" ".join(h.text_content().split()).strip("¶# ") for h in tree.iter("h1", "h2", "h3")]
    found = [heading for heading in found if 3 < len(heading) < 90] or ["overview"]
    forms = ("What does it say about {}?", "{}", "Explain {} with an example")
    return [form.format(random_.choice(found)) for form in forms]


async def visit(app: App, url: str, prompt: str, project: str) -> str:
    """As a client does: look, and after a fetch of its own tell of it."""
    result = await app.cache.check(url, prompt=prompt, project=project)
    if not result.served:
        await app.cache.page_fetched(url, prompt=prompt, result="digest", project=project)
    return result.outcome


async def workload(app: App, site: Site, urls: list[str]) -> None:
    random_ = random.Random(0)
    asked = {
        url: prompts(body, random_) for url, body in zip(urls, site.pages.values(), strict=True)
    }
    for turn, project in enumerate(("/first", "/second", "/first")):
        started = time.perf_counter()
        seen: dict[str, int] = {}
        for url in urls:
            for prompt in asked[url][: 1 if turn == 0 else 2]:
                outcome = await visit(app, url, prompt, project)
                seen[outcome] = seen.get(outcome, 0) + 1
        print(f"round {turn + 1}: {seen} in {time.perf_counter() - started:.0f} s", flush=True)
        started = time.perf_counter()
        progress, left = await app.process_queue()
        print(
            f"  queue: {progress.embedded} chunks embedded, {progress.reused} reused, "
            f"{left.pending} left, {time.perf_counter() - started:.0f} s",
            flush=True,
        )
        for path in list(site.pages):
            if random_.random() < 0.1:
                changed = b"<p>Changed: this paragraph is number %d.</p></body>" % turn
                site.pages[path] = site.pages[path].replace(b"</body>", changed)
    for url in urls:
        await app.search(Query(text=asked[url][2], collection="web", limit=8))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("/usr/share/doc"))
    parser.add_argument("--pages", type=int, default=240)
    parser.add_argument("--database", help="a PostgreSQL where a database may be made")
    parser.add_argument("--html", type=Path)
    arguments = parser.parse_args()
    site = Site(arguments.folder, choose(arguments.folder, arguments.pages))
    print(f"{len(site.pages)} pages, {sum(map(len, site.pages.values())) / 1e6:.1f} MB of HTML")
    with ExitStack() as stack:
        urls = site.serve(stack)
        async with scratch_app(arguments.database) as app:
            (app.settings.home / "cache.toml").write_text(RULES)
            await workload(app, site, urls)
            await app.cache.close()
            await asyncio.to_thread(report, app, arguments.html)


def report(app: App, html: Path | None) -> None:
    """As a user asks for it: `vade report`."""
    picture = ["--html", html] if html else []
    subprocess.run(
        [Path(sys.executable).parent / "vade", "report", "--last", "6h", *picture],
        env=os.environ
        | {
            "VADE_HOME": str(app.settings.home),
            "VADE_DATABASE_URL": app.database.conninfo,
        },
        check=False,
    )


if __name__ == "__main__":
    asyncio.run(main())
