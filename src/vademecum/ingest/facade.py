"""Ingestions: a folder, a folder of folders, one page or file, what is stored; and their runs.

folder --store_folder--> rows + jobs ┐
stored --queue_stored--> jobs -------┴--drain--> searchable --> IngestReport
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from vademecum.access import require, require_all
from vademecum.errors import BadInput, UnknownCollection, UnreadableSource, VadeError
from vademecum.ingest import knowledge_base, pipeline
from vademecum.ingest.knowledge_base import KnowledgeBases
from vademecum.ingest.overlap import NONE_COMING, Coming, overlapped
from vademecum.ingest.pipeline import Failure, FolderReport
from vademecum.ingest.read.files import scan
from vademecum.ingest.read.formats import FORMATS
from vademecum.ingest.report import QUIET, IngestReport, Listener, Progress, StoreReport
from vademecum.ingest.runs import Held, Runs
from vademecum.profiles.profile import load_profile
from vademecum.settings import Settings
from vademecum.store import jobs
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.jobs import FailedJob, OpenJobs
from vademecum.store.mirrors import Waiting
from vademecum.store.runs import Run, RunMode
from vademecum.telemetry.spans import span
from vademecum.types import CollectionId, DocumentId


class Workers(Protocol):
    """Who makes searchable what is stored."""

    def recipe(self, target: Collection, listener: Listener) -> str:
        """What chunks of the collection are made by now."""

    def is_priced(self, target: Collection) -> bool:
        """Whether that costs money."""

    async def drain(
        self, target: Collection, listener: Listener, *, coming: Coming = NONE_COMING
    ) -> Progress:
        """Work off the queue of a collection."""


class IngestCalls:
    """`app.ingest`."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        runs: Runs,
        knowledge_bases: KnowledgeBases,
        workers: Workers,
        untold: Callable[[CollectionId], Awaitable[Waiting]],
        collection: Callable[[str], Awaitable[Collection]],
        collection_for: Callable[[str, str | None, str | None], Awaitable[Collection]],
    ) -> None:
        """`untold` is what the mirror of a collection has yet to be told; `collection_for` a
        collection by its name, made of a profile and embedder where it is new."""
        self._database = database
        self._settings = settings
        self._runs = runs
        self._knowledge_bases = knowledge_bases
        self._workers = workers
        self._untold = untold
        self._collection = collection
        self._collection_for = collection_for

    # --- folders ----------------------------------------------------------------------------

    async def expect_documents(self, folder: Path, collection: str | None = None) -> None:
        """Refuse a folder without documents where it would make a collection: it is the wrong one.

        Raises BadInput, UnreadableSource.
        """
        require_all("admin")
        _check_folder(folder)
        try:
            await self._collection(collection or folder.resolve().name)
        except UnknownCollection:
            found = scan(folder, max_bytes=self._settings.max_file_bytes)
            if not await asyncio.to_thread(any, found):
                raise BadInput(
                    f"{folder} holds no documents",
                    hint=f"Files {', '.join(FORMATS)} are read, but what .gitignore leaves out.",
                ) from None

    async def bulk_index(
        self,
        folder: Path,
        *,
        collection: str | None = None,
        profile: str | None = None,
        embedder: str | None = None,
        force: bool = False,
        mode: RunMode | None = None,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> IngestReport:
        """Bring a collection up to date with a folder; its name is the folder's if none is given.

        `embedder` (`provider:model`) is for a new collection; one that exists keeps its own. Mode
        full reads, splits and embeds all of it again, as `force` does; recreate also removes
        what the collection holds from elsewhere. Raises BadInput, UnknownProfile,
        UnreadableSource, RunCancelled.
        """
        require_all("admin")  # it reads what is on this machine
        _check_folder(folder)
        name = collection or folder.resolve().name
        target = await self._to_write(name, profile, embedder)
        mode = mode or ("full" if force else "incremental")
        held = await self._runs.begin(target.id, pipeline.printable(folder.resolve()), mode)
        return await self._runs.hold(
            held,
            lambda: self._index_folder(
                held.run, target, folder, mode, wait=wait, listener=listener
            ),
            hand_over=not wait,
        )

    async def bulk_index_each(
        self,
        root: Path,
        *,
        profile: str | None = None,
        embedder: str | None = None,
        force: bool = False,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> list[IngestReport | Failure]:
        """Index every folder of a root as a knowledge base of its name; one's failure is its own.

        Raises BadInput where there is no such root or it holds no folder.
        """
        if not os.path.isdir(root):
            raise BadInput(f"there is no folder {root}")
        found = knowledge_base.folders(root)
        if not found:
            raise BadInput(
                f"{root} holds no folder", hint="Each folder in it is to be one knowledge base."
            )
        done: list[IngestReport | Failure] = []
        for folder in found:
            try:
                done.append(
                    await self.bulk_index(
                        folder,
                        collection=folder.name,
                        profile=profile or await self._present_profile(folder.name),
                        embedder=embedder,
                        force=force,
                        wait=wait,
                        listener=listener,
                    )
                )
            except (BadInput, UnreadableSource) as error:
                done.append(Failure(path=folder.name, error=str(error)))
        return done

    async def _present_profile(self, name: str) -> str:
        """That of an existing knowledge base, else the one for knowledge bases."""
        try:
            return (await self._collection(name)).profile
        except UnknownCollection:
            return knowledge_base.PROFILE

    async def _index_folder(
        self,
        run: int,
        target: Collection,
        folder: Path,
        mode: RunMode,
        *,
        wait: bool,
        listener: Listener,
    ) -> IngestReport:
        started = time.perf_counter()
        _check_folder(folder)
        if load_profile(target.profile, target.declaration).summaries:
            await self._knowledge_bases.place(target.id, folder.resolve())
        recipe = self._workers.recipe(target, listener)
        # What it will cost is known, and may be too much, only when all is read.
        priced = self._workers.is_priced(target)

        async def store(begun: Callable[[int], None]) -> FolderReport:
            report = await pipeline.store_folder(
                self._database,
                target,
                folder,
                run=run,
                recipe=recipe,
                mode=mode,
                max_bytes=self._settings.max_file_bytes,
                seconds=self._settings.read_seconds,
                progress=listener.read,
                begun=(lambda due: None) if priced else begun,
            )
            await self._knowledge_bases.show(target.id, listener.notice, last=True)
            return report

        async def work(coming: Coming) -> Progress:
            if not wait:
                return Progress()
            return await self._workers.drain(target, listener, coming=coming)

        report, progress = await overlapped(store, work)
        return await self._report(target, run, report, progress, started)

    # --- one document -----------------------------------------------------------------------

    async def store(
        self,
        *,
        collection: str,
        url: str | None = None,
        file: Path | None = None,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> StoreReport:
        """Store one page or one file. Raises BadInput, FetchRefused, UnreadableSource."""
        if (url is None) == (file is None):
            raise BadInput("name either a url or a file")
        require("write", collection)
        if file is not None:
            require_all("admin")
        target = await self._to_write(collection)
        limit, seconds = self._settings.max_file_bytes, self._settings.read_seconds
        with span("store", self._database.backend) as traced:
            if file is not None:
                change, path = await pipeline.store_file(
                    self._database, target, file, max_bytes=limit, seconds=seconds
                )
                traced.set(path=path, action=change)
            else:
                change, path = await pipeline.store_url(
                    self._database, target, str(url), max_bytes=limit, seconds=seconds
                )
                traced.set(url=path, action=change)
        if wait:
            await self._workers.drain(target, listener)
        left, broken = await self._left(target)
        return StoreReport(
            collection=target.name,
            path=path,
            action=change,
            pending=left.pending + left.processing,
            error=next((job.error for job in broken if job.path == path), None),
        )

    # --- what is stored ---------------------------------------------------------------------

    async def rebuild(
        self,
        collection: str,
        *,
        force: bool = False,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> IngestReport:
        """Make the chunks of stored documents again: those of another recipe, or with `force` all.

        Searches are served from the old ones until the new ones replace them. Without `wait` it is
        left to who works off the queue.
        """
        require("write", collection)
        target = await self._collection(collection)
        mode: RunMode = "full" if force else "incremental"
        held = await self._runs.begin(target.id, None, mode)
        return await self._runs.hold(
            held,
            lambda: self._remake(held.run, target, force=force, wait=wait, listener=listener),
            hand_over=not wait,
        )

    async def _remake(
        self, run: int, target: Collection, *, force: bool, wait: bool, listener: Listener
    ) -> IngestReport:
        started = time.perf_counter()
        recipe = self._workers.recipe(target, listener)

        async def queue() -> FolderReport:
            async with self._database.transaction() as connection:
                return await pipeline.queue_stored(
                    connection, target, run, recipe=recipe, force=force
                )

        report = await self._database.retry(queue)
        return await self._ingested(target, run, report, started, wait=wait, listener=listener)

    async def make_anew(
        self,
        target: Collection,
        start: Callable[[Connection], Awaitable[None]],
        *,
        wait: bool,
        listener: Listener,
    ) -> IngestReport:
        """Make all chunks and vectors of a collection anew; `start` is done in the transaction
        that queues them."""
        held = await self._runs.begin(target.id, None, "recreate")

        async def work() -> IngestReport:
            started = time.perf_counter()
            async with self._database.transaction() as connection:
                await start(connection)
                report = await pipeline.queue_stored(
                    connection, target, held.run, recipe="", force=True
                )
            return await self._ingested(
                target, held.run, report, started, wait=wait, listener=listener
            )

        return await self._runs.hold(held, work, hand_over=not wait)

    # --- runs of others ---------------------------------------------------------------------

    async def start_run(
        self,
        collection: str,
        *,
        folder: Path | None = None,
        profile: str | None = None,
        mode: RunMode = "incremental",
    ) -> Run:
        """Queue a run for `vade serve`, `vade worker` or `vade process-queue` to do.

        Without a folder it makes the chunks of stored documents again. Raises BadInput,
        UnknownCollection.
        """
        if folder is None:
            if mode == "recreate":
                raise BadInput("mode recreate needs a folder to read")
            require("write", collection)
            target = await self._collection(collection)
        else:
            require_all("admin")
            _check_folder(folder)
            target = await self._to_write(collection, profile)
        return await self._runs.queue(
            target.id, pipeline.printable(folder.resolve()) if folder else None, mode
        )

    async def resume_run(self, run: int, *, listener: Listener = QUIET) -> IngestReport:
        """Go on with a failed, cancelled or waiting run, here and at once.

        Raises UnknownRun, RunNotOpen, and what the run itself raises.
        """
        return await self._do(await self._runs.take(run), listener)

    async def do_queued_runs(self, listener: Listener = QUIET) -> None:
        """Do the runs that wait; their failures are their own, and in their rows."""
        while (held := await self._runs.take_next()) is not None:
            listener.notice(f"run {held.run}")
            try:
                await self._do(held, listener, put_back=True)
            except VadeError as error:
                listener.notice(f"run {held.run}: {error}")
            except Exception as error:  # noqa: BLE001 - a fault of ours must not stop other work
                listener.notice(f"run {held.run}: {type(error).__name__}: {error}")

    async def _do(self, held: Held, listener: Listener, *, put_back: bool = False) -> IngestReport:
        async def work() -> IngestReport:
            run = await self._runs.one(held.run)
            target = await self._database.retry(lambda: self._collection(run.collection))
            if run.stored:
                report, started = FolderReport(), time.perf_counter()
                return await self._ingested(
                    target, run.id, report, started, wait=True, listener=listener
                )
            if run.folder is None and run.mode == "recreate":
                raise BadInput("nothing of it was begun", hint="Run `vade reindex` again.")
            if run.folder is None:
                force = run.mode != "incremental"
                return await self._remake(run.id, target, force=force, wait=True, listener=listener)
            return await self._index_folder(
                run.id, target, Path(run.folder), run.mode, wait=True, listener=listener
            )

        return await self._runs.hold(held, work, put_back=put_back)

    # --- their end --------------------------------------------------------------------------

    async def _ingested(
        self,
        target: Collection,
        run: int,
        report: FolderReport,
        started: float,
        *,
        wait: bool,
        listener: Listener,
    ) -> IngestReport:
        await self._knowledge_bases.show(target.id, listener.notice, last=True)
        progress = await self._workers.drain(target, listener) if wait else Progress()
        return await self._report(target, run, report, progress, started)

    async def _report(
        self,
        target: Collection,
        run: int,
        report: FolderReport,
        progress: Progress,
        started: float,
    ) -> IngestReport:
        left, broken = await self._left(target)
        untold = await self._untold(target.id)
        counts = report.counts(but=await self._database.retry(lambda: self._given_up(run)))
        return IngestReport(
            collection=target.name,
            inserted=counts["inserted"],
            updated=counts["updated"],
            unchanged=counts["unchanged"],
            deleted=report.deleted,
            failed=report.failed + [Failure(path=job.path, error=job.error) for job in broken],
            chunks=progress.chunks,
            embedded=progress.embedded,
            reused=progress.reused,
            pending=left.pending + left.processing + untold.documents,
            seconds=time.perf_counter() - started,
            run=run,
        )

    async def _left(self, target: Collection) -> tuple[OpenJobs, list[FailedJob]]:
        async def look() -> tuple[OpenJobs, list[FailedJob]]:
            async with self._database.connection() as connection:
                return (
                    await jobs.open_jobs(connection, target.id),
                    await jobs.failed(connection, target.id),
                )

        return await self._database.retry(look)

    async def _given_up(self, run: int) -> set[DocumentId]:
        async with self._database.connection() as connection:
            return await jobs.given_up(connection, run)

    async def _to_write(
        self, name: str, profile: str | None = None, embedder: str | None = None
    ) -> Collection:
        return await self._database.retry(lambda: self._collection_for(name, profile, embedder))


def _check_folder(folder: Path) -> None:
    if not os.path.exists(folder):
        raise BadInput(f"there is no folder {folder}")
    if not os.path.isdir(folder):
        raise BadInput(f"{folder} is not a folder", hint="Use `vade store --file` for a file.")
