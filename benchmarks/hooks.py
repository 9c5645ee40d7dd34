"""What a hook costs the agent that waits for it.

    python benchmarks/hooks.py [--calls N]

A page is stored, and the hook before a fetch answers with its passages: over HTTP, as the client
posts it itself, and by `vade-hook` as a whole process. Each stands beside a reference measured in
turn with it, call by call: a bare asyncio server that answers the same bytes to the same client,
and an interpreter that starts and ends. `chrt -f 1` before it holds for its server and its database
too, and keeps a busy machine's other work from going before theirs.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "surfaces"))

import httpx
from serving import served

import vademecum.hook
from scratch import scratch_app
from vademecum.surfaces.http.instance import Address, token

URL = "https://lamps.example.org/manual"
PROMPT = "Where is the oil kept?"
FACT = "The oil of the lamp is kept in the cellar, in barrels of forty litres."
INPUT = json.dumps(
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "WebFetch",
        "tool_input": {"url": URL, "prompt": PROMPT},
        "cwd": "/",
    }
).encode()
HOOK = [sys.executable, "-I", "-S", vademecum.hook.__file__, "pre-tool-use"]
"""As `vade install` writes it for one user."""
BARE = [sys.executable, "-I", "-S", "-c", "pass"]
BARS = {"http": 5.0, "command": 25.0, "command, nothing running": 50.0}
"""Milliseconds of the 95th percentile."""


@dataclass
class Timed:
    hook: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)

    def line(self, name: str) -> str:
        (_, ours), (p50, p95) = _percentiles(self.reference), _percentiles(self.hook)
        verdict = "held" if p95 <= BARS[name] else "MISSED"
        return (
            f"{name:26} p50 {p50:6.1f} ms, p95 {p95:6.1f} ms (bar {BARS[name]:.0f}: {verdict});"
            f" {p95 / ours:.2f} times the reference's p95 of {ours:.1f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="What a hook costs the agent that waits for it.")
    parser.add_argument("--calls", type=int, default=200)
    asyncio.run(_measure(parser.parse_args().calls))


async def _measure(calls: int) -> None:
    print(f"{calls} calls each; load {os.getloadavg()[0]:.1f}", flush=True)
    async with scratch_app(embedder="none") as app:
        await app.cache.store_page(URL, content=_page())
        await app.process_queue()
        with tempfile.TemporaryDirectory(prefix="vade-hooks-") as folder:
            home = Path(folder)
            url = app.database.conninfo
            await asyncio.to_thread(_with_server, home, url, calls)
            await asyncio.to_thread(_with_nothing, home, calls)
    print(f"load {os.getloadavg()[0]:.1f}")


def _with_server(home: Path, database_url: str, calls: int) -> None:
    with served(home, database_url, VADE_EMBEDDER="none", VADE_HOOK_CAP_MS="5000") as running:
        answer = _post(running.client("hook-token"), calls=1)[1]
        said = json.loads(answer)["hookSpecificOutput"]["permissionDecisionReason"]
        if FACT not in said:
            raise SystemExit("the hook does not answer with the page")
        print(f"a hit of {len(answer)} bytes")
        print(_http(running.address, home, answer, calls).line("http"), flush=True)

        def check(output: bytes) -> bool:
            return FACT.encode() in output

        print(_command(home, calls, check).line("command"), flush=True)


def _with_nothing(home: Path, calls: int) -> None:
    print(_command(home, calls, lambda output: not output).line("command, nothing running"))


def _http(address: Address, home: Path, answer: bytes, calls: int) -> Timed:
    timed = Timed()
    bearer = {"Authorization": f"Bearer {token(home, 'hook-token')}"}
    script = Path(__file__).with_name("echo.py")
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as echo:
        assert echo.stdin is not None
        assert echo.stdout is not None
        echo.stdin.write(answer)
        echo.stdin.close()
        port = int(echo.stdout.readline())
        try:
            _http_calls(timed, address, port, bearer, calls)
        finally:
            echo.kill()
    return timed


def _http_calls(
    timed: Timed, address: Address, port: int, bearer: dict[str, str], calls: int
) -> None:
    with (
        httpx.Client(base_url=address.url, headers=bearer) as hook,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer) as reference,
    ):
        _post(hook, calls=10)
        _post(reference, calls=10)
        for _ in range(calls):
            timed.hook.append(_post(hook)[0])
            timed.reference.append(_post(reference)[0])


def _post(client: httpx.Client, *, calls: int = 1) -> tuple[float, bytes]:
    """Milliseconds and answer of the last call."""
    for _ in range(calls):
        began = time.perf_counter()
        answer = client.post(
            "/hooks/pre-tool-use", content=INPUT, headers={"Content-Type": "application/json"}
        )
        took = (time.perf_counter() - began) * 1000
        answer.raise_for_status()
    return took, answer.content


def _command(home: Path, calls: int, is_right: Callable[[bytes], bool]) -> Timed:
    timed = Timed()
    for number in range(calls + 5):
        took, output = _run([*HOOK, "--home", str(home)])
        if not is_right(output):
            raise SystemExit(f"the hook said something else: {output[:200]!r}")
        bare, _ = _run(BARE)
        if number >= 5:
            timed.hook.append(took)
            timed.reference.append(bare)
    return timed


def _run(command: list[str]) -> tuple[float, bytes]:
    began = time.perf_counter()
    done = subprocess.run(command, input=INPUT, capture_output=True, check=True)
    return (time.perf_counter() - began) * 1000, done.stdout


def _percentiles(times: list[float]) -> tuple[float, float]:
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def _page() -> str:
    filler = "Nothing in this part is about what was asked. " * 8
    parts = [f"## Part {number}\n\n{filler}\n\n" for number in range(20)]
    return f"# Lamps\n\n{''.join(parts)}## Oil\n\n{FACT}\n"


if __name__ == "__main__":
    main()
