"""Several workers on one queue: how many jobs a second, and whether any is done twice.

    uv run benchmarks/workers.py [--documents 600] [--workers 1 2 4] [--embedder none]
        [--database URL]

The queue of one collection is filled with jobs for made-up documents, and so many processes
`vade process-queue` work it off. A trigger on the queue counts how often each job is taken and how
often it ends: every job must be taken once and end once, and every chunk be there once. To show
that this check can fail, one job is then made pending again behind the queue's back and worked off
a second time, which the check has to find. `--embedder none` leaves the model out, which alone
would use all cores.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scratch import scratch_app
from vademecum.app import App

BIN = Path(sys.executable).parent
NOTE = """
CREATE TABLE counted (job integer, what text);
CREATE FUNCTION count_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR NEW.status = 'done' AND OLD.status IS DISTINCT FROM 'done' THEN
        INSERT INTO counted VALUES (OLD.id, 'ended');
    ELSIF NEW.status = 'processing' AND OLD.status = 'pending' THEN
        INSERT INTO counted VALUES (NEW.id, 'taken');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_jobs AFTER UPDATE ON processing_queue
    FOR EACH ROW EXECUTE FUNCTION count_job();
"""
TWICE = "SELECT job, what, count(*) FROM counted GROUP BY job, what HAVING count(*) <> 1"
ONCE = "SELECT count(DISTINCT job) FILTER (WHERE what = 'ended') FROM counted"
AGAIN = """
UPDATE processing_queue SET status = 'pending' WHERE id = (SELECT min(id) FROM processing_queue)
"""
DOUBLE = """
SELECT document_id, chunk_index FROM document_chunks GROUP BY 1, 2 HAVING count(*) <> 1
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=600, metavar="N")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], metavar="N")
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--database", metavar="URL")
    arguments = parser.parse_args()
    print(f"{arguments.documents} documents, embedder {arguments.embedder}, {os.cpu_count()} CPUs")
    base = None
    for workers in arguments.workers:
        seconds = asyncio.run(measure(workers, arguments))
        rate = arguments.documents / seconds
        base = base or rate
        print(
            f"{workers} worker{'s' if workers > 1 else ' '} {rate:8.1f} jobs/s"
            f" {rate / base:6.2f} of one; every job once",
            flush=True,
        )


async def measure(workers: int, arguments: argparse.Namespace) -> float:
    """Seconds from the first start to the last end. Raises AssertionError for a job done twice."""
    async with scratch_app(arguments.database, embedder=arguments.embedder) as app:
        with tempfile.TemporaryDirectory() as place:
            write(Path(place), arguments.documents)
            await app.ingest.bulk_index(Path(place), collection="work", wait=False)
        await rows(app, NOTE)
        seconds = await work(app, workers)
        assert (twice := await rows(app, TWICE)) == [], f"not once: {twice}"
        [(ended,)] = await rows(app, ONCE)
        assert ended == arguments.documents, f"{ended} jobs ended"
        assert (double := await rows(app, DOUBLE)) == [], f"chunks twice: {double}"
        await rows(app, AGAIN)
        await work(app, 1)
        found = {what for _, what, _ in await rows(app, TWICE)}
        assert found == {"taken", "ended"}, "a job that was done twice was not found"
    return seconds


async def work(app: App, workers: int) -> float:
    """Seconds in which so many processes work the queue off."""
    started = time.perf_counter()
    processes = [
        await asyncio.create_subprocess_exec(
            *(BIN / "vade", "process-queue"),
            env=os.environ
            | {
                "VADE_HOME": str(app.settings.home),
                "VADE_DATABASE_URL": app.database.conninfo,
                "VADE_THREADS": "1",
            },
            stdout=subprocess.DEVNULL,
        )
        for _ in range(workers)
    ]
    codes = [await process.wait() for process in processes]
    assert codes == [0] * workers, codes
    return time.perf_counter() - started


async def rows(app: App, query: str) -> list[Any]:
    async with app.database.connection() as connection:
        cursor = await connection.execute(query)  # type: ignore[arg-type]
        return list(await cursor.fetchall()) if cursor.description else []


def write(folder: Path, documents: int) -> None:
    for number in range(documents):
        parts = (
            f"## Part {part} of {number}\n\n"
            + " ".join(f"Lamp {number * part + word} is lit and watched." for word in range(60))
            for part in range(8)
        )
        (folder / f"{number}.md").write_text(f"# Page {number}\n\n" + "\n\n".join(parts))


if __name__ == "__main__":
    main()
