"""Killed while agents use the cache of the web: what was told is kept, pages are whole, and hooks
always say something that lets the agent go on.

`benchmarks/kill.py --web` does the same hundreds of times.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from killing_web import KINDS, Web, web


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Web]:
    seed = int(os.environ.get("KILL_SEED") or int.from_bytes(os.urandom(3)))
    print(f"KILL_SEED={seed}")
    one = web(tmp_path, seed=seed)
    yield one
    one.close()


def test_kills_under_agents_that_read_the_web(killed: Web) -> None:
    for kind in killed.chance.sample(KINDS, len(KINDS)):
        killed.round(kind)

    killed.compare()

    assert killed.kept
    assert killed.served
