"""The queue: jobs leased by workers, returned when a worker dies, tried again when one fails.

A job commits with the rows it concerns, and everything works through a transaction pooler.
"""

import os
import socket
from collections.abc import Collection as Ids
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from psycopg.rows import class_row

from vademecum.store.cache import MAX_DEATHS as MAX_PAGE_DEATHS
from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import CollectionId, DocumentId

PRIORITY = 10
LEASE_SECONDS = 60.0
MAX_FAILURES = 5
MAX_DEATHS = 25
BACK_OFF_SECONDS = 2.0

_numbers = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    id: int
    document_id: DocumentId
    attempts: int
    failures: int
    run_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenJobs:
    pending: int
    processing: int
    failed: int
    due_in: float | None
    """Seconds until the next waiting job may be taken; at most 0 when one is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedJob:
    path: str
    error: str


async def enqueue(
    connection: Connection,
    documents: Ids[DocumentId],
    *,
    priority: int = PRIORITY,
    run: int | None = None,
) -> None:
    """Queue a job for each document, of the run that wants it."""
    await connection.execute(
        SQL["enqueue_jobs"], {"documents": list(documents), "priority": priority, "run": run}
    )


async def lock_waiting(connection: Connection, document: DocumentId) -> None:
    """Keep the document's job, if one waits, from workers until the transaction ends."""
    await connection.execute(SQL["lock_waiting_job"], {"document": document})


async def hold(connection: Connection, run: int) -> None:
    """Keep what waits of a cancelled run from workers."""
    await connection.execute(SQL["hold_jobs"], {"run": run})


async def release(connection: Connection, run: int) -> None:
    """Let workers have what a run left, and what failed in it."""
    await connection.execute(SQL["release_jobs"], {"run": run})


async def lease(
    connection: Connection, worker: str, *, limit: int, collection: CollectionId | None = None
) -> list[Job]:
    """Up to `limit` due jobs, the worker's until the lease runs out; see `extend`."""
    async with connection.cursor(row_factory=class_row(Job)) as cursor:
        await cursor.execute(
            SQL["lease_jobs"],
            {
                "limit": limit,
                "collection": collection,
                "worker": worker,
                "seconds": LEASE_SECONDS,
            },
        )
        return await cursor.fetchall()


async def extend(connection: Connection, worker: str, jobs: Ids[Job]) -> None:
    await connection.execute(
        SQL["extend_lease"],
        {"ids": [job.id for job in jobs], "worker": worker, "seconds": LEASE_SECONDS},
    )


async def complete(connection: Connection, worker: str, jobs: Ids[Job]) -> None:
    """Done, as far as the worker still has them: one that was returned meanwhile is done again."""
    await connection.execute(
        SQL["complete_jobs"], {"ids": [job.id for job in jobs], "worker": worker}
    )


async def fail(
    connection: Connection, worker: str, job: Job, error: str, *, final: bool = False
) -> None:
    """Try again later; never again after MAX_FAILURES, or where that is `final`."""
    values = {
        "ids": [job.id],
        "worker": worker,
        "error": error.replace("\x00", "\\x00"),
        "max_failures": 1 if final else MAX_FAILURES,
        "back_off": BACK_OFF_SECONDS,
    }
    async with connection.transaction():
        await connection.execute(SQL["drop_superseded_jobs"], values)
        await connection.execute(SQL["fail_jobs"], values)


async def give_back(connection: Connection, worker: str, jobs: Ids[Job] | None = None) -> None:
    """Return what the worker has and has not done; of that only `jobs`, where given."""
    ids = None if jobs is None else [job.id for job in jobs]
    values = {"ids": ids, "worker": worker}
    async with connection.transaction():
        await connection.execute(SQL["drop_superseded_jobs"], values)
        await connection.execute(SQL["give_back_jobs"], values)


async def return_lost(connection: Connection, worker: str = "", held: Ids[Job] = ()) -> int:
    """Return the jobs of workers that died, at once for those of this machine.

    Lost too are those of `worker` that it knows nothing of, since it holds only `held`: the
    answer to its lease never came.
    """
    cursor = await connection.execute(SQL["leased_workers"])
    workers = [name for (name,) in await cursor.fetchall()]
    values = {
        "dead": [name for name in workers if is_dead(name)],
        "max_deaths": MAX_DEATHS,
        "worker": worker,
        "held": [job.id for job in held],
    }
    cursor = await connection.execute(SQL["return_lost_jobs"], values)
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def open_jobs(connection: Connection, collection: CollectionId | None = None) -> OpenJobs:
    async with connection.cursor(row_factory=class_row(OpenJobs)) as cursor:
        await cursor.execute(SQL["open_jobs"], {"collection": collection})
        counts = await cursor.fetchone()
    assert counts is not None
    return counts


def together(counts: Iterable[OpenJobs]) -> OpenJobs:
    """What is left in several collections."""
    found = list(counts)
    due = [one.due_in for one in found if one.due_in is not None]
    return OpenJobs(
        pending=sum(one.pending for one in found),
        processing=sum(one.processing for one in found),
        failed=sum(one.failed for one in found),
        due_in=min(due, default=None),
    )


async def failed(connection: Connection, collection: CollectionId | None = None) -> list[FailedJob]:
    """Documents that could not be processed and pages that could not be read, and why."""
    async with connection.cursor(row_factory=class_row(FailedJob)) as cursor:
        values = {"collection": collection, "max_deaths": MAX_PAGE_DEATHS}
        await cursor.execute(SQL["failed_jobs"], values)
        return await cursor.fetchall()


async def given_up(connection: Connection, run: int) -> set[DocumentId]:
    """Documents of a run that are stored and could not be processed."""
    cursor = await connection.execute(SQL["given_up"], {"run": run})
    return {document for (document,) in await cursor.fetchall()}


async def waiting_bytes(
    connection: Connection, collection: CollectionId | None = None
) -> dict[str, int]:
    """By embedder, the bytes of the documents that wait or are in work."""
    cursor = await connection.execute(SQL["waiting_bytes"], {"collection": collection})
    return {embedder: int(count) for embedder, count in await cursor.fetchall()}


async def forget_done(connection: Connection) -> None:
    await connection.execute(SQL["forget_done_jobs"])


def new_worker() -> str:
    """A name for a worker of this process, from which others on the machine can tell when it is
    gone."""
    return f"{_machine()}/{os.getpid()}/{_start_of(os.getpid())}/{next(_numbers)}"


def is_dead(worker: str) -> bool:
    """Whether a worker of this machine is gone; of other machines nothing is known."""
    if not worker.startswith(f"{_machine()}/"):
        return False
    _, pid_text, start, _ = worker.rsplit("/", 3)
    pid = int(pid_text)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return _start_of(pid) != start


@cache
def _machine() -> str:
    """Host and boot: a process id means something only there."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    namespace = Path("/proc/self/ns/pid")
    parts = [socket.gethostname()]
    if boot.exists():
        parts += [boot.read_text().strip(), str(namespace.readlink())]
    return ":".join(parts)


def _start_of(pid: int) -> str:
    """When a process started, so that a reused id is no disguise; empty where unknown or over."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
