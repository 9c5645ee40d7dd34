"""Processor time of this process and of a PostgreSQL server here, with their children."""

import os
import resource
from pathlib import Path

from engines.memory import children, server_process


def own_seconds() -> float:
    """Of this process and its children, those that have ended too."""
    try:
        return _seconds(os.getpid())
    except OSError:  # there is no /proc: without the children that still run
        return sum(
            usage.ru_utime + usage.ru_stime
            for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        )


async def server_seconds(conninfo: str) -> float | None:
    """Of the server since it was started; None where it cannot be seen."""
    server = await server_process(conninfo)
    return None if server is None else _seconds(server)


def _seconds(process: int) -> float:
    # The name before the numbers is in brackets and may hold anything.
    numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(_seconds, children(process)))
