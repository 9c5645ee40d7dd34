"""LanceDB: its full-text index and IVF_HNSW_SQ, fused by its own reciprocal rank reranker."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from engines.engine import LIMIT, Found
from engines.handover import Handover
from vademecum.inference.embedder import Embedder

ROWS = 5000
"""Written together."""


async def build(handover: Handover, folder: Path) -> None:
    import lancedb

    database = lancedb.connect(folder)
    table = None
    for rows in _batches(handover):
        if table is None:
            table = database.create_table("chunks", rows)
        else:
            table.add(rows)
    assert table is not None
    table.optimize()
    table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_HNSW_SQ")
    table.create_fts_index("text")
    table.wait_for_index([index.name for index in table.list_indices()])


class LanceDB:
    modes = ("hybrid",)

    def __init__(self, table: Any, reranker: Any, embedder: Embedder) -> None:
        self._table, self._reranker, self.embedder = table, reranker, embedder

    async def search(self, text: str, mode: str) -> Found:
        vector = await self.embedder.embed_query(text)
        query = (
            self._table.query()
            .nearest_to(vector)
            .distance_type("cosine")
            .nearest_to_text(text, columns="text")
            .rerank(self._reranker)
            .select(["id", "text"])
            .limit(LIMIT)
        )
        return [(row["id"], row["text"]) for row in await query.to_list()]

    async def server_memory(self) -> int | None:
        return 0


@asynccontextmanager
async def connect(handover: Handover, folder: Path) -> AsyncIterator[LanceDB]:
    # Else it logs two warnings for every search, and that takes time, too.
    os.environ["LANCEDB_LOG"] = "error"
    import lancedb
    from lancedb.rerankers import RRFReranker

    database = await lancedb.connect_async(folder)
    table = await database.open_table("chunks")
    yield LanceDB(table, RRFReranker(), handover.embedder())


def _batches(handover: Handover) -> Iterator[Any]:
    import pyarrow as pa

    vectors = handover.vectors
    width = vectors.shape[1]
    passages = handover.passages()
    start = 0
    while batch := list(islice(passages, ROWS)):
        values = pa.array(vectors[start : start + len(batch)].reshape(-1))
        yield pa.table(
            {
                "id": [passage.id for passage in batch],
                "text": [passage.text for passage in batch],
                "vector": pa.FixedSizeListArray.from_arrays(values, width),
            }
        )
        start += len(batch)
