"""A whole documentation site fetched page by page: how fast, what is read, and how large it gets.

    uv run benchmarks/sources.py SITE [--pages N] [--json]

SITE is a folder with a site that Sphinx built (objects.inv and its pages; Debian's python3.11-doc
has one in /usr/share/doc/python3.11/html). It is served on loopback, and one API of each page is
looked up as `vade fetch api` does, without the pause that hosts of others are given. Metadata are
the rows of the graph and of replies, with their indexes, per 10 000 documents; content is in files.
"""

import argparse
import asyncio
import json
import statistics
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scratch import scratch_app
from vademecum.app import App
from vademecum.cache.polite import Politeness
from vademecum.graph.sources.adapter import Subject
from vademecum.graph.sources.inventory import read_inventory

BAR = 100.0
"""Megabytes of metadata that 10 000 documents may take."""
DOCUMENTS = "{knowledge_scores,top_documents,source_replies,knowledge_changes}"
GRAPH = "{entities,stated_entities,graph_statements,relations}"
SIZE = f"""
SELECT coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE relname = ANY ('{DOCUMENTS}')), 0),
       coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE relname = ANY ('{GRAPH}')), 0)
  FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
 WHERE relkind = 'r' AND nspname = 'public'
"""
KINDS = """
SELECT kind, count(*), sum(pg_column_size(e.*))::bigint FROM entities e GROUP BY kind ORDER BY kind
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", dest="as_json")
    arguments = parser.parse_args()
    if not (arguments.site / "objects.inv").is_file():
        sys.exit(f"{arguments.site} has no objects.inv")
    found = asyncio.run(measure(arguments))
    if arguments.as_json:
        print(json.dumps(found, indent=2))
        return
    print(
        f"{found['pages']} pages, {found['failed']} failed; milliseconds a page: p50"
        f" {found['p50']:.0f}, p95 {found['p95']:.0f}"
    )
    for kind, (count, size) in found["kinds"].items():
        print(f"{count:8} {kind:14} {size / max(count, 1):8.0f} bytes each")
    print(
        f"for 10 000 documents: {found['own']:.0f} MB of metadata of their own (bar: {BAR:.0f}),"
        f" {found['all']:.0f} MB with all that was read in them, {found['content']:.0f} MB in files"
    )


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(arguments.site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        async with scratch_app(embedder="none") as app:
            home = app.settings.home
            (home / "cache.toml").write_text("[defaults]\nprivate_network = true\n")
            url = f"http://127.0.0.1:{server.server_port}"
            (home / "sources.toml").write_text(f'[sphinx]\ndocs = "{url}"\n')
            state = app.cache.state
            state.fetcher = replace(state.fetcher, politeness=Politeness(app.database, 0))
            return await fetched(app, arguments)
    finally:
        server.shutdown()


async def fetched(app: App, arguments: argparse.Namespace) -> dict[str, Any]:
    inventory = read_inventory((arguments.site / "objects.inv").read_bytes(), "the site")
    names: dict[str, str] = {}
    for entry in inventory.entries.values():
        if entry.domain == "py" and entry.role != "module":
            names.setdefault(entry.location.partition("#")[0], entry.name)
    times, failed = [], 0
    for name in list(names.values())[: arguments.pages]:
        started = time.perf_counter()
        subject = Subject(kind="api", name=name, language="python", package="docs")
        report = await app.sources.fetch(subject, only=["sphinx"])
        times.append((time.perf_counter() - started) * 1000)
        failed += len(report.failed)
        for one in report.failed:
            print(f"\n{name}: {one.reason}", file=sys.stderr)
        print(f"\r{len(times)} of {len(names)} pages", end="", file=sys.stderr)
    print(file=sys.stderr)
    async with app.database.connection() as connection:
        row = await (await connection.execute(SIZE)).fetchone()
        kinds = await (await connection.execute(KINDS)).fetchall()
    assert row is not None
    listed = {kind: (count, int(size)) for kind, count, size in kinds}
    documents = listed["ExternalDoc"][0]
    whole = sum(size for _, size in listed.values())
    # Of the graph's tables, with their indexes, documents have the share of their rows.
    own = float(row[0]) + float(row[1]) * listed["ExternalDoc"][1] / whole
    files = sum(
        path.stat().st_size
        for path in (app.settings.home / "external_knowledge").rglob("*")
        if path.is_file()
    )
    return {
        "pages": documents,
        "failed": failed,
        "p50": statistics.median(times),
        "p95": statistics.quantiles(times, n=20)[-1],
        "kinds": listed,
        "own": own / 1e6 / documents * 10_000,
        "all": (float(row[0]) + float(row[1])) / 1e6 / documents * 10_000,
        "content": files / 1e6 / documents * 10_000,
    }


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None: ...  # noqa: A002


if __name__ == "__main__":
    main()
