"""Memory of this process and of a PostgreSQL server on this machine."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg

MEGABYTE = 1_000_000


def own_peak() -> int:
    """The most memory this process ever had, in bytes.

    Linux's ru_maxrss also counts what the process was before it became this program, so a child
    of a large parent looks large; VmHWM does not.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


async def server_now(conninfo: str) -> int | None:
    """Memory of the server with all its processes, in bytes; None where it cannot be seen.

    A page that several of them use counts once, so shared buffers do, as far as they were touched.
    """
    server = await server_process(conninfo)
    try:
        if server is None:
            return None
        return _proportional(server) + sum(map(_while_it_lasts, children(server)))
    except (OSError, ValueError):
        return None


async def server_process(conninfo: str) -> int | None:
    """The server's first process; None where it is not on this machine, or cannot be seen."""
    connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True)
    async with connection:
        row = await (
            await connection.execute("SELECT inet_server_addr(), pg_backend_pid()")
        ).fetchone()
        assert row is not None
        address, backend = row
        try:
            return _parent(Path(f"/proc/{backend}")) if address is None else None
        except (OSError, ValueError):
            return None


def children(parent: int) -> Iterator[int]:
    """The processes that it started and that have not ended."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                if _parent(folder) == parent:
                    yield int(folder.name)
            except (OSError, ValueError):  # it has ended
                continue


def _parent(process: Path) -> int:
    # The name before it is in brackets and may hold anything.
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])


def _while_it_lasts(process: int) -> int:
    try:
        return _proportional(process)
    except PermissionError:
        raise
    except (OSError, ValueError):  # it has ended
        return 0


def _proportional(process: int) -> int:
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"the memory of process {process} cannot be read")


def megabytes(size: int | None) -> str:
    return "?" if size is None else f"{size / MEGABYTE:.0f} MB"


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
