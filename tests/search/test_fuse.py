"""Fusion: documents by the smooth maximum of their chunks, and shares that explain the score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.search.fuse import SHARPNESS, fuse

WEIGHTS = {"lexical": 0.6, "dense": 0.4}
unit = st.floats(0, 1)


def fused(documents: list[int], lexical: list[float], dense: list[float]) -> list[float]:
    shares = fuse(
        np.array(documents), {"lexical": np.array(lexical), "dense": np.array(dense)}, WEIGHTS
    )
    return np.sum(list(shares.values()), axis=0).tolist()


def test_a_document_of_one_chunk_keeps_its_scores() -> None:
    assert fused([7, 9], [0.5, 0.1], [0.2, 0.8]) == pytest.approx([0.38, 0.38])


def test_chunks_of_a_document_support_one_another() -> None:
    alone, first, second = fused([1, 2, 2], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    assert alone == pytest.approx(0.5)
    assert first == second == pytest.approx(0.5 + np.log(2) / SHARPNESS)


def test_a_chunk_far_below_the_best_adds_next_to_nothing() -> None:
    best, rest = fused([1, 1], [0.9, 0.1], [0.9, 0.1])
    assert best == pytest.approx(0.9, abs=1e-6)
    assert best - rest == pytest.approx(0.8)


def test_nothing_found_is_no_candidates() -> None:
    assert fused([], [], []) == []


@given(st.lists(st.tuples(st.integers(1, 4), unit, unit), min_size=1, max_size=30))
def test_the_best_chunk_of_a_document_has_at_least_its_own_score(
    rows: list[tuple[int, float, float]],
) -> None:
    documents, lexical, dense = (list(column) for column in zip(*rows, strict=True))
    scores = fused(documents, lexical, dense)
    own = [0.6 * one + 0.4 * other for one, other in zip(lexical, dense, strict=True)]
    for score, least in zip(scores, own, strict=True):
        assert score >= least - 1e-9
    for document in set(documents):
        held = [index for index, other in enumerate(documents) if other == document]
        by_score = sorted(held, key=lambda index: scores[index])
        assert own[by_score[-1]] == pytest.approx(max(own[index] for index in held))
