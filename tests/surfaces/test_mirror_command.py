"""vade promote and vade index, as a user runs them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import Vade
from qdrant_server import QdrantServer

Write = Callable[[dict[str, str | bytes]], Path]

GOLD = '{"query": "how often is the owl fed", "expect": [{"path_contains": "owl.md"}]}\n'


@pytest.fixture
def qdrant() -> Iterator[QdrantServer]:
    server = QdrantServer()
    yield server
    server.stop()


def test_a_collection_is_promoted_verified_and_dropped(
    vade: Vade, qdrant: QdrantServer, write: Write, tmp_path: Path
) -> None:
    folder = write({"owl.md": "# Owl\n\nFeed the owl twice a day.", "b.md": "# B\n\nOther."})
    gold = tmp_path / "gold.jsonl"
    gold.write_text(GOLD)
    place = {"VADE_QDRANT_URL": qdrant.url}
    assert vade("bulk-index", folder).returncode == 0

    without = vade("promote", "--to", "qdrant")
    assert without.returncode == 2
    assert "VADE_QDRANT_URL" in without.stderr

    done = vade("promote", "--to", "qdrant", "--gold", gold, **place)
    assert done.returncode == 0, done.stderr
    assert "docs is searched in qdrant" in done.stdout
    assert "1.000" in done.stdout

    found = json.loads(vade("search", "feed the owl", "--json", **place).stdout)
    assert found["results"][0]["path"] == "owl.md"
    assert any(path.endswith("/points/query") for _, path in qdrant.asked)

    verified = vade("index", "verify", "--json", **place)
    assert verified.returncode == 0
    assert [one["ok"] for one in json.loads(verified.stdout)["indexes"]] == [True, True]

    [name] = qdrant.indexes
    qdrant.engine.delete_collection(name)
    broken = vade("index", "verify", **place)
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "vade index rebuild" in broken.stderr
    rebuilt = vade("index", "rebuild", "-c", "docs", "qdrant", **place)
    assert "qdrant  2 chunks repaired" in rebuilt.stdout

    status = vade("index", "status", **place)
    assert "qdrant  serving, 0 chunks wait" in status.stdout
    dropped = vade("index", "drop", "qdrant", "--yes", **place)
    assert "qdrant has forgotten docs" in dropped.stdout
    assert "pgvector  serving" in vade("index", "status").stdout
