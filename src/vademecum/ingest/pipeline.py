"""Sources to stored documents: find what changed, read it, store it with the job that follows.

    folder --scan--> files --hash--> changed ones --read--> Document --upsert--> job

What is stored is searchable once a worker has done the job; see `worker`.
"""

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Collection as Ids
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from vademecum.errors import DatabaseRefused, DatabaseUnavailable, UnreadableSource
from vademecum.ingest.read import Found, Skipped, fetch, hash_file, read_bytes, read_file, scan
from vademecum.store import documents, jobs, lexical, runs
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.documents import StoredFile
from vademecum.store.runs import RunMode
from vademecum.types import Change, Document, DocumentId, Source

READ_TOGETHER = 64
"""Files looked at in one go, in other threads, and changed ones stored in one transaction: one for
each of 250 pages takes 0.8 s more of the processor."""

READ_SECONDS = 0.1
"""After so long, what was read is stored, however few files it is."""

SECONDS_BETWEEN_NOTES = 0.3
"""How often the run is told what was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A source that is not stored, or not made searchable, with the reason."""

    path: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Where the files of a folder go, and how."""

    database: Database
    collection: Collection
    run: int
    recipe: str
    force: bool
    max_bytes: int
    seconds: int

    def anew(self, old: StoredFile | None) -> bool:
        """Whether a file is stored anew though it is as it was: once in a run."""
        return self.force and (old is None or old.run_id != self.run)

    def due(self, old: StoredFile | None) -> bool:
        """Whether a file is to be read whatever its bytes are."""
        return old is None or self.anew(old) or old.needs_processing or old.recipe != self.recipe


_Changed = tuple[Found, StoredFile | None]
"""A file to read, and what is stored of it."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A file that was read, and what is stored of it."""

    source: Source
    document: Document
    old: StoredFile | None


@dataclass(slots=True, kw_only=True)
class FolderReport:
    """What storing a folder did; `failed` names every document that was left out."""

    changes: dict[DocumentId, Change] = field(default_factory=dict)
    """What became of each document that is stored."""
    skipped: int = 0
    """Of the unchanged, those whose chunks stay, and that this very run has not stored before it
    was resumed."""
    deleted: int = 0
    failed: list[Failure] = field(default_factory=list)

    @property
    def stored(self) -> int:
        return len(self.changes) - self.skipped

    def counts(self, *, but: Ids[DocumentId]) -> Counter[Change]:
        """How many documents were inserted, updated and unchanged, without those that could not
        be made searchable then."""
        return Counter(change for one, change in self.changes.items() if one not in but)


async def store_folder(
    database: Database,
    collection: Collection,
    folder: Path,
    *,
    run: int,
    recipe: str,
    mode: RunMode = "incremental",
    max_bytes: int,
    seconds: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    begun: Callable[[int], None] = lambda due: None,
) -> FolderReport:
    """Bring the stored documents of a folder up to date; each file is stored whole or not at all.

    What is counted is noted in the run as it comes. Mode full stores every file anew, but not
    twice in one run; recreate also removes what the collection holds from elsewhere. `begun` is
    told how many files are to be read, not counting those whose bytes may turn out to be others.

    A file that cannot be read keeps what is stored of it; one that is gone is removed. Raises
    UnreadableSource when the folder itself cannot be read.
    """
    root = folder.resolve()
    found = await asyncio.to_thread(lambda: list(scan(root, max_bytes=max_bytes)))
    stored = await database.retry(lambda: _stored(database, collection, root))
    report = FolderReport()
    target = _Target(
        database=database,
        collection=collection,
        run=run,
        recipe=recipe,
        force=mode != "incremental",
        max_bytes=max_bytes,
        seconds=seconds,
    )
    begun(sum(isinstance(e, Found) and target.due(stored.get(printable(e.path))) for e in found))
    kept = {_absolute(root, entry) for entry in found}
    await database.retry(lambda: _begin_reading(database, run, len(found)))
    untouched = await _store_found(target, found, stored, report, progress)
    # Nothing is known of what is below a folder that cannot be read.
    unread = tuple(f"{_absolute(root, e)}/" for e in found if isinstance(e, Skipped))
    gone = [
        file.id for path, file in stored.items() if path not in kept and not path.startswith(unread)
    ]
    if mode == "recreate":
        gone += await database.retry(lambda: _elsewhere(database, collection, root))
    await database.retry(lambda: _finish_folder(target, untouched, gone))
    report.deleted = len(gone)
    return report


async def _store_found(
    target: _Target,
    found: Sequence[Found | Skipped],
    stored: dict[str, StoredFile],
    report: FolderReport,
    progress: Callable[[int, int], None],
) -> list[DocumentId]:
    """Those of the stored documents that are as they were. What the report counts is noted in the
    run now and then and at the end, also where it is stopped before."""
    untouched: list[DocumentId] = []
    noted, noted_at = 0, time.monotonic()
    together = 1  # so that work begins soon

    async def note() -> None:
        await _note(target, report, len(found), noted)

    try:
        for start in range(0, len(found), READ_TOGETHER):
            batch = found[start : start + READ_TOGETHER]
            changed = await asyncio.to_thread(_changed, batch, stored, target, report, untouched)
            waiting = iter(changed)
            while read := await asyncio.to_thread(_read_some, target, waiting, together, report):
                await _store_read(target, read, report)
                together = min(2 * together, READ_TOGETHER)
            if time.monotonic() - noted_at > SECONDS_BETWEEN_NOTES:
                await target.database.retry(note)
                noted, noted_at = len(report.failed), time.monotonic()
            progress(start + len(batch), len(found))
    except asyncio.CancelledError:
        with contextlib.suppress(DatabaseUnavailable):
            await asyncio.shield(note())
        raise
    await target.database.retry(note)
    return untouched


async def queue_stored(
    connection: Connection, collection: Collection, run: int, *, recipe: str, force: bool
) -> FolderReport:
    """Queue the stored documents whose chunks another recipe made, or with `force` all of them;
    which these are. Call inside a transaction. Until they are made searches see the old ones."""
    every = await documents.to_reprocess(connection, collection.id, recipe=recipe, force=True)
    stale = every
    if force:
        await documents.forget_recipe(connection, stale)
    else:
        stale = await documents.to_reprocess(connection, collection.id, recipe=recipe, force=False)
    await jobs.enqueue(connection, stale, run=run)
    skipped = len(every) - len(stale)
    await runs.note_files(
        connection, run, total=len(every), stored=len(stale), skipped=skipped, failed=()
    )
    await runs.note_deletes(connection, run, [])
    return FolderReport(changes=dict.fromkeys(stale, "updated"))


async def store_file(
    database: Database, collection: Collection, path: Path, *, max_bytes: int, seconds: int
) -> tuple[Change, str]:
    """Store one file; what that changed, and the path it has. Raises UnreadableSource."""
    path = path.parent.resolve() / path.name
    document = await asyncio.to_thread(
        read_file, path, name=str(path), max_bytes=max_bytes, seconds=seconds
    )
    source = Source(path=path.name, file_path=printable(path))
    change, stored = await database.retry(lambda: _upsert(database, collection, source, document))
    async with database.connection() as connection:
        return change, await documents.path_of(connection, stored)


async def store_url(
    database: Database, collection: Collection, url: str, *, max_bytes: int, seconds: int
) -> tuple[Change, str]:
    """Fetch and store one page; what that changed, and the path it has.

    Raises FetchRefused or UnreadableSource.
    """
    page = await fetch(url, max_bytes=max_bytes)
    document = await asyncio.to_thread(
        read_bytes, page.data, name=page.url, content_type=page.content_type, seconds=seconds
    )
    source = Source(path=page.url, url=page.url)
    change, stored = await database.retry(lambda: _upsert(database, collection, source, document))
    async with database.connection() as connection:
        return change, await documents.path_of(connection, stored)


def _changed(
    batch: Sequence[Found | Skipped],
    stored: dict[str, StoredFile],
    target: _Target,
    report: FolderReport,
    untouched: list[DocumentId],
) -> list[_Changed]:
    """The files of a batch that have to be read, by the hash of their bytes."""
    changed: list[_Changed] = []
    for entry in batch:
        if isinstance(entry, Skipped):
            report.failed.append(Failure(path=entry.relative, error=entry.reason))
            continue
        old = stored.get(printable(entry.path))
        if old is None or target.due(old):
            changed.append((entry, old))
            continue
        try:
            digest = hash_file(entry.path)
        except UnreadableSource as error:
            report.failed.append(Failure(path=entry.relative, error=error.reason))
            continue
        if digest == old.source_hash:
            report.changes[old.id] = "unchanged"
            report.skipped += old.run_id != target.run
            untouched.append(old.id)
        else:
            changed.append((entry, old))
    return changed


def _read_some(
    target: _Target, waiting: Iterator[_Changed], most: int, report: FolderReport
) -> list[_Read]:
    """The next files that can be read, up to `most`; none are left where these are none."""
    read: list[_Read] = []
    started = time.monotonic()
    for file, old in waiting:
        try:
            document = read_file(
                file.path, name=file.relative, max_bytes=target.max_bytes, seconds=target.seconds
            )
        except UnreadableSource as error:
            report.failed.append(Failure(path=file.relative, error=error.reason))
        except Exception as error:  # noqa: BLE001 - a reader's fault must not stop a whole folder
            reason = f"the reader failed: {type(error).__name__}: {error}"
            report.failed.append(Failure(path=file.relative, error=reason))
        else:
            source = Source(
                path=file.relative, file_path=printable(file.path), modified_at=file.modified_at
            )
            read.append(_Read(source, document, old))
        if len(read) == most or (read and time.monotonic() - started > READ_SECONDS):
            break
    return read


async def _store_read(target: _Target, read: Sequence[_Read], report: FolderReport) -> None:
    for old, change, stored in await _changes(target, read, report):
        report.changes[stored] = change
        if change != "unchanged":
            continue
        if old is not None and (old.needs_processing or old.recipe != target.recipe):
            # Its content is as it was, but it is not searchable, or not in the present form.
            await target.database.retry(partial(_enqueue, target, stored))
        elif old is None or old.run_id != target.run:
            report.skipped += 1


async def _changes(
    target: _Target, read: Sequence[_Read], report: FolderReport
) -> list[tuple[StoredFile | None, Change, DocumentId]]:
    """Of each that is stored; what the database refuses is reported by name."""
    try:
        return await target.database.retry(partial(_store, target, read))
    except DatabaseRefused as error:  # too long a path, say
        if len(read) > 1:
            return [change for one in read for change in await _changes(target, [one], report)]
        report.failed.append(Failure(path=read[0].source.path, error=str(error)))
        return []


async def _store(
    target: _Target, read: Sequence[_Read]
) -> list[tuple[StoredFile | None, Change, DocumentId]]:
    """All or nothing: what was stored of each before, and what became of it."""
    changes: list[tuple[StoredFile | None, Change, DocumentId]] = []
    collection, run = target.collection.id, target.run
    async with target.database.transaction() as connection:
        new = [(one.source, one.document) for one in read if one.old is None]
        inserted = await documents.insert(connection, collection, new, run=run)
        for one in read:
            if (stored := inserted.get(one.source.path)) is not None:
                changes.append((one.old, "inserted", stored))
                continue
            change, stored = await documents.upsert(
                connection,
                collection,
                one.source,
                one.document,
                force=target.anew(one.old),
                run=run,
            )
            changes.append((one.old, change, stored))
    return changes


async def _upsert(
    database: Database,
    collection: Collection,
    source: Source,
    document: Document,
) -> tuple[Change, DocumentId]:
    async with database.transaction() as connection:
        return await documents.upsert(connection, collection.id, source, document)


async def _enqueue(target: _Target, document: DocumentId) -> None:
    async with target.database.transaction() as connection:
        # A worker may have made it meanwhile, or be about to.
        await jobs.lock_waiting(connection, document)
        if await documents.is_due(connection, document, recipe=target.recipe, run=target.run):
            await jobs.enqueue(connection, [document], run=target.run)


async def _stored(database: Database, collection: Collection, root: Path) -> dict[str, StoredFile]:
    async with database.connection() as connection:
        return await documents.files_below(connection, collection.id, printable(root))


async def _elsewhere(database: Database, collection: Collection, root: Path) -> list[DocumentId]:
    async with database.connection() as connection:
        return await documents.elsewhere(connection, collection.id, printable(root))


async def _begin_reading(database: Database, run: int, total: int) -> None:
    async with database.transaction() as connection:
        await runs.begin_reading(connection, run)
        await runs.note_files(connection, run, total=total, stored=0, skipped=0, failed=())


async def _note(target: _Target, report: FolderReport, total: int, noted: int) -> None:
    async with target.database.transaction() as connection:
        await runs.note_files(
            connection,
            target.run,
            total=total,
            stored=report.stored,
            skipped=report.skipped,
            failed=[(failure.path, failure.error) for failure in report.failed[noted:]],
        )


async def _finish_folder(
    target: _Target, untouched: Sequence[DocumentId], gone: Sequence[DocumentId]
) -> None:
    async with target.database.transaction() as connection:
        await documents.touch(connection, untouched)
        await documents.lock(connection, gone)
        # In this order workers lock them, too.
        await lexical.lock(connection, target.collection.id)
        await runs.note_deletes(connection, target.run, gone)
        await documents.delete(connection, gone)


def _absolute(root: Path, entry: Found | Skipped) -> str:
    return printable(entry.path if isinstance(entry, Found) else root / entry.relative)


def printable(path: Path) -> str:
    """A path as text; bytes that are no UTF-8 are shown as \\xNN."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
