"""Metrics: by hand, against trec_eval, and what resampling gives."""

import math
import random

import pytest

from vademecum.evaluate.gold import Expectation
from vademecum.evaluate.metrics import (
    Met,
    bootstrap,
    first_met,
    hit,
    measure,
    ndcg,
    recall,
    reciprocal_rank,
)


def met(*ranks: int | None) -> list[Met]:
    return [Met(rank=rank, rel=1.0) for rank in ranks]


def test_nothing_found_is_nothing_gained() -> None:
    nothing = measure(met(None, None), k=8)

    assert (nothing.hit, nothing.reciprocal_rank, nothing.ndcg, nothing.recall) == (0, 0, 0, 0)


def test_an_ideal_ranking_has_all_of_it() -> None:
    ideal = measure([Met(rank=2, rel=1), Met(rank=1, rel=3)], k=8)

    assert (ideal.hit, ideal.reciprocal_rank, ideal.ndcg, ideal.recall) == (1, 1, 1, 1)


@pytest.mark.parametrize(("rank", "expected"), [(1, 1), (8, 1), (9, 0), (None, 0)])
def test_hit_is_within_k(rank: int | None, expected: float) -> None:
    assert hit(met(rank), k=8) == expected


def test_reciprocal_rank_is_of_the_first_result_that_meets_anything_however_deep() -> None:
    assert reciprocal_rank(met(None, 40, 25)) == 1 / 25


def test_recall_counts_expectations_within_ten_whatever_they_are_worth() -> None:
    assert recall([Met(rank=10, rel=3), Met(rank=11, rel=1), Met(rank=None, rel=1)]) == 1 / 3


def test_ndcg_by_hand() -> None:
    ranking = [Met(rank=2, rel=3), Met(rank=4, rel=1), Met(rank=None, rel=2)]

    gained = 3 / math.log2(3) + 1 / math.log2(5)
    ideal = 3 / 1 + 2 / math.log2(3) + 1 / 2
    assert ndcg(ranking) == pytest.approx(gained / ideal)


def test_the_ideal_of_ndcg_ends_at_the_cutoff_too() -> None:
    assert ndcg(met(*range(1, 16))) == pytest.approx(1)


def test_one_result_for_several_expectations_is_no_better_than_ideal() -> None:
    assert ndcg(met(1, 1)) == 1


def test_an_expectation_counts_once_at_the_first_result_that_meets_it() -> None:
    expectations = [Expectation(path_contains="a"), Expectation(path_contains="b", rel=2.0)]

    found = first_met(expectations, ["x", "a1", "a2", "b", "b"], lambda e, r: e.path_contains in r)  # type: ignore[operator]

    assert found == [Met(rank=2, rel=1.0), Met(rank=4, rel=2.0)]


def test_metrics_agree_with_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="the group `bench` is not installed")
    chance = random.Random(7)
    judgments = {
        f"q{number}": {
            f"d{one}": chance.randint(1, 4)
            for one in chance.sample(range(150), chance.randint(1, 25))
        }
        for number in range(200)
    }
    rankings = {
        question: chance.sample([f"d{one}" for one in range(150)], chance.randint(1, 100))
        for question in judgments
    }
    theirs = pytrec_eval.RelevanceEvaluator(
        judgments, {"recip_rank", "ndcg_cut.10", "recall.10", "success.5"}
    ).evaluate(
        {
            question: {document: 1000.0 - place for place, document in enumerate(ranking)}
            for question, ranking in rankings.items()
        }
    )

    for question, relevant in judgments.items():
        ours = measure(
            first_met(
                [Expectation(path_contains=d, rel=float(rel)) for d, rel in relevant.items()],
                rankings[question],
                lambda expected, document: expected.path_contains == document,
            ),
            k=5,
        )
        assert (ours.hit, ours.reciprocal_rank, ours.ndcg, ours.recall) == pytest.approx(
            tuple(
                theirs[question][name]
                for name in ("success_5", "recip_rank", "ndcg_cut_10", "recall_10")
            )
        )


def test_an_interval_is_the_same_every_time() -> None:
    values = [random.Random(1).random() for _ in range(50)]

    assert bootstrap(values) == bootstrap(values)


def test_an_interval_is_about_that_of_the_normal_distribution() -> None:
    chance = random.Random(3)
    values = [chance.gauss(0.5, 0.1) for _ in range(400)]
    mean = sum(values) / len(values)
    error = math.sqrt(sum((value - mean) ** 2 for value in values)) / len(values)

    estimate = bootstrap(values)

    assert estimate.mean == pytest.approx(mean)
    assert estimate.low == pytest.approx(mean - 1.96 * error, abs=error / 4)
    assert estimate.high == pytest.approx(mean + 1.96 * error, abs=error / 4)


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_equal_values_leave_no_doubt(value: float) -> None:
    estimate = bootstrap([value] * 7)

    assert (estimate.mean, estimate.low, estimate.high) == (value, value, value)
