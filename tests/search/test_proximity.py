"""Pairs of a query's words in chunks: side by side, and near one another."""

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vademecum.search.proximity import WINDOW, pairs_held


def held(
    chunks: list[list[int]], words: list[int], together: list[tuple[int, int]]
) -> list[list[bool]]:
    joined = [one for chunk in chunks for one in (*chunk, 0)][:-1]
    lengths = np.array([len(chunk) for chunk in chunks], np.int32)
    sequences = np.array(joined, dtype=np.int32)
    found: list[list[bool]] = pairs_held(sequences, lengths, words, together).tolist()
    return found


def test_pairs_are_found_where_they_stand_together_and_nowhere_else() -> None:
    found = held(
        [[1, 2, 3], [2, 1], [3], [], [1], [1, 2, 9, 1, 2]], [3, 1, 2], [(1, 2), (2, 3), (3, 2)]
    )
    # The last of one chunk and the first of the next do not stand together.
    assert [chunk[:3] for chunk in found] == [
        [True, True, False],
        [False, False, False],
        [False, False, False],
        [False, False, False],
        [False, False, False],
        [True, False, False],
    ]


def test_words_are_near_in_any_order_and_within_the_window_only() -> None:
    def apart(words: int) -> list[int]:
        return [1, *[9] * (words - 1), 2]

    chunks = [apart(1), apart(WINDOW)[::-1], apart(WINDOW + 1), [1, 1], [1], [2]]
    assert held(chunks, [1, 2], []) == [[True], [True], [False], [False], [False], [False]]


@given(
    st.lists(st.lists(st.integers(1, 6), max_size=30), min_size=1, max_size=6),
    st.lists(st.integers(1, 5), unique=True, max_size=5),
)
def test_pairs_are_those_that_looking_at_every_two_words_finds(
    chunks: list[list[int]], words: list[int]
) -> None:
    together = list(pairwise(words))

    def close(terms: list[int], a: int, b: int) -> bool:
        places = enumerate(terms)
        return any(
            {x, y} == {a, b} and j - i <= WINDOW for (i, x), (j, y) in combinations(places, 2)
        )

    near = [two for two in combinations(words, 2) if any(close(c, *two) for c in chunks)]
    assert held(chunks, words, together) == [
        [
            *(two in pairwise(terms) for two in together),
            *(close(terms, *two) for two in near),
        ]
        for terms in chunks
    ]
