"""Knowledge bases: ledger, task list and summaries follow the database."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vademecum.app import App
from vademecum.ingest.ledger_files import ledger_text, summary_names, summary_text, tasks_text
from vademecum.ingest.report import IngestReport
from vademecum.ingest.summary import MAX_BULLET, SCAFFOLD, summary6
from vademecum.profiles.profile import load_profile
from vademecum.types import Query

Write = Callable[[dict[str, str | bytes]], Path]

JOINS = """# Joins

A join combines rows of two tables into one result for a report.

The columns must have the same type. For example, join orders to customers by `customer_id`.

```sql
SELECT * FROM orders JOIN customers USING (customer_id);
```

See [indexes](indexes.md) to make joins fast.
"""
KEYS = {
    "kb_name", "namespace", "file_path", "file_name", "title", "heading_path", "section_id",
    "sql_topic", "language", "token_count", "sha256", "last_modified", "keywords", "summary6",
    "doc_title",
}  # fmt: skip


async def index(app: App, folder: Path, *, force: bool = False) -> IngestReport:
    return await app.ingest.bulk_index(folder, collection="kb", profile="kb", force=force)


def ledger(folder: Path) -> list[dict[str, object]]:
    text = (folder / ".kb/status/status.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_summary_has_the_six_bullets_of_the_scaffold() -> None:
    assert summary6("Joins", JOINS, ["join"]) == (
        "Purpose & Scope — A join combines rows of two tables into one result for a report.",
        "Key Entities/Objects — customer_id; join",
        "Core Commands/Patterns — SELECT * FROM orders JOIN customers USING (customer_id);",
        "Constraints & Edge Cases — The columns must have the same type.",
        "Examples & Gotchas — For example, join orders to customers by `customer_id`.",
        "Where to Apply / Related Docs — indexes (indexes.md)",
    )


@pytest.mark.parametrize(
    "text", ["", "x", "word " * 5000, "`a`" * 2000, "a\n\n" * 300, "漢字。" * 900]
)
def test_every_bullet_is_short_whatever_the_text(text: str) -> None:
    bullets = summary6("T" * 300, text, ["w" * 40] * 10)
    assert [bullet.partition(" — ")[0] for bullet in bullets] == list(SCAFFOLD)
    assert all(len(bullet) <= MAX_BULLET and "\n" not in bullet for bullet in bullets)


def test_equal_stems_have_summaries_of_their_own() -> None:
    assert summary_names(["a.md", "sql/joins.md", "joins.md", "joins.html", "x/Joins.md"]) == {
        "a.md": "a.summary6.md",
        "sql/joins.md": "sql/joins.summary6.md",
        "joins.md": "joins.md.summary6.md",
        "joins.html": "joins.html.summary6.md",
        "x/Joins.md": "x/Joins.summary6.md",
    }


async def test_the_files_are_those_of_the_database(fake_app: App, write: Write) -> None:
    folder = write(
        {"joins.md": JOINS, "sql/joins.md": "# Other\n\nDROP TABLE.", "t.md": "# T\n\nx"}
    )
    report = await index(fake_app, folder)
    rows = await fake_app.knowledge_bases.rows("kb")
    assert (report.inserted, report.pending) == (3, 0)
    assert (folder / ".kb/status/status.jsonl").read_text() == ledger_text(rows)
    assert (folder / "TASKS.md").read_text() == tasks_text("kb", rows)
    assert (folder / ".kb/summaries/sql/joins.summary6.md").read_text() == summary_text(rows[1])
    assert [(r["file_path"], r["sql_topic"]) for r in ledger(folder)] == [
        ("joins.md", "JOIN"), ("sql/joins.md", "DDL"), ("t.md", "MISC"),
    ]  # fmt: skip
    assert all(row["upserted_at"] and row["vector_count"] for row in ledger(folder))


async def test_every_chunk_has_every_key(fake_app: App, write: Write) -> None:
    await index(fake_app, write({"sql/joins.md": JOINS}))
    found = await fake_app.search(Query(text="join rows", collection="kb"))
    ids = [hit.chunk_id for hit in found.results]
    known = await fake_app.knowledge_bases.chunk_metadata("kb", ids)
    assert ids
    assert set(known) == set(ids)
    for metadata in known.values():
        assert set(metadata) == KEYS
        assert len(metadata["summary6"]) == 6  # type: ignore[arg-type]
        assert (metadata["file_path"], metadata["file_name"]) == ("kb/sql/joins.md", "joins")
        assert (metadata["language"], metadata["sql_topic"]) == ("en", "JOIN")


async def test_the_summary_of_a_file_is_searchable_in_all_its_chunks(
    lexical_app: App, write: Write
) -> None:
    text = "# Top\n\nZanzibar is what this page is all about.\n\n## Far\n\nUnrelated words here."
    await index(lexical_app, write({"a.md": text}))
    found = await lexical_app.search(Query(text="zanzibar", collection="kb"))
    assert {hit.section_id for hit in found.results} == {"top", "far"}


async def test_our_own_files_are_not_ingested_and_an_idle_run_writes_nothing(
    fake_app: App, write: Write
) -> None:
    folder = write({"joins.md": JOINS})
    await index(fake_app, folder)
    files = [*folder.rglob("*.*")]
    before = {path: path.read_bytes() for path in files if path.is_file()}
    again = await index(fake_app, folder)
    assert (again.inserted, again.unchanged) == (0, 1)
    assert {path: path.read_bytes() for path in before} == before


async def test_a_changed_and_a_deleted_file_and_force(fake_app: App, write: Write) -> None:
    folder = write({"a.md": "# A\n\none", "b.md": "# B\n\ntwo"})
    await index(fake_app, folder)
    first = ledger(folder)
    (folder / "a.md").write_text("# A\n\nthree DROP")
    (folder / "b.md").unlink()
    await index(fake_app, folder)
    (row,) = ledger(folder)
    assert row["sha256"] != first[0]["sha256"]
    assert row["sql_topic"] == "DDL"
    assert not (folder / ".kb/summaries/b.summary6.md").exists()
    embedded = len(fake_app.embedders.opened["fake:words"].embedded)  # type: ignore[union-attr]
    await index(fake_app, folder, force=True)
    assert len(fake_app.embedders.opened["fake:words"].embedded) > embedded  # type: ignore[union-attr]


async def test_a_document_to_be_done_again_is_open_in_the_ledger(
    fake_app: App, write: Write
) -> None:
    folder = write({"a.md": "# A\n\none"})
    await index(fake_app, folder)
    (folder / "a.md").write_text("# A\n\ntwo")
    await fake_app.ingest.bulk_index(folder, collection="kb", wait=False)
    (row,) = ledger(folder)
    assert (row["chunked_at"], row["upserted_at"]) == (None, None)
    assert "| a.md | ✓ |  |  |  |  |" in (folder / "TASKS.md").read_text()
    await fake_app.process_queue()
    assert ledger(folder)[0]["upserted_at"]


async def test_a_task_list_of_the_users_own_is_kept(fake_app: App, write: Write) -> None:
    folder = write({"a.md": "# A\n\none", "TASKS.md": "# My tasks\n"})
    await index(fake_app, folder)
    assert (folder / "TASKS.md").read_text() == "# My tasks\n"
    assert [row["file_path"] for row in ledger(folder)] == ["TASKS.md", "a.md"]


async def test_a_topic_table_of_ones_own(fake_app: App, write: Write, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        '[chunks]\nmax_tokens = 100\noverlap_tokens = 10\nheader = "[{topic}]"\n'
        "[knowledge_base]\nsummaries = true\n[[topics]]\nname = 'FRUIT'\npattern = 'apple|pear'\n"
    )
    folder = write({"a.md": "# A\n\nan apple"})
    await fake_app.ingest.bulk_index(folder, collection="kb", profile=str(own))
    assert ledger(folder)[0]["sql_topic"] == "FRUIT"
    assert "[FRUIT]" in fake_app.embedders.opened["fake:words"].embedded[0]  # type: ignore[union-attr]


def test_the_first_pattern_names_the_topic() -> None:
    kb = load_profile("kb")
    assert kb.topic("CREATE TEMPORARY TABLE t AS SELECT 1") == "TEMP_TABLES"
    assert kb.topic("SELECT a FROM b JOIN c") == "JOIN"
    assert kb.topic("nothing of it") == "MISC"


async def test_each_folder_is_a_knowledge_base(fake_app: App, write: Write) -> None:
    root = write({"a/x.md": "# X\n\none", "b/y.md": "# Y\n\ntwo", "bad name/z.md": "# Z\n\nz"})
    done = await fake_app.ingest.bulk_index_each(root)
    assert [getattr(one, "collection", None) for one in done] == ["a", "b", None]
    assert (root / "a/TASKS.md").exists()
    assert (root / "b/.kb/summaries/y.summary6.md").exists()
    assert {c.name: c.profile for c in await fake_app.list_collections()} == {"a": "kb", "b": "kb"}


@pytest.mark.parametrize("delay", [0.9, 1.4, 2.2])
def test_killed_and_resumed_it_is_as_if_undisturbed(
    vade: Callable[..., "subprocess.CompletedProcess[str]"],
    home: Path,
    database_url: str,
    tmp_path: Path,
    delay: float,
) -> None:
    """Times aside, ledger, task list and summaries are equal byte by byte; the same hits are found.

    Scores may differ by a little: the average length that they are made with is only renewed when
    it has moved enough.
    """
    outcomes = []
    for name, killed in (("calm", False), ("rough", True)):
        folder = tmp_path / name / "kb"
        for number in range(60):
            path = folder / f"f{number % 4}" / f"page{number}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# Page {number}\n\nJOIN number {number} must hold.\n\n" + JOINS * 5)
        if killed:
            process = subprocess.Popen(
                ["vade", "--database", database_url, "bulk-index", folder, "--profile", "kb"],
                executable=Path(sys.executable).parent / "vade",
                env={"VADE_HOME": str(home), "PATH": "/usr/bin:/bin"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
        done = vade("bulk-index", folder, "-c", "kb", "--profile", "kb")
        assert done.returncode == 0, done.stderr
        searched = vade("search", "join number 7", "-c", "kb", "--json", "-k", "3").stdout
        files = {
            path.relative_to(folder).as_posix(): re.sub(
                r"20\d\d-\d\d-\d\dT[\d:+]+", "TIME", path.read_text()
            )
            for path in [folder / "TASKS.md", *folder.glob(".kb/**/*.*")]
            if path.is_file() and path.name != ".lock"
        }
        outcomes.append((files, json.loads(searched)["results"]))
        vade("delete", "-c", "kb", "--yes")
    assert len(outcomes[0][0]) == 62
    (calm_files, calm_hits), (files, hits) = outcomes
    assert files == calm_files
    assert [hit["path"] for hit in hits] == [hit["path"] for hit in calm_hits]
