"""How many requests a second the server answers, under wrk.

    python benchmarks/load.py [--folder DIR] [--seconds N] [--connections N]

A folder is indexed, a server started, and wrk (a Debian package) asks it as many agents at once
would: searches, with other words each time, and chunks with their neighbours. The reference is a
bare uvicorn server on the same machine that answers the same bytes, asked in turn with it. Both
are one process. Without wrk the benchmark is skipped, and says so.
"""

import argparse
import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "surfaces"))

import httpx
from serving import BIN, served

from vademecum.store.embedded import EmbeddedDatabase
from vademecum.surfaces.http.instance import token

DOCS = Path(__file__).parent.parent / "docs"

BARE = """
import sys, uvicorn
body = open(sys.argv[1], "rb").read()
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
uvicorn.run(app, port=int(sys.argv[2]), log_level="error", access_log=False, lifespan="off")
"""

POSTS = """
local queries = { %s }
local turn = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  turn = turn + 1
  return wrk.format(nil, nil, nil, queries[turn %% #queries + 1])
end
"""
GETS = 'wrk.method = "GET"\n'
TOLD = """
done = function(summary, latency, requests)
  io.write(string.format("RESULT %d %d %f %f %d\\n", summary.requests, summary.duration,
    latency:percentile(50) / 1000, latency:percentile(95) / 1000,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
"""


@dataclass(frozen=True, kw_only=True)
class Measured:
    per_second: float
    p50: float
    p95: float
    errors: int

    def line(self, name: str) -> str:
        errors = f", {self.errors} ERRORS" if self.errors else ""
        return (
            f"{name:34} {self.per_second:8.0f} requests/s, p50 {self.p50:6.1f} ms,"
            f" p95 {self.p95:6.1f} ms{errors}"
        )


def measure(url: str, key: str, script: str, seconds: int, connections: int) -> Measured:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script + TOLD)
        file.flush()
        done = subprocess.run(
            [
                *("wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"),
                *("-s", file.name, "-H", f"Authorization: Bearer {key}", url),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    match = re.search(r"^RESULT (\d+) (\d+) (\S+) (\S+) (\d+)$", done.stdout, re.MULTILINE)
    assert match, done.stdout + done.stderr
    requests, microseconds, p50, p95, errors = map(float, match.groups())
    return Measured(per_second=requests / microseconds * 1e6, p50=p50, p95=p95, errors=int(errors))


@contextmanager
def bare(body: bytes, port: int) -> Iterator[str]:
    """The reference: a server that answers these bytes to everything."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        process = subprocess.Popen([sys.executable, "-c", BARE, file.name, str(port)])
        url = f"http://127.0.0.1:{port}/"
        try:
            for _ in range(200):
                try:
                    httpx.get(url)
                    break
                except httpx.TransportError:
                    time.sleep(0.05)
            yield url
        finally:
            process.terminate()
            process.wait()


def queries(folder: Path) -> list[str]:
    """Some hundred questions, of the words that the folder's headings have."""
    headings = [
        line.strip("# `\n")
        for path in sorted(folder.rglob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    ]
    return [
        f"how does {a.lower()} go with {b.lower()}"
        for a, b in zip(headings, headings[1:] + headings[:1], strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=DOCS)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--connections", type=int, default=8)
    asked = parser.parse_args()
    if shutil.which("wrk") is None:
        print("skipped: there is no wrk here (apt-get install wrk)")
        return
    home = Path(tempfile.mkdtemp(prefix="vade-load-"))
    try:
        run(home, asked.folder, asked.seconds, asked.connections)
    finally:
        asyncio.run(EmbeddedDatabase(home).stop())
        shutil.rmtree(home, ignore_errors=True)


def run(home: Path, folder: Path, seconds: int, connections: int) -> None:
    url = asyncio.run(EmbeddedDatabase(home).start())
    with served(home, url, "--workers", "1") as server:
        subprocess.run(
            [BIN / "vade", "bulk-index", folder, "-c", "docs", "--json"],
            env=server.environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        key = token(home)
        with server.client() as client:
            asked = queries(folder)
            found = client.post("/search", json={"query": asked[0], "collection": "docs"})
            found.raise_for_status()
            chunk = found.json()["results"][0]["chunk_id"]
            place = f"/collections/docs/chunks/{chunk}?context=2"
            context = client.get(place)
            context.raise_for_status()
        cases = [
            ("search, hybrid", "/search", searches(asked, "hybrid"), found.content),
            ("search, lexical", "/search", searches(asked, "lexical"), found.content),
            ("a chunk with two before and after", place, GETS, context.content),
        ]
        print(f"{connections} connections, {seconds} s each, {len(asked)} queries in turn")
        for name, path, script, body in cases:
            with bare(body, port=18233) as reference_url:
                reference = measure(reference_url, key, script, max(2, seconds // 2), connections)
            ours = measure(server.address.url + path, key, script, seconds, connections)
            print(ours.line(name))
            print(reference.line(f"  reference, {len(body)} bytes"))
            print(f"  {ours.per_second / reference.per_second:.3f} of the reference")


def searches(asked: list[str], mode: str) -> str:
    bodies = (json.dumps({"query": q, "collection": "docs", "mode": mode}) for q in asked)
    return POSTS % ", ".join(f"[==[{body}]==]" for body in bodies)


if __name__ == "__main__":
    main()
