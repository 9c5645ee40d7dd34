"""A knowledge base whose indexing is killed again and again ends as one that nobody disturbed.

Its summaries and its search results are the same bytes, its ledger and task list but for the times.
"""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from killing import Arena, arena

QUESTIONS = (
    "where does the embedded server listen",
    "keys of an agent",
    "vade search",
    "what is said of PostgreSQL and pgvector",
    "the same words twice",
)
TWICE = "# Twice\n\nThe same words twice, in two places, with the same length.\n"


@pytest.fixture
def killed(home: Path, tmp_path: Path) -> Iterator[Arena]:
    seed = int(os.environ.get("KILL_SEED") or int.from_bytes(os.urandom(3)))
    print(f"KILL_SEED={seed}")
    one = arena(tmp_path, seed=seed, embedder="local:all-MiniLM-L6-v2", models=home / "models")
    one.files, one.profile = 25, "kb"
    one.kinds = ("command", "terminate", "server", "both", "worker")
    yield one
    one.close()


def files(folder: Path) -> dict[str, str]:
    """What is kept beside the documents, without the times."""
    kept = {}
    for path in (folder / "TASKS.md", *(p for p in (folder / ".kb").rglob("*") if p.is_file())):
        text = path.read_text(encoding="utf-8")
        if path.name == "status.jsonl":
            text = re.sub(r'("\w+_at": )"[^"]+"', r'\1"done"', text)
        elif path.name == "TASKS.md":
            text = re.sub(r"- Updated: .*", "", text)
        kept[path.relative_to(folder).as_posix()] = text
    return kept


def found(one: Arena, database: str | None = None) -> list[str]:
    """The results as they are printed, with what each retriever says."""
    texts = []
    for question in QUESTIONS:
        command = one.start(
            *("search", question, "-c", "docs", "-k", "20", "--explain", "--metadata"),
            database=database,
        )
        code, out, err = one.finish(command)
        assert code == 0, err
        results = json.loads(out)["results"]
        assert results
        texts.append(json.dumps(results, indent=1))
    return texts


def test_ends_as_if_undisturbed(killed: Arena) -> None:
    killed.make_files()
    for folder in ("a", "b", "c"):  # equal scores, so that only the order of the rest can differ
        (killed.folder / folder).mkdir()
        (killed.folder / folder / "twice.md").write_text(TWICE)
    for _ in range(6):
        killed.round()
    killed.index()
    ours, results = files(killed.folder), found(killed)

    asyncio.run(killed.make_database("fresh"))
    fresh = asyncio.run(killed.url_of("fresh"))
    killed.index(database=fresh)

    assert found(killed, fresh) == results
    assert files(killed.folder) == ours
    pages = killed.pages()
    summaries = [name for name in ours if name.endswith(".summary6.md")]
    assert len(summaries) == len(pages)
    ledger = ours[".kb/status/status.jsonl"]
    assert len(ledger.splitlines()) == len(pages)
    assert "null" not in ledger, "every step of every file is done"
