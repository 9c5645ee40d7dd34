"""Nearest neighbours in PostgreSQL itself: pgvector's HNSW over the embedding space's table."""

from pgvector import HalfVector
from psycopg import sql

from vademecum.store import embeddings
from vademecum.store.db import Connection
from vademecum.types import CollectionId, Scored, SpaceId, Vector

# The windows of a chunk compete, so more are asked for than chunks are wanted.
WINDOWS_PER_CHUNK = 2

NEAREST = """
WITH nearest AS MATERIALIZED (
    SELECT e.chunk_id, e.document_id, e.embedding <=> %(vector)s AS distance
      FROM {table} e
     WHERE e.collection_id = %(collection)s {keyword}
     ORDER BY e.embedding <=> %(vector)s
     LIMIT %(windows)s
)
SELECT chunk_id, document_id, 1 - min(distance) AS score
  FROM nearest
 GROUP BY chunk_id, document_id
 ORDER BY score DESC, chunk_id
 LIMIT %(limit)s
"""

KEYWORD = """
       AND EXISTS (SELECT FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id
                    WHERE k.id = e.chunk_id
                      AND d.content_tsv @@ plainto_tsquery('english', %(keyword)s))
"""


async def nearest(
    connection: Connection,
    *,
    space: SpaceId,
    collection: CollectionId,
    vector: Vector,
    limit: int,
    keyword: str | None = None,
) -> list[Scored]:
    """The chunks whose best window is nearest, best first; the score is the cosine similarity.

    Without the iterative scan an index scan that meets few rows of the collection would end
    with too few hits, or none.
    """
    windows = limit * WINDOWS_PER_CHUNK
    query = sql.SQL(NEAREST).format(
        table=sql.Identifier(embeddings.table(space)),
        keyword=sql.SQL(KEYWORD if keyword is not None else ""),
    )
    async with connection.transaction():
        await connection.execute(
            "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),"
            " set_config('hnsw.ef_search', %s, true)",
            [str(max(40, min(1000, windows)))],
        )
        cursor = await connection.execute(
            query,
            {
                "vector": HalfVector(vector),
                "collection": collection,
                "keyword": keyword,
                "windows": windows,
                "limit": limit,
            },
        )
        return [
            Scored(chunk_id=chunk, document_id=document, score=score)
            for chunk, document, score in await cursor.fetchall()
        ]
