"""What tracing costs: while it is off, and while it is on with a collector that answers or is dead.

    python benchmarks/tracing.py [--searches N]

Searches of a small collection without vectors, the states in turn search by search. The reference
is the search without its span. What a span costs that is off is measured by itself too.
"""

import argparse
import asyncio
import os
import socket
import statistics
import threading
import time
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import vademecum
from scratch import scratch_app
from vademecum.app import App
from vademecum.telemetry.spans import span, tracing
from vademecum.types import Query

QUERY = Query(text="which settings does the search have", collection="docs")


class _Collect(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


async def _bare(app: App) -> float:
    began = time.perf_counter()
    await app._searcher.search(QUERY)  # as `search`, without its span
    return (time.perf_counter() - began) * 1000


async def _searched(app: App) -> float:
    began = time.perf_counter()
    await app.search(QUERY)
    return (time.perf_counter() - began) * 1000


async def measure(app: App, searches: int, live: str, dead: str) -> None:
    times: dict[str, list[float]] = {"no span": [], "off": [], "on": [], "on, dead collector": []}
    states = {"off": None, "on": live, "on, dead collector": dead}
    for _ in range(10):
        await _searched(app)
    rounds = 20
    for _ in range(rounds):
        for name, url in states.items():
            with tracing(url) if url else nullcontext():
                for _ in range(searches // rounds):
                    times[name].append(await _searched(app))
                    if name == "off":
                        times["no span"].append(await _bare(app))
    reference = statistics.median(times["no span"])
    for name, took in times.items():
        p95 = statistics.quantiles(took, n=20)[-1]
        middle = statistics.median(took)
        print(f"{name:20} p50 {middle:7.3f} ms, p95 {p95:7.3f} ms, {middle / reference:.3f} times")


def alone(calls: int = 200_000) -> float:
    """Microseconds of one span while tracing is off."""
    began = time.perf_counter()
    for _ in range(calls):
        with span("search", "postgresql", query="q") as found:
            found.set(results_count=3)
    return (time.perf_counter() - began) / calls * 1e6


async def main() -> None:
    parser = argparse.ArgumentParser(description="What tracing costs.")
    parser.add_argument("--searches", type=int, default=400)
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; a span that is off: {alone():.2f} µs")
    collector = ThreadingHTTPServer(("127.0.0.1", 0), _Collect)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    with socket.socket() as nobody:  # bound, and not listening
        nobody.bind(("127.0.0.1", 0))
        urls = [
            f"http://127.0.0.1:{port}/v1/traces"
            for port in (collector.server_port, nobody.getsockname()[1])
        ]
        async with scratch_app(embedder="none") as app:
            docs = Path(vademecum.__file__).parents[2] / "docs"
            await app.ingest.bulk_index(docs, collection="docs")
            await measure(app, arguments.searches, *urls)
    collector.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
