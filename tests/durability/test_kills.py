"""Killed at any point, any number of times: nothing lost, nothing twice, nothing half done.

`benchmarks/kill.py` does the same hundreds of times.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from killing import Arena, arena

ROUNDS = int(os.environ.get("KILLS", "12"))


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("KILL_SEED") or int.from_bytes(os.urandom(3)))


@pytest.fixture(params=["none", "local:all-MiniLM-L6-v2"])
def killed(
    request: pytest.FixtureRequest, home: Path, tmp_path: Path, seed: int
) -> Iterator[Arena]:
    print(f"KILL_SEED={seed}")
    made = arena(tmp_path, seed=seed, embedder=request.param, models=home / "models")
    yield made
    made.close()


def test_kills_at_random_moments_leave_a_whole_index(killed: Arena) -> None:
    killed.files = 60 if killed.embedder == "none" else 30
    killed.make_files()

    for _ in range(ROUNDS):
        killed.round()

    killed.compare()
