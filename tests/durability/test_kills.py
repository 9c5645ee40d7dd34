"""Killed at any point, any number of times: nothing lost, nothing twice, nothing half done.

`benchmarks/kill.py` does the same hundreds of times.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from killing import ON_DUTY, Arena, arena


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("KILL_SEED") or int.from_bytes(os.urandom(3)))


@pytest.fixture
def new_arena(home: Path, tmp_path: Path, seed: int) -> Iterator[Callable[[str], Arena]]:
    made: list[Arena] = []

    def new(embedder: str) -> Arena:
        print(f"KILL_SEED={seed}")
        made.append(arena(tmp_path, seed=seed, embedder=embedder, models=home / "models"))
        return made[-1]

    yield new
    for one in made:
        one.close()


@pytest.mark.parametrize(
    ("embedder", "files", "rounds"), [("none", 60, 14), ("local:all-MiniLM-L6-v2", 30, 8)]
)
def test_kills_at_random_moments_leave_a_whole_index(
    new_arena: Callable[[str], Arena], embedder: str, files: int, rounds: int
) -> None:
    killed = new_arena(embedder)
    killed.files = files
    killed.make_files()

    for _ in range(rounds):
        killed.round()

    killed.compare()


def test_kills_of_what_works_until_it_is_stopped(new_arena: Callable[[str], Arena]) -> None:
    killed = new_arena("none")
    killed.files, killed.kinds = 40, ON_DUTY
    killed.make_files()

    for _ in range(8):
        killed.round()

    killed.compare()
