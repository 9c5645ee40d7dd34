"""Embedding on a Ray cluster of two nodes: the same result as without."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vademecum.app import App
from vademecum.errors import BadInput, BadSetting
from vademecum.inference.local import LocalEmbedder
from vademecum.inference.ray import RayCluster
from vademecum.settings import Settings

pytest.importorskip("ray", reason="the extra is not installed: uv sync --extra ray")

Write = Callable[[dict[str, str | bytes]], Path]
ROWS = (
    "SELECT d.path, k.chunk_index, e.window_index, e.input_hash, e.embedding::text"
    " FROM embeddings_1 e JOIN document_chunks k ON k.id = e.chunk_id"
    " JOIN crawled_documents d ON d.id = k.document_id JOIN collections c ON c.id = d.collection_id"
    " WHERE c.name = %s ORDER BY 1, 2, 3"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one CPU each, as processes of this machine."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    from ray.cluster_utils import Cluster

    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes()
    yield nodes
    nodes.shutdown()


async def rows(app: App, collection: str) -> list[Any]:
    async with app.database.connection() as connection:
        return list(await (await connection.execute(ROWS, [collection])).fetchall())


def pages(count: int) -> dict[str, str | bytes]:
    return {
        f"{number}.md": f"# Page {number}\n\n"
        + "\n\n".join(f"## Part {part}\n\nLamp {number * part} is lit." * 9 for part in range(6))
        for number in range(count)
    }


@pytest.mark.filterwarnings("ignore")
async def test_a_folder_is_indexed_on_two_nodes_with_the_same_result(
    cluster: Any, settings: Settings, home: Path, write: Write
) -> None:
    import ray._private.state

    folder = write(pages(20))
    async with App.open(settings) as app:
        await app.ingest.bulk_index(folder, collection="here")
        async with app.embedders.on_ray(cluster.address):
            report = await app.ingest.bulk_index(folder, collection="there")
            actors = ray._private.state.actors().values()
            nodes = {one["Address"]["NodeID"] for one in actors if one["State"] == "ALIVE"}

        assert (report.failed, report.pending) == ([], 0)
        assert len(nodes) == 2
        there = await rows(app, "there")
        assert len(there) == report.embedded >= 100
        assert there == await rows(app, "here")


@pytest.mark.filterwarnings("ignore")
async def test_a_node_that_is_lost_changes_nothing(cluster: Any, home: Path) -> None:
    here = LocalEmbedder(home=home, threads=1)
    texts = [f"Lamp {number} is lit, and {number * 7} are not." for number in range(400)]
    async with RayCluster.opened(cluster.address, home=home) as opened:
        there = opened.embedder("local:all-MiniLM-L6-v2", here)
        assert np.array_equal(await there.embed(texts[:70]), await here.embed(texts[:70]))
        node = cluster.add_node(num_cpus=1)
        cluster.remove_node(next(iter(cluster.worker_nodes - {node})), allow_graceful=False)
        assert np.array_equal(await there.embed(texts), await here.embed(texts))
        with pytest.raises(BadInput, match="covers 254"):
            await there.embed(["short", "word " * 300])
        with pytest.raises(BadSetting, match="is a server"):
            opened.embedder("ollama:nomic-embed-text", here)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "127.0.0.1:99999"])
async def test_an_address_without_a_cluster_is_said_at_once(address: str, home: Path) -> None:
    with pytest.raises(BadSetting, match=address):
        async with RayCluster.opened(address, home=home):
            raise AssertionError("there is none")
