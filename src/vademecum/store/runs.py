"""Ingestion runs as rows: who works on them, what they counted, how they ended.

A run is held by a process with a lease, as a job is: session locks do not pass a transaction
pooler. Whoever looks at runs first ends those whose process is gone, so none is left running.
"""

import socket
from collections.abc import Collection as Ids
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg.rows import class_row

from vademecum.access import CURRENT
from vademecum.errors import BadInput, RunNotOpen, UnknownRun
from vademecum.store import jobs
from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import CollectionId, DocumentId

RunMode = Literal["incremental", "full", "recreate"]
RunState = Literal["queued", "running", "completed", "failed", "cancelled"]

MAX_LISTED = 1000
MAX_RUN = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One ingestion. Once completed, processed, skipped and failed files are all there were."""

    id: int
    collection: str
    folder: str | None
    """None: the chunks of stored documents were made again."""
    mode: RunMode
    state: RunState
    stored: bool
    """Whether the folder was read to its end; what is left are jobs."""
    files_total: int
    files_processed: int
    """Stored and searchable in their new form."""
    files_skipped: int
    """Unchanged."""
    files_failed: int
    files_pending: int
    """Stored and not yet searchable."""
    files_deleted: int
    chunks_created: int
    chunks_deleted: int
    error: str | None
    cancel_asked: bool
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration_seconds: float | None
    """Of all the times it ran, where it was resumed."""

    @property
    def ended(self) -> bool:
        return self.completed_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
    path: str
    error: str


def new_holder() -> str:
    """A name for one holding of a run by this process."""
    return jobs.new_worker()


async def begin(
    connection: Connection,
    collection: CollectionId,
    *,
    folder: str | None,
    mode: RunMode,
    holder: str,
) -> int:
    """Make a run that `holder` works on; the same one where it is asked for again."""
    cursor = await connection.execute(
        SQL["begin_run"],
        _made(collection, folder, mode) | {"holder": holder, "seconds": jobs.LEASE_SECONDS},
    )
    return _id(await cursor.fetchone())


async def queue(
    connection: Connection, collection: CollectionId, *, folder: str | None, mode: RunMode
) -> int:
    """Make a run that waits for somebody to do it."""
    cursor = await connection.execute(SQL["queue_run"], _made(collection, folder, mode))
    return _id(await cursor.fetchone())


def _made(collection: CollectionId, folder: str | None, mode: RunMode) -> dict[str, object]:
    return {
        "collection": collection,
        "folder": folder,
        "machine": socket.gethostname() if folder is not None else None,
        "mode": mode,
    }


def _id(row: tuple[int] | None) -> int:
    assert row is not None
    return row[0]


async def take_next(connection: Connection, holder: str) -> int | None:
    """Take the queued run that waits longest; call inside a transaction. None where none waits."""
    cursor = await connection.execute(SQL["next_queued_run"], {"machine": socket.gethostname()})
    row = await cursor.fetchone()
    if row is None:
        return None
    return row[0] if await _taken(connection, row[0], holder, ["queued"]) else None


async def take_again(connection: Connection, run: int, holder: str) -> None:
    """Take a failed or cancelled run, or a queued one; call inside a transaction.

    Raises UnknownRun, RunNotOpen.
    """
    if not await _taken(connection, run, holder, ["failed", "cancelled", "queued"]):
        raise RunNotOpen(run, (await one(connection, run)).state, "resumed")
    await jobs.release(connection, run)


async def _taken(connection: Connection, run: int, holder: str, states: Sequence[str]) -> bool:
    values = {"run": run, "holder": holder, "states": states, "seconds": jobs.LEASE_SECONDS}
    return (await connection.execute(SQL["take_run"], values)).rowcount > 0


async def requeue(connection: Connection, run: int) -> None:
    """Let a failed or cancelled run wait for somebody to go on with it; call inside a
    transaction. Raises UnknownRun, RunNotOpen."""
    if (await connection.execute(SQL["requeue_run"], {"run": run})).rowcount == 0:
        raise RunNotOpen(run, (await one(connection, run)).state, "resumed")
    await jobs.release(connection, run)


async def beat(connection: Connection, run: int, holder: str) -> bool | None:
    """Keep hold of a run; whether it is to be cancelled, None where it is no longer held."""
    values = {"run": run, "holder": holder, "seconds": jobs.LEASE_SECONDS}
    row = await (await connection.execute(SQL["beat_run"], values)).fetchone()
    return row[0] if row else None


async def begin_reading(connection: Connection, run: int) -> None:
    """Read from the start, whatever was read before."""
    await connection.execute(SQL["forget_read_failures"], {"run": run})


async def note_files(
    connection: Connection,
    run: int,
    *,
    total: int,
    stored: int,
    skipped: int,
    failed: Sequence[tuple[str, str]],
) -> None:
    """How far the reading is; `failed` are paths with their reasons, those noted before too."""
    values = {"run": run, "total": total, "stored": stored, "skipped": skipped}
    await connection.execute(SQL["note_run_files"], values)
    if failed:
        paths = [path for path, _ in failed]
        reasons = [reason.replace("\x00", "\\x00") for _, reason in failed]
        await connection.execute(
            SQL["note_run_failures"], {"run": run, "paths": paths, "errors": reasons}
        )


async def note_deletes(connection: Connection, run: int, documents: Ids[DocumentId]) -> None:
    """Count what goes with these documents, locked, and that all was read."""
    await connection.execute(SQL["run_deletes"], {"run": run, "documents": list(documents)})


async def count_chunks(
    connection: Connection, created: Mapping[int, int], deleted: Mapping[int, int]
) -> None:
    """Add to the chunks that runs created and deleted; in the order of their ids, so that two
    swaps do not wait for each other."""
    for run in sorted(created.keys() | deleted.keys()):
        await connection.execute(
            SQL["count_run_chunks"],
            {"run": run, "created": created.get(run, 0), "deleted": deleted.get(run, 0)},
        )


async def hand_over(connection: Connection, run: int, holder: str) -> None:
    """Leave the run's jobs to whoever works off the queue."""
    await connection.execute(SQL["hand_over_run"], {"run": run, "holder": holder})


async def put_back(connection: Connection, run: int, holder: str) -> None:
    """Let the run wait for another process."""
    await connection.execute(SQL["put_back_run"], {"run": run, "holder": holder})


async def end(
    connection: Connection, run: int, holder: str, state: RunState, error: str | None = None
) -> None:
    """How a run that is held ended; a cancelled one's jobs are held back."""
    values = {"run": run, "holder": holder, "state": state}
    text = None if error is None else error.replace("\x00", "\\x00")
    async with connection.transaction():
        ended = await connection.execute(SQL["end_run"], values | {"error": text})
        if state == "cancelled" and error is None and ended.rowcount:
            await jobs.hold(connection, run)


async def cancel(connection: Connection, run: int) -> None:
    """Stop a run, or ask its holder to. Raises UnknownRun, RunNotOpen."""
    async with connection.transaction():
        cursor = await connection.execute(SQL["ask_cancel"], {"run": run})
        row = await cursor.fetchone()
        if row is None:
            raise RunNotOpen(run, (await one(connection, run)).state, "cancelled")
        if row[0] == "cancelled":
            await jobs.hold(connection, run)


async def end_lost(connection: Connection) -> None:
    """End the runs whose process is gone, and those handed over whose jobs are done."""
    cursor = await connection.execute(SQL["run_holders"])
    dead = [holder for (holder,) in await cursor.fetchall() if jobs.is_dead(holder)]
    await connection.execute(SQL["end_lost_runs"], {"dead": dead, "seconds": jobs.LEASE_SECONDS})


async def one(connection: Connection, run: int) -> Run:
    """Raises UnknownRun, also where it is of a collection that the caller may not know of."""
    found = await _runs(connection, run=run) if 0 < run <= MAX_RUN else []
    if not found:
        raise UnknownRun(run)
    return found[0]


async def listed(
    connection: Connection, collection: CollectionId | None = None, *, limit: int = 50
) -> list[Run]:
    """The newest runs first, of one collection or of all that the caller may know of.

    Raises BadInput.
    """
    if not 1 <= limit <= MAX_LISTED:
        raise BadInput(f"at most {MAX_LISTED} runs are listed, not {limit}")
    return await _runs(connection, collection=collection, limit=limit)


async def _runs(
    connection: Connection,
    *,
    run: int | None = None,
    collection: CollectionId | None = None,
    limit: int = 1,
) -> list[Run]:
    seen = CURRENT.get().collections
    visible = None if seen is None else list(seen)
    values = {"run": run, "collection": collection, "limit": limit, "visible": visible}
    async with connection.cursor(row_factory=class_row(Run)) as cursor:
        await cursor.execute(SQL["runs"], values)
        return await cursor.fetchall()


async def failures(
    connection: Connection, run: int, *, limit: int = MAX_LISTED
) -> list[RunFailure]:
    """The sources that a run could not take, and why."""
    async with connection.cursor(row_factory=class_row(RunFailure)) as cursor:
        await cursor.execute(SQL["run_failures"], {"run": run, "limit": limit})
        return await cursor.fetchall()
