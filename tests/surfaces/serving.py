"""A server of a test's own, as a process, and what to ask it with."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from vademecum.surfaces.http.instance import Address, find, token

BIN = Path(sys.executable).parent


@dataclass(frozen=True, kw_only=True)
class Served:
    process: "subprocess.Popen[str]"
    address: Address
    home: Path
    environment: dict[str, str]

    def client(self, name: str = "token") -> httpx.Client:
        bearer = {"Authorization": f"Bearer {token(self.home, name)}"}
        return httpx.Client(base_url=self.address.url, headers=bearer, timeout=30)

    def stop(self) -> tuple[int, str]:
        """SIGTERM; the exit code and what was said."""
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


def environment_of(home: Path, database_url: str, **variables: str) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("VADE_")}
    return clean | {"VADE_HOME": str(home), "VADE_DATABASE_URL": database_url} | variables


def start(
    home: Path, database_url: str, *arguments: str, port: int = 0, **variables: str
) -> Served:
    environment = environment_of(home, database_url, **variables)
    process = subprocess.Popen(
        [BIN / "vade", "serve", "--port", str(port), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while (address := find(home)) is None or address.pid != process.pid:
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise AssertionError(f"the server did not start: {process.communicate()[1]}")
        time.sleep(0.02)
    return Served(process=process, address=address, home=home, environment=environment)


@contextmanager
def served(
    home: Path, database_url: str, *arguments: str, port: int = 0, **variables: str
) -> Iterator[Served]:
    running = start(home, database_url, *arguments, port=port, **variables)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.communicate()
