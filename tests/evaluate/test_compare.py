"""`vade eval compare`: saved evaluations, runs and collections, question by question."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cross_encoder import write_cross_encoder
from vademecum.errors import BadInput
from vademecum.evaluate.compare import compare, ranks_asked, ranks_run
from vademecum.evaluate.gold import Expectation, Question
from vademecum.evaluate.metrics import Met
from vademecum.evaluate.trec import read_run

Vade = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[[dict[str, str | bytes]], Path]

DOCUMENTS: dict[str, str | bytes] = {
    "keys.md": "# Keys\n\n## Rotation\n\nRotate the signing keys.\n\n## Storage\n\nUse a vault.\n",
    "net/open ports.md": "# Ports\n\nThe gateway listens on port 443.\n",
    "food.md": "# Soup\n\nBoil the carrots for twenty minutes.\n",
}
QUESTIONS = [
    {"query": "rotate keys", "expect": [{"path_contains": "keys", "section_contains": "Rotation"}]},
    {"query": "port of the gateway", "expect": [{"path_contains": "ports.md"}]},
    {"query": "how long do carrots boil", "expect": [{"path_contains": "food.md", "rel": 2}]},
]


def question(number: int) -> Question:
    return Question(
        id=str(number), query=f"query {number}", expect=(Expectation(path_contains="x"),)
    )


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS))
    return path


@pytest.fixture
def indexed(vade: Vade, write: Write) -> Vade:
    done = vade("bulk-index", write(DOCUMENTS), "-c", "docs", VADE_EMBEDDER="none")
    assert done.returncode == 0, done.stderr
    return vade


def test_differences_are_paired() -> None:
    questions = [question(number) for number in range(40)]
    a = [[Met(rank=2 if number % 2 else 1, rel=1)] for number in range(40)]
    b = [[Met(rank=1, rel=1)] for number in range(40)]

    found = compare(questions, ranks_asked(questions, a), ranks_asked(questions, b), k=1)

    assert (found.a["hit"].mean, found.b["hit"].mean) == (0.5, 1)
    assert found.differences["hit"].mean == 0.5
    assert found.differences["hit"].low > 0.3
    assert [one.question.id for one in found.moved] == [str(n) for n in range(1, 40, 2)]
    assert {(one.rank_a, one.rank_b) for one in found.moved} == {(2, 1)}


def test_a_side_compared_with_itself_does_not_differ() -> None:
    questions = [question(number) for number in range(5)]
    met = [[Met(rank=number or None, rel=1)] for number in range(5)]
    side = ranks_asked(questions, met)

    found = compare(questions, side, side, k=8)

    assert found.moved == []
    assert {(d.low, d.mean, d.high) for d in found.differences.values()} == {(0, 0, 0)}


def test_without_a_question_in_common_there_is_nothing_to_compare() -> None:
    with pytest.raises(BadInput, match="share no question"):
        compare([question(1)], ranks_asked([], []), ranks_asked([], []), k=8)


def test_a_run_is_read_as_trec_eval_does(tmp_path: Path) -> None:
    run = tmp_path / "run.trec"
    run.write_text(
        "1 Q0 low 1 0.5 t\n1 Q0 x%20y.md 9 0.9 t\n\np%202 Q0 a 1 1 t\np%202 Q0 b 2 1 t\n"
    )

    read = read_run(run)

    assert read == {"1": ["x y.md", "low"], "p 2": ["b", "a"]}
    assert ranks_run(read)(question(1)) == [Met(rank=1, rel=1.0)]
    assert ranks_run(read)(question(7)) == [Met(rank=None, rel=1.0)]
    run.write_text("1 Q0 low\n")
    with pytest.raises(BadInput, match=r"run\.trec:1"):
        read_run(run)


def test_before_and_after_a_change(indexed: Vade, gold: Path, tmp_path: Path, write: Write) -> None:
    before = tmp_path / "before.json"
    saved = indexed("eval", gold, "-c", "docs", "--save", before)
    assert saved.returncode == 0, saved.stderr
    assert f"The evaluation is in {before}" in saved.stdout
    write({**DOCUMENTS, "food.md": "# Soup\n\nNothing here.\n"})
    assert indexed("bulk-index", tmp_path / "docs", "-c", "docs").returncode == 0

    table = indexed("eval", "compare", before, "docs:lexical")
    document = json.loads(indexed("eval", "compare", before, ":lexical", "--json").stdout)
    same = indexed("eval", "compare", before, before)

    assert "A and B are the same on every question" in same.stdout
    assert table.returncode == 0, table.stderr
    assert "B is better on 0, worse on 1 and equal on 2." in table.stdout
    assert "  1 -> -  how long do carrots boil" in table.stdout
    assert document["difference"]["mrr"] == pytest.approx(-1 / 3, abs=1e-6)
    assert document["difference"]["intervals"]["mrr"][0] <= -1 / 3
    assert [one["query"] for one in document["moved"]] == ["how long do carrots boil"]


def test_a_run_leaves_questions_about_sections_out(
    indexed: Vade, gold: Path, tmp_path: Path
) -> None:
    run = tmp_path / "docs.trec"
    indexed("eval", gold, "--mode", "lexical", "--run", run)

    done = indexed("eval", "compare", run, "docs:lexical", "--gold", gold, "--json")

    assert done.returncode == 0, done.stderr
    assert "1 of 3 questions were left out" in done.stderr
    document = json.loads(done.stdout)
    assert (document["questions"], document["left_out"], document["moved"]) == (2, 1, [])


@pytest.mark.parametrize(
    ("sides", "said"),
    [
        (("docs", "docs"), "--gold"),
        (("docs:fast", "docs"), "'fast'"),
        (("docs:lexical,boost=shape", "docs"), "shape"),
        (("nowhere:lexical", "docs"), "nowhere"),
        (("nowhere.json", "docs"), "no file nowhere.json"),
    ],
)
def test_what_cannot_be_compared_is_said(
    indexed: Vade, gold: Path, sides: tuple[str, str], said: str
) -> None:
    named = () if said == "--gold" else ("--gold", gold)

    done = indexed("eval", "compare", *sides, *named)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_hybrid_with_and_without_a_reranker(
    vade: Vade, write: Write, gold: Path, tmp_path: Path
) -> None:
    assert vade("bulk-index", write(DOCUMENTS), "-c", "docs").returncode == 0
    reranker = f"local:{write_cross_encoder(tmp_path / 'encoder')}"
    with_one = {"VADE_RERANKER": reranker, "VADE_RERANK_MS": "60000"}

    table = vade("eval", gold, "-c", "docs", "--json", **with_one)
    sides = (":hybrid", ":hybrid+rerank")
    compared = vade("eval", "compare", *sides, "--gold", gold, "--json", **with_one)
    without = vade("eval", gold, "--mode", "hybrid+rerank", VADE_RERANKER="none")

    assert table.returncode == 0, table.stderr
    document = json.loads(table.stdout)
    modes = ["hybrid", "dense", "lexical", "hybrid+rerank"]
    assert [row["mode"] for row in document["modes"]] == modes
    assert document["notices"] == []
    assert compared.returncode == 0, compared.stderr
    by_mode = {row["mode"]: row["mrr"] for row in document["modes"]}
    difference = by_mode["hybrid+rerank"] - by_mode["hybrid"]
    assert json.loads(compared.stdout)["difference"]["mrr"] == pytest.approx(difference, abs=1e-5)
    assert without.returncode == 1
    assert "VADE_RERANKER" in without.stderr
