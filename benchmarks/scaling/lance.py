"""The reference: LanceDB over the same chunks, with the same filter."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from scaling.corpus import SECTIONS, Pool, parts
from vademecum.inference.embedder import Embedder

# Else it logs two warnings for every search, and that takes time, too.
os.environ["LANCEDB_LOG"] = "error"

ROWS = 5000
"""Written together."""


def build_lance(pool: Pool, folder: Path, chunks: int) -> dict[str, Any]:
    """Its seconds and its bytes on disk."""
    import lancedb

    started = time.perf_counter()
    table = None
    for rows in _batches(pool, chunks):
        if table is None:
            table = lancedb.connect(folder).create_table("chunks", rows, mode="overwrite")
        else:
            table.add(rows)
    assert table is not None
    table.optimize()
    table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_HNSW_SQ")
    table.create_fts_index("text")
    table.create_scalar_index("part")
    table.wait_for_index([index.name for index in table.list_indices()])
    seconds = time.perf_counter() - started
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"seconds": seconds, "bytes": size}


def _batches(pool: Pool, chunks: int) -> Iterator[Any]:
    import pyarrow as pa

    part = parts(-(-chunks // SECTIONS))
    for first in range(0, chunks, ROWS):
        numbers = range(first, min(first + ROWS, chunks))
        vectors = np.stack([pool.vector(number) for number in numbers])
        yield pa.table(
            {
                "id": [f"passage{number}" for number in numbers],
                "text": [pool.text(number) for number in numbers],
                "part": pa.array([part[number // SECTIONS] for number in numbers], pa.int32()),
                "vector": pa.FixedSizeListArray.from_arrays(
                    pa.array(vectors.reshape(-1)), vectors.shape[1]
                ),
            }
        )


class Lance:
    def __init__(self, table: Any, reranker: Any, embedder: Embedder) -> None:
        self._table, self._reranker, self._embedder = table, reranker, embedder

    @classmethod
    async def open(cls, folder: Path, embedder: Embedder) -> Self:
        import lancedb
        from lancedb.rerankers import RRFReranker

        database = await lancedb.connect_async(folder)
        return cls(await database.open_table("chunks"), RRFReranker(), embedder)

    async def search(self, text: str, mode: str, below: int | None, limit: int) -> list[Any]:
        query = self._table.query()
        if mode != "lexical":
            query = query.nearest_to(await self._embedder.embed_query(text))
            query = query.distance_type("cosine")
        if mode != "dense":
            query = query.nearest_to_text(text, columns="text")
        if below is not None:
            query = query.where(f"part < {below}")
        if mode == "hybrid":
            query = query.rerank(self._reranker)
        found: list[Any] = await query.select(["id", "text"]).limit(limit).to_list()
        return found
