"""Ingestion runs: what they count, how they end, and that they go on from where they were."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes import FakeEmbedder
from vademecum.app import App
from vademecum.errors import RunCancelled, RunNotOpen, UnknownRun
from vademecum.ingest.report import IngestReport, Listener
from vademecum.settings import Settings
from vademecum.store.runs import Run
from vademecum.types import Query

Write = Callable[[dict[str, str | bytes]], Path]


def pages(count: int) -> dict[str, str | bytes]:
    return {f"{n:03}.md": f"# Page {n}\n\nWhat page {n} says of lamps." for n in range(count)}


def assert_counts(run: Run, **expected: int) -> None:
    assert expected == {
        "total": run.files_total,
        "processed": run.files_processed,
        "skipped": run.files_skipped,
        "failed": run.files_failed,
        "deleted": run.files_deleted,
        "created": run.chunks_created,
        "unmade": run.chunks_deleted,
    }


async def last(app: App) -> Run:
    return (await app.runs.listed(limit=1))[0]


async def test_what_runs_count(lexical_app: App, write: Write) -> None:
    app = lexical_app
    folder = write({**pages(3), "bad.md": b"\0\1\2"})
    await app.ingest.bulk_index(folder, collection="docs")
    first = await last(app)
    assert (first.mode, first.state, first.stored) == ("incremental", "completed", True)
    assert_counts(
        first,
        total=4,
        processed=3,
        skipped=0,
        failed=1,
        deleted=0,
        created=3,
        unmade=0,
    )
    assert first.duration_seconds is not None
    assert first.duration_seconds > 0
    details = await app.runs.details(first.id)
    assert [failure.path for failure in details.failures] == ["bad.md"]

    (folder / "bad.md").unlink()
    (folder / "000.md").unlink()
    (folder / "001.md").write_text("# Page 1\n\nIt says something else.")
    await app.ingest.bulk_index(folder, collection="docs")
    assert_counts(
        await last(app),
        total=2,
        processed=1,
        skipped=1,
        failed=0,
        deleted=1,
        created=1,
        unmade=2,
    )

    await app.ingest.bulk_index(folder, collection="docs", mode="full")
    full = await last(app)
    assert full.mode == "full"
    assert_counts(
        full,
        total=2,
        processed=2,
        skipped=0,
        failed=0,
        deleted=0,
        created=0,
        unmade=0,
    )

    await app.ingest.rebuild("docs", force=True)
    again = await last(app)
    assert (again.folder, again.files_processed) == (None, 2)


async def test_recreate_removes_what_is_from_elsewhere(
    lexical_app: App, write: Write, tmp_path: Path
) -> None:
    folder = write(pages(2))
    other = tmp_path / "other.md"
    other.write_text("# Elsewhere\n\nIt is not of the folder.")
    await lexical_app.ingest.bulk_index(folder, collection="docs")
    await lexical_app.ingest.store(collection="docs", file=other)
    await lexical_app.ingest.bulk_index(folder, collection="docs", mode="full")
    assert (await lexical_app.list_collections("docs"))[0].documents == 3

    await lexical_app.ingest.bulk_index(folder, collection="docs", mode="recreate")

    assert (await lexical_app.list_collections("docs"))[0].documents == 2
    assert_counts(
        await last(lexical_app),
        total=2,
        processed=2,
        skipped=0,
        failed=0,
        deleted=1,
        created=0,
        unmade=1,
    )


async def test_a_document_that_fails_later_is_a_failure_of_the_run(
    fake_app: App, embedder: FakeEmbedder, write: Write
) -> None:
    embedder.poison = "page 1 "
    await fake_app.ingest.bulk_index(write(pages(3)), collection="docs")
    run = await last(fake_app)
    assert (run.state, run.files_processed, run.files_failed) == ("completed", 2, 1)
    (failure,) = (await fake_app.runs.details(run.id)).failures
    assert (failure.path, "choked" in failure.error) == ("001.md", True)


async def test_a_document_that_violates_its_profile_counts_once_as_failed(
    lexical_app: App, write: Write
) -> None:
    lesson = "---\nhardware_tier: {}\n---\n\n# Nodes\n\nA node is a process.\n"
    folder = write({f"module-1/chapter-1/0{n}.md": lesson.format(n) for n in (1, 2, 9)})

    async def counted(report: IngestReport) -> tuple[int, int, int, int]:
        run = await last(lexical_app)
        assert run.files_processed == report.inserted + report.updated
        assert run.files_skipped == report.unchanged
        assert run.files_failed == len(report.failed)
        assert run.files_processed + run.files_skipped + run.files_failed == run.files_total
        return report.inserted, report.updated, report.unchanged, len(report.failed)

    async def index() -> tuple[int, int, int, int]:
        done = lexical_app.ingest.bulk_index(folder, collection="book", profile="course")
        return await counted(await done)

    assert await index() == (2, 0, 0, 1)
    assert await index() == (0, 0, 2, 1)
    assert await counted(await lexical_app.ingest.rebuild("book", force=True)) == (0, 2, 0, 1)
    (folder / "module-1/chapter-1/09.md").write_text(lesson.format(3))
    assert await index() == (0, 1, 2, 0)


async def test_stored_without_waiting_it_is_complete_once_the_queue_is_done(
    lexical_app: App, write: Write
) -> None:
    report = await lexical_app.ingest.bulk_index(write(pages(2)), collection="docs", wait=False)
    waiting = await lexical_app.runs.one(report.run)
    assert (waiting.state, waiting.files_pending, waiting.files_processed) == ("queued", 2, 0)

    await lexical_app.process_queue()

    done = await lexical_app.runs.one(report.run)
    assert (done.state, done.files_pending, done.files_processed) == ("completed", 0, 2)
    assert done.chunks_created == 2


async def cancelled_half_way(app: App, folder: Path) -> Run:
    """A run that was cancelled when something was searchable and something was not."""
    begun = asyncio.Event()
    working = asyncio.create_task(
        app.ingest.bulk_index(
            folder, collection="docs", listener=Listener(worked=lambda _: begun.set())
        )
    )
    await begun.wait()
    run = await last(app)
    await app.runs.cancel(run.id)
    with pytest.raises(RunCancelled, match=f"run {run.id} was cancelled"):
        await working
    return await app.runs.one(run.id)


async def test_cancelled_it_stops_and_resumed_it_goes_on(
    fake_app: App, embedder: FakeEmbedder, write: Write
) -> None:
    slowly = embedder.embed

    async def slow(texts: Any) -> Any:
        await asyncio.sleep(0.3)
        return await slowly(texts)

    embedder.embed = slow  # type: ignore[method-assign]
    folder = write(pages(200))
    run = await cancelled_half_way(fake_app, folder)
    assert run.state == "cancelled"
    assert 0 < run.files_processed < 200
    assert run.files_processed + run.files_pending <= 200 == run.files_total
    # Nobody takes up what is left.
    await fake_app.process_queue()
    held = await fake_app.runs.one(run.id)
    assert (held.state, held.files_processed) == ("cancelled", run.files_processed)
    embedded = len(embedder.embedded)

    embedder.embed = slowly  # type: ignore[method-assign]
    await fake_app.ingest.resume_run(run.id)

    done = await fake_app.runs.one(run.id)
    assert (done.state, done.error) == ("completed", None)
    assert_counts(
        done,
        total=200,
        processed=200,
        skipped=0,
        failed=0,
        deleted=0,
        created=200,
        unmade=0,
    )
    # What was embedded before is not embedded again, but for a batch that was in hand.
    assert len(embedder.embedded) - embedded <= 200 - run.files_processed
    with pytest.raises(RunNotOpen, match="completed, and cannot be resumed"):
        await fake_app.ingest.resume_run(run.id)
    with pytest.raises(RunNotOpen, match="completed, and cannot be cancelled"):
        await fake_app.runs.cancel(run.id)


async def test_another_run_takes_over_what_a_cancelled_one_left(
    lexical_app: App, write: Write
) -> None:
    folder = write(pages(5))
    waiting = await lexical_app.ingest.bulk_index(folder, collection="docs", wait=False)
    await lexical_app.runs.cancel(waiting.run)
    await lexical_app.ingest.bulk_index(folder, collection="docs")
    found = await lexical_app.search(Query(text="lamps", collection="docs"))
    assert len(found.results) == 5
    assert (await lexical_app.runs.one(waiting.run)).state == "cancelled"


async def test_a_queued_run_is_done_by_who_works_off_the_queue(
    lexical_app: App, write: Write
) -> None:
    folder = write(pages(3))
    run = await lexical_app.ingest.start_run("docs", folder=folder)
    assert run.state == "queued"
    await lexical_app.process_queue()
    done = await lexical_app.runs.one(run.id)
    assert (done.state, done.files_processed) == ("completed", 3)


async def test_one_that_cannot_be_done_says_why(lexical_app: App, write: Write) -> None:
    folder = write(pages(1))
    run = await lexical_app.ingest.start_run("docs", folder=folder)
    (folder / "000.md").unlink()
    folder.rmdir()
    await lexical_app.process_queue()
    failed = await lexical_app.runs.one(run.id)
    assert failed.state == "failed"
    assert "there is no folder" in str(failed.error)


async def test_followed_it_tells_of_every_change(lexical_app: App, write: Write) -> None:
    run = await lexical_app.ingest.start_run("docs", folder=write(pages(3)))

    async def follow() -> list[str]:
        return [seen.state async for seen in lexical_app.runs.follow(run.id)]

    following = asyncio.create_task(follow())
    await asyncio.sleep(0.1)
    await lexical_app.process_queue()
    states = await following
    assert (states[0], states[-1]) == ("queued", "completed")
    with pytest.raises(UnknownRun):
        await lexical_app.runs.one(run.id + 1)


async def test_interrupted_it_is_cancelled_and_its_jobs_wait(
    lexical_app: App, write: Write
) -> None:
    working = asyncio.create_task(
        lexical_app.ingest.bulk_index(write(pages(300)), collection="docs")
    )
    while not await lexical_app.runs.listed():
        await asyncio.sleep(0.01)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    run = await last(lexical_app)
    assert (run.state, run.error) == ("cancelled", "interrupted")
    await lexical_app.ingest.resume_run(run.id)
    done = await last(lexical_app)
    assert (done.state, done.files_processed, done.files_skipped) == ("completed", 300, 0)


def test_killed_it_is_not_left_running(
    vade: Callable[..., "subprocess.CompletedProcess[str]"],
    write: Write,
    settings: Settings,
    database_url: str,
) -> None:
    folder = write(pages(2000))
    command = subprocess.Popen(
        [Path(sys.executable).parent / "vade", "bulk-index", folder, "-c", "docs", "--json"],
        env=os.environ
        | {
            "VADE_HOME": str(settings.home),
            "VADE_DATABASE_URL": database_url,
            "VADE_EMBEDDER": "none",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    def runs() -> list[dict[str, Any]]:
        return json.loads(vade("runs", "list", "--json").stdout)["runs"]

    deadline = time.monotonic() + 60
    while not (found := runs()) or found[0]["state"] != "running":
        assert time.monotonic() < deadline
        assert command.poll() is None
    assert command.poll() is None
    command.send_signal(signal.SIGKILL)
    command.communicate()
    (run,) = runs()
    assert (run["state"], run["error"]) == ("failed", "the process that worked on it died")

    shown = vade("runs", "show", str(run["id"])).stdout
    assert f"`vade runs resume {run['id']}` goes on from there" in shown
    resumed = vade("runs", "resume", str(run["id"]), "--json")

    assert resumed.returncode == 0, resumed.stderr
    (run,) = runs()
    assert (run["state"], run["files_processed"], run["chunks_created"]) == (
        "completed",
        2000,
        2000,
    )


async def test_a_run_whose_lease_ran_out_has_failed(lexical_app: App, settings: Settings) -> None:
    """As one of another machine, whose process cannot be looked at."""
    async with App.open(replace(settings, embedder="none")):
        await lexical_app.database.retry(lambda: lexical_app._collection_for("docs", None))
        target = await lexical_app.collection("docs")
        held = await lexical_app.runs.begin(target.id, None, "incremental")
        async with lexical_app.database.connection() as connection:
            await connection.execute(
                "UPDATE ingestion_runs SET leased_until = now() - interval '1 s',"
                " taken_at = now() - interval '90 s', holder = 'elsewhere/1/1/1'"
            )
        run = await lexical_app.runs.one(held.run)
        assert run.state == "failed"
        assert run.duration_seconds is not None
        assert 25 < run.duration_seconds < 35  # until it was last heard of
