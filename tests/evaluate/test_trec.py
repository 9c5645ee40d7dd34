"""Runs: what trec_eval reads is the ranking that was found."""

import itertools
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import numpy as np
import pytest

from vademecum.errors import BadInput
from vademecum.evaluate.trec import check_target, descending, field, run_lines, write_run
from vademecum.types import ChunkId, DocumentId, Hit

HIT = Hit(
    chunk_id=ChunkId(uuid4()),
    document_id=DocumentId(1),
    score=1.0,
    title="",
    collection="c",
    path="a.md",
    url=None,
    heading_path=(),
    section_id="top",
    ordinal=0,
    text="",
    snippet="",
    contributions=(),
)


def test_each_document_is_there_once_at_its_best_rank() -> None:
    hits = [
        replace(HIT, path="a.md", score=0.75),
        replace(HIT, path="a.md", score=0.5),
        replace(HIT, path="my notes/b.md", score=0.25),
    ]

    assert list(run_lines("q 1", hits, tag="vademecum-hybrid")) == [
        "q%201 Q0 a.md 1 0.75 vademecum-hybrid\n",
        "q%201 Q0 my%20notes/b.md 2 0.25 vademecum-hybrid\n",
    ]


def test_a_question_has_a_hundred_documents_at_most() -> None:
    hits = [replace(HIT, path=f"{number}.md", score=1 / (1 + number)) for number in range(130)]

    assert len(list(run_lines("1", hits, tag="t"))) == 100


@pytest.mark.parametrize(
    "scores",
    [
        [1.0, 1.0, 1.0, 0.5, 0.5],
        [0.1 + 1e-12, 0.1 + 5e-13, 0.1],
        [0.0, 0.0, 0.0],
        [0.0, -0.0, -1.0, -1.0],
        [3e4, 3e4 - 1e-9, 2.0],
        [1.0 - n * 1e-9 for n in range(100)],
    ],
)
def test_scores_descend_as_the_numbers_trec_eval_keeps(scores: list[float]) -> None:
    read = [np.float32(text) for text in descending(scores)]

    assert all(better > worse for better, worse in itertools.pairwise(read))
    assert read == pytest.approx(scores, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    "text", ["plain/path.md", "a b\tc.md", "100%.md", "%20.md", "ü\u00a0\u2028\n.md", "日本/x.md"]
)
def test_a_field_holds_no_white_space_and_can_be_read_back(text: str) -> None:
    assert len(field(text).split()) == 1
    assert unquote(field(text)) == text


def test_a_run_replaces_a_file_through_links(tmp_path: Path) -> None:
    real = tmp_path / "real.trec"
    real.write_text("old")
    link = tmp_path / "link.trec"
    link.symlink_to(real)

    write_run(check_target(link), ["new\n"])

    assert real.read_text() == "new\n"
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.trec", "real.trec"]


def test_a_run_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "run.trec"
    target.write_text("old")

    def lines() -> list[str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_run(target, (line for _ in range(1) for line in lines()))

    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["run.trec"]


def test_what_cannot_be_a_run_is_said_before_any_work(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text("{}")

    with pytest.raises(BadInput, match="there is no folder"):
        check_target(tmp_path / "none" / "run.trec")
    with pytest.raises(BadInput, match="is no file"):
        check_target(tmp_path)
    with pytest.raises(BadInput, match="is no file"):
        check_target(Path("/dev/null"))
    with pytest.raises(BadInput, match="would overwrite"):
        check_target(gold, inputs=[gold])
