"""Jobs are leased, come back from the dead, are put off when they fail, and are never lost."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from fakes import FakeEmbedder
from vademecum.store import collections, documents, jobs
from vademecum.store.db import Database
from vademecum.store.jobs import Job, OpenJobs
from vademecum.store.sql import SQL
from vademecum.types import CollectionId, Document, Source
from vademecum.worker import Worker

LEASE_AND_WAIT = """
import asyncio, sys
from vademecum.store import jobs
from vademecum.store.db import Database

async def main():
    async with Database(sys.argv[1], size=1) as database, database.connection() as connection:
        leased = await jobs.lease(connection, jobs.new_worker(), limit=int(sys.argv[2]))
        print(*(job.id for job in leased), flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@dataclass(frozen=True)
class Queue:
    database: Database
    collection: CollectionId

    async def fill(self, texts: Sequence[str]) -> None:
        for number, text in enumerate(texts):
            await self.store(f"{number}.md", text)

    async def store(self, path: str, text: str) -> None:
        document = Document(title="T", text=text, format="markdown", source_hash=text)
        async with self.database.transaction() as connection:
            await documents.upsert(
                connection, self.collection, Source(path=path, file_path=f"/d/{path}"), document
            )

    async def lease(self, worker: str = "me", limit: int = 10) -> list[Job]:
        async with self.database.connection() as connection:
            return await jobs.lease(connection, worker, limit=limit)

    async def complete(self, leased: list[Job], worker: str = "me") -> None:
        async with self.database.connection() as connection:
            await jobs.complete(connection, worker, leased)

    async def fail(self, job: Job, worker: str = "me", *, final: bool = False) -> None:
        async with self.database.connection() as connection:
            await jobs.fail(connection, worker, job, "no luck", final=final)

    async def give_back(self, worker: str = "me") -> None:
        async with self.database.connection() as connection:
            await jobs.give_back(connection, worker)

    async def return_lost(self, worker: str = "", held: Sequence[Job] = ()) -> int:
        async with self.database.connection() as connection:
            return await jobs.return_lost(connection, worker, held)

    async def open(self) -> tuple[int, int, int]:
        """Pending, processing, failed."""
        async with self.database.connection() as connection:
            left = await jobs.open_jobs(connection)
        return left.pending, left.processing, left.failed

    async def run(self, statement: str) -> list[tuple[object, ...]]:
        async with self.database.connection() as connection:
            cursor = await connection.execute(statement)  # type: ignore[arg-type]
            return list(await cursor.fetchall()) if cursor.description else []

    async def rows(self, columns: str) -> list[tuple[object, ...]]:
        return await self.run(f"SELECT {columns} FROM processing_queue ORDER BY id")

    async def expire(self) -> None:
        await self.run("UPDATE processing_queue SET leased_until = now() - interval '1 second'")

    async def make_due(self) -> None:
        await self.run("UPDATE processing_queue SET available_at = now()")


@pytest.fixture
async def queue(database: Database) -> Queue:
    async with database.connection() as connection:
        made = await collections.find_or_create(connection, "c", profile="docs", embedder="fake")
    return Queue(database, made.id)


def ids(leased: Sequence[Job]) -> list[int]:
    return [job.id for job in leased]


async def test_a_leased_job_is_no_one_elses_until_it_is_done(queue: Queue) -> None:
    await queue.fill(["one", "two", "three"])

    mine = await queue.lease("me", limit=2)
    yours = await queue.lease("you", limit=2)

    assert (ids(mine), ids(yours)) == ([1, 2], [3])
    assert await queue.open() == (0, 3, 0)
    await queue.complete(mine, "me")
    await queue.complete(mine, "you")
    assert await queue.rows("status") == [("done",), ("done",), ("processing",)]


async def test_urgent_jobs_come_first_then_the_oldest(queue: Queue) -> None:
    await queue.fill(["one", "two", "three"])
    await queue.run("UPDATE processing_queue SET priority = 99 WHERE id = 3")

    assert [ids(await queue.lease(limit=1)) for _ in range(4)] == [[3], [1], [2], []]


async def test_a_job_that_another_is_just_taking_is_skipped_not_waited_for(queue: Queue) -> None:
    await queue.fill(["one", "two"])
    async with queue.database.transaction() as other:
        assert ids(await jobs.lease(other, "other", limit=1)) == [1]

        assert ids(await asyncio.wait_for(queue.lease(), 5)) == [2]


async def test_many_workers_at_once_take_each_job_once(database_url: str) -> None:
    async with Database(database_url, size=8) as database:
        async with database.connection() as connection:
            made = await collections.find_or_create(
                connection, "c", profile="docs", embedder="none"
            )
        queue = Queue(database, made.id)
        await queue.fill([str(number) for number in range(40)])

        async def take_all(worker: str) -> list[int]:
            taken: list[int] = []
            while leased := await queue.lease(worker, limit=3):
                taken += ids(leased)
            return taken

        taken = await asyncio.gather(*(take_all(f"worker {n}") for n in range(8)))

        assert sorted(job for some in taken for job in some) == list(range(1, 41))


async def test_a_lease_that_ran_out_gives_the_job_to_others(queue: Queue) -> None:
    await queue.fill(["one"])
    late = await queue.lease("late")
    assert await queue.return_lost() == 0
    await queue.expire()

    assert await queue.return_lost() == 1
    assert [(job.id, job.attempts) for job in await queue.lease("next")] == [(1, 2)]

    await queue.complete(late, "late")
    assert await queue.rows("status, worker") == [("processing", "next")]


async def test_an_extended_lease_does_not_run_out(queue: Queue) -> None:
    await queue.fill(["one", "two"])
    leased = await queue.lease()
    await queue.expire()

    async with queue.database.connection() as connection:
        await jobs.extend(connection, "me", leased[:1])
        await jobs.extend(connection, "someone else", leased[1:])

    assert await queue.return_lost() == 1
    assert await queue.rows("status") == [("processing",), ("pending",)]


async def test_the_jobs_of_a_killed_process_come_back_at_once(queue: Queue) -> None:
    await queue.fill(["one", "two"])
    with subprocess.Popen(
        [sys.executable, "-c", LEASE_AND_WAIT, queue.database.conninfo, "2"],
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        line = await asyncio.to_thread(worker.stdout.readline)
        assert line == "1 2\n"
        assert await queue.return_lost() == 0, "its worker lives"

        worker.kill()
        # Not waited for: even as a zombie it is dead.
        for _ in range(500):
            if await queue.return_lost():
                break
            await asyncio.sleep(0.01)

    assert await queue.open() == (2, 0, 0)


async def test_a_reused_process_id_is_no_disguise(queue: Queue) -> None:
    machine, pid, start, number = jobs.new_worker().rsplit("/", 3)
    assert pid == str(os.getpid())
    await queue.fill(["one", "two", "three"])
    await queue.lease(f"{machine}/{pid}/{int(start) - 1}/{number}", limit=1)
    await queue.lease(f"{machine}/{pid}/{start}/{number}", limit=1)
    await queue.lease(f"elsewhere/{pid}/{int(start) - 1}/{number}", limit=1)

    assert await queue.return_lost() == 1

    assert await queue.rows("status") == [("pending",), ("processing",), ("processing",)]


async def test_jobs_whose_lease_was_never_answered_come_back(queue: Queue) -> None:
    await queue.fill(["one", "two"])
    known = await queue.lease("me", limit=1)
    await queue.lease("me", limit=1)  # the answer got lost with its connection

    assert await queue.return_lost("me", known) == 1

    assert await queue.rows("status") == [("processing",), ("pending",)]


async def test_a_failure_is_tried_later_each_time_later_and_in_the_end_no_more(
    queue: Queue,
) -> None:
    await queue.fill(["one"])
    waits = []
    for _ in range(jobs.MAX_FAILURES):
        [job] = await queue.lease()
        await queue.fail(job)
        assert await queue.lease() == []
        [(wait,)] = await queue.rows("extract(epoch FROM available_at - now())::float8")
        waits.append(wait)
        await queue.make_due()

    assert waits == pytest.approx([2, 4, 8, 16, 32], abs=1)
    assert await queue.rows("status, attempts, failures, error_message, worker") == [
        ("failed", 5, 5, "no luck", None)
    ]
    async with queue.database.connection() as connection:
        assert [(job.path, job.error) for job in await jobs.failed(connection)] == [
            ("0.md", "no luck")
        ]


async def test_what_can_never_work_fails_at_once(queue: Queue) -> None:
    await queue.fill(["one"])
    [job] = await queue.lease()

    await queue.fail(job, final=True)

    assert await queue.open() == (0, 0, 1)


async def test_an_error_with_a_zero_byte_can_be_stored(queue: Queue) -> None:
    await queue.fill(["one"])
    [job] = await queue.lease()

    async with queue.database.connection() as connection:
        await jobs.fail(connection, "me", job, "bad \x00 text")

    assert await queue.rows("error_message") == [("bad \\x00 text",)]


async def test_new_content_gives_a_failed_document_a_new_job(queue: Queue) -> None:
    await queue.fill(["one"])
    [job] = await queue.lease()
    await queue.fail(job, final=True)

    await queue.store("0.md", "one, mended")

    assert await queue.rows("status, attempts, failures, error_message") == [
        ("pending", 0, 0, None)
    ]


async def test_what_is_given_back_counts_as_no_attempt(queue: Queue) -> None:
    await queue.fill(["one", "two"])
    await queue.lease("me", limit=1)
    await queue.lease("you", limit=1)

    await queue.give_back("me")

    assert await queue.rows("status, attempts, worker") == [
        ("pending", 0, None),
        ("processing", 1, "you"),
    ]


@pytest.mark.parametrize("lost", [False, True])
async def test_of_two_jobs_of_one_document_given_back_the_newer_stays(
    queue: Queue, lost: bool
) -> None:
    await queue.store("a.md", "old")
    await queue.lease()
    await queue.store("a.md", "new")
    [newer] = await queue.lease()

    async with queue.database.connection() as connection:
        if lost:
            await jobs.return_lost(connection, "me")
        else:
            await jobs.give_back(connection, "me")

    assert [job.id for job in await queue.lease("other")] == [newer.id]


async def test_a_document_changed_while_it_is_processed_gets_a_second_job(queue: Queue) -> None:
    await queue.fill(["one"])
    first = await queue.lease()

    await queue.store("0.md", "changed")
    await queue.store("0.md", "changed again")

    assert await queue.open() == (1, 1, 0)
    await queue.complete(first)
    assert await queue.open() == (1, 0, 0)


@pytest.mark.parametrize("end", ["fail", "give back", "die"])
async def test_a_job_that_ends_while_a_newer_one_waits_gives_way(queue: Queue, end: str) -> None:
    await queue.fill(["one"])
    [job] = await queue.lease()
    await queue.store("0.md", "changed")

    match end:
        case "fail":
            await queue.fail(job)
        case "give back":
            await queue.give_back()
        case "die":
            await queue.expire()
            await queue.return_lost()

    assert await queue.rows("status, attempts, failures") == [("pending", 0, 0)]


async def test_jobs_that_kill_their_worker_end_up_alone_and_then_fail(queue: Queue) -> None:
    await queue.fill([str(number) for number in range(6)])
    sizes = []

    async def die() -> None:
        await queue.expire()
        await queue.return_lost()

    while leased := await queue.lease(limit=4):
        sizes.append(len(leased))
        if any(job.id == 4 for job in leased):  # it kills whoever takes it
            await die()
        else:
            await queue.complete(leased)

    assert sizes[:4] == [4, 2, 2, 1]
    assert await queue.rows("id, status") == [
        (number, "failed" if number == 4 else "done") for number in range(1, 7)
    ]
    assert await queue.run("SELECT error_message FROM processing_queue WHERE id = 4") == [
        (f"{jobs.MAX_DEATHS} workers died while processing it",)
    ]


async def test_open_jobs_tell_when_the_next_is_due(queue: Queue) -> None:
    assert await open_jobs(queue) == OpenJobs(pending=0, processing=0, failed=0, due_in=None)
    await queue.fill(["one"])
    [job] = await queue.lease()
    await queue.fail(job)

    left = await open_jobs(queue)

    assert left.due_in is not None
    assert 0 < left.due_in <= jobs.BACK_OFF_SECONDS


async def test_what_is_left_is_found_without_a_look_at_what_is_done(queue: Queue) -> None:
    await queue.fill(["one", "two", "three"])
    [job] = await queue.lease(limit=1)
    await queue.fail(job, final=True)
    await queue.run(
        "INSERT INTO processing_queue (document_id, collection_id, status, completed_at)"
        f" SELECT 1, {queue.collection}, 'done', now() FROM generate_series(1, 5000)"
    )
    await queue.run("ANALYZE processing_queue")
    assert await queue.open() == (2, 0, 1)
    async with queue.database.connection() as connection:
        for name in ("open_jobs", "failed_jobs", "waiting_bytes"):
            values = {"collection": queue.collection, "max_deaths": 5}
            query = f"EXPLAIN {SQL[name]}".encode()
            cursor = await connection.execute(query, values, prepare=False)
            plan = "\n".join(line for (line,) in await cursor.fetchall())
            assert "processing_queue_open" in plan, plan
            assert "Seq Scan on processing_queue" not in plan, plan


async def open_jobs(queue: Queue) -> OpenJobs:
    async with queue.database.connection() as connection:
        return await jobs.open_jobs(connection)


async def test_two_workers_draining_together_process_each_document_once(
    database_url: str,
) -> None:
    async with Database(database_url) as one, Database(database_url) as other:
        async with one.connection() as connection:
            made = await collections.find_or_create(
                connection, "c", profile="docs", embedder="fake"
            )
        queue = Queue(one, made.id)
        await queue.fill([f"the text of number {number}" for number in range(150)])
        embedder = FakeEmbedder()

        first, second = await asyncio.gather(
            Worker(one, lambda _: embedder).drain(), Worker(other, lambda _: embedder).drain()
        )

        assert first.done + second.done == 150
        assert len(embedder.embedded) == len(set(embedder.embedded)) == 150
        assert await queue.run(
            "SELECT (SELECT count(*) FROM document_chunks), (SELECT max(version) FROM"
            " document_chunks), (SELECT count(*) FROM processing_queue WHERE status = 'done')"
        ) == [(150, 1, 150)]


async def test_a_worker_that_lost_its_lease_does_not_end_the_job_of_newer_content(
    queue: Queue,
) -> None:
    """It was stopped for so long that its job was returned and, as it waited, merged with the
    job of a change: what it then finishes is out of date."""
    await queue.fill(["old words"])
    embedder = FakeEmbedder()
    slow = Worker(queue.database, lambda _: embedder)
    [group] = await slow._take(10)
    batch = await slow._prepared(group)
    assert batch is not None
    await queue.expire()
    await queue.return_lost()
    await queue.store("0.md", "new words")

    await slow._embed(batch)
    await slow._store(batch)
    assert await queue.open() == (1, 0, 0)
    await Worker(queue.database, lambda _: embedder).drain()

    assert await queue.run("SELECT content FROM document_chunks") == [("new words",)]
    assert await queue.open() == (0, 0, 0)
