"""`vade eval` from end to end, on a real database."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from vademecum.app import App
from vademecum.errors import BadInput, ModelUnavailable, UnknownCollection
from vademecum.evaluate.gold import Expectation, Question
from vademecum.types import Query

Vade = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[[dict[str, str | bytes]], Path]

DOCUMENTS: dict[str, str | bytes] = {
    "keys.md": "# Keys\n\nWhat keys are for.\n\n"
    "## Rotation\n\nRotate the signing keys every month.\n\n"
    "## Storage\n\nStore the signing keys in a vault.\n",
    "net/open ports.md": "# Ports\n\nThe gateway listens on port 443.\n",
    "food.md": "# Soup\n\nBoil the carrots for twenty minutes.\n",
}
QUESTIONS = [
    {
        "query": "rotate the signing keys",
        "expect": [{"path_contains": "keys", "section_contains": "Rotation"}],
    },
    {"id": "p 2", "query": "port of the gateway", "expect": [{"path_contains": "ports.md"}]},
    {
        "query": "how long do carrots boil",
        "expect": [{"path_contains": "food.md", "rel": 2}, {"path_contains": "nowhere.md"}],
    },
]
METRICS = ("hit@k", "mrr", "ndcg@10", "recall@10")


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.jsonl"
    path.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return path


@pytest.fixture
def indexed(vade: Vade, write: Write) -> Vade:
    done = vade("bulk-index", write(DOCUMENTS), "-c", "docs")
    assert done.returncode == 0, done.stderr
    return vade


def test_all_modes_in_one_table_and_in_one_document(indexed: Vade, gold: Path) -> None:
    table = indexed("eval", gold, "-c", "docs", "-k", "3")
    document = json.loads(indexed("eval", gold, "-c", "docs", "-k", "3", "--json").stdout)

    assert table.returncode == 0
    lines = table.stdout.splitlines()
    assert lines[0] == "3 questions on docs, with 95 % intervals"
    assert lines[1].split() == ["mode", "hit@3", "MRR", "nDCG@10", "recall@10", "p50", "ms"]
    assert [line.split()[0] for line in lines[2:5]] == ["hybrid", "dense", "lexical"]
    assert [line.split("  ")[0] for line in lines[-2:]] == ["hybrid - dense", "hybrid - lexical"]
    assert (document["questions"], document["k"], document["run"]) == (3, 3, None)
    assert [row["mode"] for row in document["modes"]] == ["hybrid", "dense", "lexical"]
    for row in document["modes"]:
        assert row["p50_ms"] > 0
        for metric in METRICS:
            low, high = row["intervals"][metric]
            assert 0 <= low <= row[metric] <= high <= 1
    # The third question expects a document that does not exist.
    assert document["modes"][0]["recall@10"] == pytest.approx((1 + 1 + 1 / 2) / 3, abs=1e-6)
    assert document["modes"][0]["hit@k"] == 1


def test_the_same_question_gives_the_same_numbers(indexed: Vade, gold: Path) -> None:
    def numbers() -> object:
        document = json.loads(indexed("eval", gold, "-c", "docs", "--json").stdout)
        return [{**row, "p50_ms": None} for row in document["modes"]], document["differences"]

    assert numbers() == numbers()


def test_a_run_names_questions_and_documents(indexed: Vade, gold: Path, tmp_path: Path) -> None:
    run = tmp_path / "my run.trec"

    done = indexed("eval", gold, "-c", "docs", "--mode", "hybrid", "--run", run, "--json")

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["run"] == str(run)
    rows = [line.split(" ") for line in run.read_text().splitlines()]
    assert {len(row) for row in rows} == {6}
    assert list(dict.fromkeys(row[0] for row in rows)) == ["1", "p%202", "3"]
    assert {row[1] for row in rows} == {"Q0"}
    assert {row[5] for row in rows} == {"vademecum-hybrid"}
    for question, best in (("1", "keys.md"), ("p%202", "net/open%20ports.md"), ("3", "food.md")):
        ranking = [row for row in rows if row[0] == question]
        assert ranking[0][2] == best
        assert [int(row[3]) for row in ranking] == list(range(1, len(ranking) + 1))
        assert len({row[2] for row in ranking}) == len(ranking)
        assert all(float(one[4]) > float(next_[4]) for one, next_ in pairwise(ranking))


def test_a_run_measured_by_trec_eval_gives_our_numbers(
    indexed: Vade, tmp_path: Path, gold: Path
) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="the group `bench` is not installed")
    gold.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS[1:]))
    run = tmp_path / "run.trec"
    done = indexed("eval", gold, "-c", "docs", "--mode", "lexical", "--run", run, "--json")

    with run.open() as file:
        theirs = pytrec_eval.RelevanceEvaluator(
            {"p%202": {"net/open%20ports.md": 1}, "2": {"food.md": 2, "nowhere.md": 1}},
            {"recip_rank", "ndcg_cut.10", "recall.10"},
        ).evaluate(pytrec_eval.parse_run(file))

    (ours,) = json.loads(done.stdout)["modes"]
    for name, key in (
        ("recip_rank", "mrr"),
        ("ndcg_cut_10", "ndcg@10"),
        ("recall_10", "recall@10"),
    ):
        mean = sum(question[name] for question in theirs.values()) / 2
        assert ours[key] == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "docs", "--run", "x.trec"], "--run needs --mode"),
        (["-c", "docs", "--mode", "hybrid", "--run", "/none/x.trec"], "there is no folder /none"),
        (["-c", "none"], "there is no collection named 'none'"),
        (["-c", "docs", "-k", "0"], "k must be from 1 to 100"),
        (["-c", "docs", "-k", "101"], "k must be from 1 to 100"),
        (["-c", "docs", "--mode", "sparse"], "is not one of"),
    ],
)
def test_wrong_usage_is_said(indexed: Vade, gold: Path, arguments: list[str], message: str) -> None:
    done = indexed("eval", gold, *arguments)

    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_a_bad_line_writes_no_run(indexed: Vade, gold: Path, tmp_path: Path) -> None:
    run = tmp_path / "run.trec"
    run.write_text("old")
    with gold.open("a") as file:
        file.write('{"query": "q", "expected": []}\n')

    done = indexed("eval", gold, "-c", "docs", "--mode", "hybrid", "--run", run)

    assert done.returncode == 2
    assert f"{gold}:4: the line has an unknown key 'expected'" in done.stderr
    assert run.read_text() == "old"


async def test_questions_that_nothing_can_answer_are_named(app: App, write: Write) -> None:
    await app.ingest.bulk_index(write(DOCUMENTS), collection="docs")
    questions = [
        Question(id=path, query="keys", expect=(Expectation(path_contains=path),))
        for path in ("keys", "kyes")
    ]

    evaluation = await app.evaluation.evaluate(questions, collection="docs", mode="lexical")

    assert evaluation.notices == ["1 of 2 questions expect documents that are not there: kyes"]


async def test_without_embeddings_only_lexical_search_is_measured(app: App, write: Write) -> None:
    app.settings = replace(app.settings, embedder="none")
    await app.ingest.bulk_index(write(DOCUMENTS), collection="words")
    questions = [Question(id="1", query="keys", expect=(Expectation(path_contains="keys"),))]

    evaluation = await app.evaluation.evaluate(questions, collection="words")

    assert [result.mode for result in evaluation.modes] == ["lexical"]
    assert evaluation.notices == ["words has no vectors: only lexical search was measured"]
    assert not (
        await app.evaluation.evaluate(questions, collection="words", mode="lexical")
    ).notices
    for mode in ("dense", "hybrid"):
        with pytest.raises(ModelUnavailable, match="has no vectors"):
            await app.evaluation.evaluate(questions, collection="words", mode=mode)


async def test_the_first_hits_of_a_deep_search_are_those_of_a_shallow_one(
    app: App, write: Write
) -> None:
    await app.ingest.bulk_index(write(DOCUMENTS), collection="docs")
    for mode in ("hybrid", "dense", "lexical"):
        query = {"text": "where to store the keys", "collection": "docs", "mode": mode}
        shallow = await app.search(Query(**query, limit=2))  # type: ignore[arg-type]
        deep = await app.search(Query(**query, limit=100))  # type: ignore[arg-type]
        assert [hit.chunk_id for hit in deep.results[:2]] == [
            hit.chunk_id for hit in shallow.results
        ]


async def test_app_refuses_what_cannot_be_measured(app: App) -> None:
    questions = [Question(id="1", query="x", expect=(Expectation(path_contains="x"),))]
    with pytest.raises(UnknownCollection):
        await app.evaluation.evaluate(questions, collection="none")
    with pytest.raises(BadInput, match="k must be"):
        await app.evaluation.evaluate(questions, collection="none", k=0)
