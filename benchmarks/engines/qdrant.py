"""qdrant-edge: HNSW and its own BM25 as a sparse vector, the best 16 of each fused by rank."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from engines.engine import LIMIT, Found
from engines.handover import Handover
from vademecum.inference.embedder import Embedder

DEPTH = 16
RRF_K = 60
POINTS = 1000
"""Written together."""


async def build(handover: Handover, folder: Path) -> None:
    import qdrant_edge as qdrant

    vectors = handover.vectors
    folder.mkdir(parents=True)
    config = qdrant.EdgeConfig(
        vectors={
            "dense": qdrant.EdgeVectorParams(vectors.shape[1], qdrant.Distance.Cosine),
        },
        sparse_vectors={"words": qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)},
    )
    shard = qdrant.EdgeShard.create(str(folder), config)
    bm25 = qdrant.Bm25()
    passages = enumerate(handover.passages())
    while batch := list(islice(passages, POINTS)):
        points = [
            qdrant.Point(
                number,
                {
                    "dense": vectors[number].tolist(),
                    "words": bm25.embed_document(passage.text),
                },
                {"id": passage.id, "text": passage.text},
            )
            for number, passage in batch
        ]
        shard.update(qdrant.UpdateOperation.upsert_points(points))
    shard.optimize()
    shard.flush()
    shard.close()


class QdrantEdge:
    modes = ("hybrid",)

    def __init__(self, shard: Any, bm25: Any, embedder: Embedder) -> None:
        self._shard, self._bm25, self.embedder = shard, bm25, embedder

    async def search(self, text: str, mode: str) -> Found:
        import qdrant_edge as qdrant

        vector = await self.embedder.embed_query(text)
        nearest = qdrant.Query.Nearest
        words = self._bm25.embed_query(text)
        request = qdrant.QueryRequest(
            limit=LIMIT,
            prefetches=[
                qdrant.Prefetch(DEPTH, query=nearest(vector.tolist(), using="dense")),
                qdrant.Prefetch(DEPTH, query=nearest(words, using="words")),
            ],
            query=qdrant.Fusion.Rrf(k=RRF_K),
            with_payload=True,
        )
        return [
            (point.payload["id"], point.payload["text"]) for point in self._shard.query(request)
        ]

    async def server_memory(self) -> int | None:
        return 0


@asynccontextmanager
async def connect(handover: Handover, folder: Path) -> AsyncIterator[QdrantEdge]:
    import qdrant_edge as qdrant

    shard = qdrant.EdgeShard.load(str(folder))
    try:
        yield QdrantEdge(shard, qdrant.Bm25(), handover.embedder())
    finally:
        shard.close()
