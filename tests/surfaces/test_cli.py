"""The command as a user runs it: a process of its own, on a real database."""

import json
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conftest import Vade
from model_server import KEY, Asked, ModelServer
from vademecum.surfaces.cli.main import COMMANDS

Write = Callable[[dict[str, str | bytes]], Path]

LIGHTHOUSE = {
    "lamp.md": "# The lamp\n\nThe lamp is lit at dusk by the keeper. It is put out at dawn.\n\n"
    "## Oil\n\nOil for the lamp is kept in the cellar, in barrels of forty litres.\n",
    "boats/landing.md": "---\ntitle: Landing a boat\n---\n\nBoats land on the lee side. "
    "Call `harbour_master --radio` on channel twelve before landing.\n",
}


def parsed(text: str) -> Any:
    """Stdout is one JSON document and nothing else."""
    return json.loads(text)


@pytest.fixture
def indexed(vade: Vade, write: Write) -> Vade:
    done = vade("bulk-index", write(dict(LIGHTHOUSE)), "-c", "light", "--json")
    assert done.returncode == 0, done.stderr
    return vade


def test_the_readme_names_every_command() -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    table = text[text.index("## Commands") : text.index("Every command takes")]
    named = set(re.findall(r"`(?:vade )?([a-z-]+)", table))
    assert set(COMMANDS) - named == set()


def test_bulk_index_reports_what_it_did(vade: Vade, write: Write) -> None:
    files: dict[str, str | bytes] = dict(LIGHTHOUSE)
    folder = write(files | {"broken.md": b"\x00\x01\x02\xff", "empty.md": b""})
    report = parsed(vade("bulk-index", folder, "-c", "light", "--json").stdout)
    assert report.pop("seconds") > 0
    failed = report.pop("failed")
    assert report.pop("run") > 0
    assert report == {
        "collection": "light",
        "inserted": 2,
        "updated": 0,
        "unchanged": 0,
        "deleted": 0,
        "chunks": 3,
        "embedded": 3,
        "reused": 0,
        "pending": 0,
    }
    assert {failure["path"] for failure in failed} == {"broken.md", "empty.md"}

    (folder / "lamp.md").write_text(LIGHTHOUSE["lamp.md"].replace("forty", "fifty"))
    (folder / "boats" / "landing.md").unlink()
    again = parsed(vade("bulk-index", folder, "-c", "light", "--json").stdout)
    changes = {key: again[key] for key in ("inserted", "updated", "unchanged", "deleted")}
    assert changes == {"inserted": 0, "updated": 1, "unchanged": 0, "deleted": 1}
    assert (again["embedded"], again["reused"]) == (1, 1)


def test_search_shape(indexed: Vade) -> None:
    done = indexed("search", "where do they store oil", "-c", "light", "-k", "2", "--json")
    result = parsed(done.stdout)
    assert set(result) == {"query", "mode", "took_ms", "results"}
    assert (result["query"], result["mode"]) == ("where do they store oil", "hybrid")
    hit = result["results"][0]
    assert set(hit) == {
        "score", "title", "collection", "path", "url", "heading_path", "section_id", "chunk_id",
        "text", "snippet", "reference", "facets",
    }  # fmt: skip
    assert hit["reference"] == "light/lamp.md#oil"
    assert hit["heading_path"] == ["The lamp", "Oil"]
    assert "cellar" in hit["snippet"]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_explained_shares_sum_up_to_the_score(indexed: Vade, mode: str) -> None:
    done = indexed("search", "landing a boat", "--mode", mode, "--explain", "--json")
    results = parsed(done.stdout)["results"]
    assert results[0]["path"] == "boats/landing.md"
    for hit in results:
        shares = [part["share"] for part in hit["contributions"]]
        assert sum(shares) == pytest.approx(hit["score"], abs=1e-6)


def test_search_options(indexed: Vade) -> None:
    def paths(*arguments: str) -> list[str]:
        done = indexed("search", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return [hit["path"] for hit in parsed(done.stdout)["results"]]

    assert set(paths("lamp", "--keyword", "radio")) == {"boats/landing.md"}
    assert paths("lamp", "--threshold", "0.99") == []
    assert paths("harbour_master", "--mode", "lexical") == ["boats/landing.md"]
    assert paths("--radio".replace("--", "the -- "), "--mode", "lexical")[0] == "boats/landing.md"
    assert len(paths("lamp", "-k", "1")) == 1
    assert paths("oil", "--boost", "title,topic")[0] == "lamp.md"
    assert paths("zzzqqq", "--mode", "lexical") == []


def test_the_only_collection_need_not_be_named(indexed: Vade, write: Write) -> None:
    assert indexed("search", "oil", "--json").returncode == 0
    indexed("note", "save", "Oil is bought in May")
    assert parsed(indexed("search", "oil", "--json").stdout)["results"][0]["collection"] == "light"
    indexed("bulk-index", write({"other.md": "# Other\n\nSomething else."}), "-c", "other")
    ambiguous = indexed("search", "oil", "--json")
    assert ambiguous.returncode == 2
    assert parsed(ambiguous.stdout)["error"] == "CollectionRequired"
    assert "light, other, project-notes" in ambiguous.stderr
    assert indexed("search", "oil", VADE_COLLECTION="light").returncode == 0


def test_a_key_for_a_collection_that_is_not_there_says_so(indexed: Vade) -> None:
    made = indexed("keys", "create", "--name", "reader", "-c", "light", "-c", "lihgt")
    assert made.stdout.startswith("vade_")
    assert "no collection lihgt yet" in made.stderr
    assert "no collection light yet" not in made.stderr


def test_a_folder_without_documents_makes_no_collection(indexed: Vade, tmp_path: Path) -> None:
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "main.c").write_text("int main;")
    refused = indexed("bulk-index", tmp_path / "wrong")
    assert refused.returncode == 2
    assert "holds no documents" in refused.stderr
    assert ".md" in refused.stderr
    assert [one["name"] for one in parsed(indexed("list", "--json").stdout)["collections"]] == [
        "light"
    ]


def test_a_slip_is_told_before_anything_is_asked(indexed: Vade) -> None:
    assert "Did you mean 'search'?" in indexed("serach", "oil").stderr
    gone = indexed("delete", "-c", "lihgt")
    assert (gone.returncode, "Delete" in gone.stdout) == (2, False)
    kept = indexed("delete", "-c", "light")
    assert "light with 2 documents" in kept.stdout
    missing = indexed("read", "light/lamp.md#nope")
    assert (missing.returncode, "lamp.md has no section nope" in missing.stderr) == (2, True)


def test_answer_shape(indexed: Vade) -> None:
    done = indexed("answer", "Where is the oil for the lamp kept?", "-c", "light", "--json")
    answer = parsed(done.stdout)
    assert set(answer) == {"question", "found", "answer", "sources", "took_ms"}
    assert answer["found"] is True
    assert "kept in the cellar" in answer["answer"]
    assert "[source: light/lamp.md#oil]" in answer["answer"]
    assert set(answer["sources"][0]) == {
        "reference", "collection", "path", "section_id", "title", "score",
    }  # fmt: skip


def test_store_list_status_delete(vade: Vade, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html><body><main><h1>Tides</h1><p>High at noon.</p></main></body></html>")
    stored = parsed(vade("store", "--file", page, "-c", "sea", "--json").stdout)
    assert stored == {
        "collection": "sea", "path": "page.html", "action": "inserted", "pending": 0,
    }  # fmt: skip
    again = vade("store", "--file", page, "-c", "sea", "--json")
    assert parsed(again.stdout)["action"] == "unchanged"
    [listed] = parsed(vade("list", "--json").stdout)["collections"]
    assert (listed["name"], listed["documents"], listed["chunks"]) == ("sea", 1, 1)
    status = parsed(vade("status", "-c", "sea", "--json").stdout)
    assert status["failed"] == []
    assert parsed(vade("delete", "-c", "sea", "--yes", "--json").stdout) == {"deleted": "sea"}
    assert parsed(vade("list", "--json").stdout) == {"collections": []}


def test_a_file_that_violates_its_profile_is_named_with_the_reason(
    vade: Vade, tmp_path: Path
) -> None:
    lesson = tmp_path / "lesson.md"
    lesson.write_text("---\ntier: 9\n---\n# Nodes\n\nWhat a node is, and what it does.\n")
    vade("bulk-index", tmp_path, "-c", "book", "--profile", "course")

    told = vade("store", "--file", lesson, "-c", "book")

    assert told.returncode == 1
    assert "lesson.md: violates profile course" in told.stderr
    assert "hardware_tier must be 1 to 4, not 9" in told.stderr
    assert "module is missing" in told.stderr
    report = parsed(vade("store", "--file", lesson, "-c", "book", "--json").stdout)
    assert "violates profile course" in report["error"]


def test_no_wait_says_what_is_not_yet_searchable(vade: Vade, write: Write) -> None:
    folder = write(dict(LIGHTHOUSE))
    report = parsed(vade("bulk-index", folder, "-c", "l", "--no-wait", "--json").stdout)
    assert (report["inserted"], report["pending"], report["chunks"]) == (2, 2, 0)
    assert parsed(vade("search", "lamp", "-c", "l", "--json").stdout)["results"] == []
    one = parsed(vade("process-queue", "--limit", "1", "--json").stdout)
    assert (one["processed"], one["pending"]) == (1, 1)
    rest = parsed(vade("process-queue", "--json").stdout)
    assert (rest["processed"], rest["pending"]) == (1, 0)
    assert parsed(vade("search", "lamp", "-c", "l", "--json").stdout)["results"]


def test_rebuild(indexed: Vade) -> None:
    nothing = parsed(indexed("rebuild", "-c", "light", "--json").stdout)
    assert nothing["chunks"] == 0
    everything = parsed(indexed("rebuild", "-c", "light", "--force", "--json").stdout)
    assert (everything["updated"], everything["embedded"], everything["reused"]) == (2, 3, 0)


def test_reindex(indexed: Vade) -> None:
    [every] = parsed(indexed("reindex", "--json").stdout)["collections"]
    assert (every["collection"], every["updated"], every["embedded"]) == ("light", 2, 3)
    words = indexed("reindex", "-c", "light", "--embedder", "none")
    assert "2 updated" in words.stdout
    assert parsed(indexed("search", "lamp", "-c", "light", "--json").stdout)["mode"] == "lexical"
    wrong = indexed("reindex", "-c", "light", "--embedder", "psychic:one")
    assert (wrong.returncode, "psychic" in wrong.stderr) == (2, True)


WRONG = {
    "no such collection": (["search", "x", "-c", "nope"], 2, "no collection named 'nope'"),
    "empty query": (["search", " ", "-c", "light"], 2, "the query is empty"),
    "k of nought": (["search", "x", "-c", "light", "-k", "0"], 2, "k must be from 1 to 100"),
    "k of a word": (["search", "x", "-k", "many"], 2, "not a valid integer"),
    "unknown mode": (["search", "x", "--mode", "psychic"], 2, "psychic"),
    "threshold out of range": (["search", "x", "-c", "light", "--threshold", "7"], 2, "threshold"),
    "unknown boost": (["search", "x", "-c", "light", "--boost", "moon"], 2, "moon"),
    "no such folder": (["bulk-index", "/nowhere/at/all"], 2, "no folder"),
    "a file for a folder": (["bulk-index", "/etc/hostname"], 2, "not a folder"),
    "bad collection name": (["bulk-index", "/usr/share/doc", "-c", "a b"], 2, "cannot name"),
    "unknown profile": (["bulk-index", "/tmp", "-c", "x", "--profile", "zzz"], 2, "profile"),
    "url and file": (["store", "--url", "http://x", "--file", "y"], 2, "either"),
    "private address": (["store", "--url", "http://127.0.0.1/", "-c", "light"], 2, "127.0.0.1"),
    "other scheme": (["store", "--url", "file:///etc/passwd", "-c", "light"], 2, "file"),
    "missing file": (["store", "--file", "/nowhere.md", "-c", "light"], 1, "/nowhere.md"),
    "no command": (["frobnicate"], 2, "frobnicate"),
    "gold missing": (["eval", "/nowhere.jsonl", "-c", "light"], 2, "/nowhere.jsonl"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_gets_a_clear_error(indexed: Vade, case: str) -> None:
    arguments, code, words = WRONG[case]
    done = indexed(*arguments)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert parsed(indexed("list", "--json").stdout)["collections"][0]["documents"] == 2


def test_settings_that_cannot_be(vade: Vade) -> None:
    unknown = vade("list", VADE_TYPO="1")
    assert (unknown.returncode, "VADE_TYPO is not a setting" in unknown.stderr) == (2, True)
    number = vade("list", VADE_THREADS="two")
    assert (number.returncode, "whole number" in number.stderr) == (2, True)


def test_an_unreachable_database_is_named_without_its_password(vade: Vade) -> None:
    url = "postgresql://keeper:s3cret@127.0.0.1:1/light?connect_timeout=1"
    calls = (
        lambda: vade("list", "--database", url),
        lambda: vade("--database", url, "list"),
        lambda: vade("list", "--json", VADE_DATABASE_URL="", PRJ_NEON_DATABASE_URL=url),
        lambda: vade("doctor", VADE_DATABASE_URL="", DATABASE__URL=url),
    )
    # Each of them waits some seconds for the server to come.
    with ThreadPoolExecutor(len(calls)) as threads:
        ended = list(threads.map(lambda call: call(), calls))
    for done in ended:
        assert done.returncode == 1
        assert "127.0.0.1" in done.stdout + done.stderr
        assert "s3cret" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    broken = vade("list", "--database", "postgresql://keeper:s3cret@[")
    assert (broken.returncode, "s3cret" in broken.stderr) == (1, False)


def test_doctor_proves_the_path_and_leaves_nothing(vade: Vade, tmp_path: Path) -> None:
    done = vade("doctor", "--json", CLAUDE_CONFIG_DIR=str(tmp_path))
    report = parsed(done.stdout)
    assert [check["name"] for check in report["checks"]] == [
        "database", "model", "language", "reranker", "write", "search", "answer", "cache", "server",
        "agent",
    ]  # fmt: skip
    assert report["ok"], report
    assert done.returncode == 0
    assert parsed(vade("list", "--json").stdout) == {"collections": []}


def test_doctor_asks_the_models_whether_they_answer(vade: Vade, tmp_path: Path) -> None:
    def reply(asked: Asked) -> str:
        if asked.schema is None:
            return "ready"
        grades = [{"passage": 1, "grade": 1}, {"passage": 2, "grade": 9}]
        return json.dumps({"grades": grades})

    served = ModelServer(reply=reply)
    model = {
        "VADE_MODEL": "openai:gpt-5",
        "VADE_RERANKER": "openai:gpt-5",
        "VADE_MODEL_URL": f"{served.url}/v1",
        "VADE_MODEL_KEY": KEY,
        "VADE_MODEL_FOR": "answer",
        "VADE_EMBEDDER": "none",
        "CLAUDE_CONFIG_DIR": str(tmp_path),
    }

    def said() -> dict[str, tuple[bool, str]]:
        checks = parsed(vade("doctor", "--json", **model).stdout)["checks"]
        return {one["name"]: (one["ok"], one["detail"]) for one in checks}

    found = said()
    assert found["language"][0], found["language"]
    assert found["language"][1].startswith("openai:gpt-5 answers in ")
    assert found["reranker"][1].startswith("openai:gpt-5 reads 2 passages in ")
    served.close()
    gone = said()
    # Answers stand all the same, in the sources' own words: only here it shows.
    assert (gone["language"][0], gone["reranker"][0], gone["answer"][0]) == (False, False, True)


@pytest.mark.parametrize(
    "command",
    ["bulk-index", "store", "search", "answer", "list", "status", "process-queue", "rebuild",
     "reindex", "delete", "eval", "doctor", "db"],
)  # fmt: skip
def test_every_command_has_help_with_an_example(vade: Vade, command: str) -> None:
    done = vade(command, "--help")
    assert done.returncode == 0
    assert f"vade {command}" in done.stdout.split("Example", 1)[1]
    assert command in vade("--help").stdout


def test_a_closed_pipe_ends_it_quietly(indexed: Vade) -> None:
    for arguments in (["search", "oil lamp", "-c", "light"], ["list", "--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = indexed(*arguments, stdout=writing)
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, "")


def test_a_document_that_takes_too_long_is_named_and_the_others_are_stored(
    vade: Vade, write: Write
) -> None:
    folder = write({"endless.rst": b"*a " * 30_000, "good.rst": b"Good\n====\n\nWords."})
    done = vade("bulk-index", folder, "-c", "slow", "--json", VADE_READ_SECONDS="1")
    report = parsed(done.stdout)
    assert report["inserted"] == 1
    assert report["failed"] == [{"path": "endless.rst", "error": "reading it took longer than 1 s"}]
