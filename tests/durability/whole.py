"""What must hold of a database at any moment, and at rest."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from vademecum.inference.embedder import Tokenizer
from vademecum.ingest.read import Found, read_file, scan
from vademecum.ingest.split import ChunkPolicy, split
from vademecum.profiles.profile import DEFAULT, load_profile

MIXED = """
SELECT d.path FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id
 GROUP BY d.path
HAVING count(DISTINCT k.source_hash) > 1 OR count(*) <> min(k.total_chunks)
    OR min(k.total_chunks) <> max(k.total_chunks)
    OR min(k.chunk_index) <> 0 OR max(k.chunk_index) <> count(*) - 1"""

BROKEN_CHAIN = """
SELECT id::text
  FROM (SELECT id, previous_id, next_id,
               lag(id) OVER reading AS before, lead(id) OVER reading AS after
          FROM document_chunks
        WINDOW reading AS (PARTITION BY document_id ORDER BY chunk_index)) k
 WHERE previous_id IS DISTINCT FROM before OR next_id IS DISTINCT FROM after"""

WITHOUT_POSTINGS = """
SELECT id::text FROM document_chunks k
 WHERE NOT EXISTS (SELECT FROM chunk_terms t WHERE t.chunk_id = k.id)"""

MISPACKED = """
WITH gone AS (
    SELECT g.collection_id, g.first,
           ('x' || encode(substring(g.dropped FROM 4 * n + 1 FOR 4), 'hex'))::bit(32)::integer
               AS number
      FROM segments g, generate_series(0, length(g.dropped) / 4 - 1) AS n
), packed AS (
    SELECT t.collection_id, p.term_id, p.first,
           substring(p.entries FROM 12 * n + 1 FOR 12) AS entry,
           ('x' || encode(substring(p.entries FROM 12 * n + 1 FOR 4), 'hex'))::bit(32)::integer
               AS number
      FROM postings p LEFT JOIN terms t ON t.id = p.term_id,
           generate_series(0, length(p.entries) / 12 - 1) AS n
), present AS (
    SELECT collection_id, term_id, entry FROM packed
     WHERE NOT EXISTS (SELECT FROM gone WHERE gone.collection_id = packed.collection_id
                          AND gone.number = packed.number)
), wanted AS (
    SELECT collection_id, u.term_id,
           int4send(number) || int4send(document_id) || int2send(u.frequency)
               || int2send(length::smallint) AS entry
      FROM chunk_terms, unnest(term_ids, frequencies) AS u (term_id, frequency)
)
SELECT format('lacking: %s', w) FROM (SELECT * FROM wanted EXCEPT SELECT * FROM present) w
UNION ALL
SELECT format('too many: %s', p) FROM (SELECT * FROM present EXCEPT SELECT * FROM wanted) p"""

UNKNOWN_TERMS = """
SELECT DISTINCT term_id::text FROM chunk_terms, unnest(term_ids) AS term_id
 WHERE NOT EXISTS (SELECT FROM terms WHERE id = term_id)"""

MISCOUNTED_CHUNKS = """
SELECT format('%s chunks of length %s, not %s of %s', s.chunk_count, s.total_length, n, l)
  FROM lexical_statistics s,
       LATERAL (SELECT count(*) AS n, coalesce(sum(length), 0) AS l
                  FROM chunk_terms t WHERE t.collection_id = s.collection_id) c
 WHERE s.chunk_count <> n OR s.total_length <> l"""

WORK_FORGOTTEN = """
SELECT path FROM crawled_documents d
 WHERE needs_processing
   AND NOT EXISTS (SELECT FROM processing_queue q WHERE q.document_id = d.id
                      AND q.status IN ('pending', 'processing', 'failed', 'held'))"""

WRONG_PARENTS = """
SELECT min(d.path) FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id
 GROUP BY k.document_id HAVING count(DISTINCT k.parent_id) <> 1
UNION ALL
SELECT string_agg(DISTINCT d.path, ' and ')
  FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id
 GROUP BY k.parent_id HAVING count(DISTINCT k.document_id) <> 1"""

ORPHANS = """
SELECT k.id::text FROM document_chunks k
 WHERE NOT EXISTS (SELECT FROM crawled_documents d
                    WHERE d.id = k.document_id AND d.collection_id = k.collection_id)
UNION ALL
SELECT t.chunk_id::text FROM chunk_terms t
 WHERE NOT EXISTS (SELECT FROM document_chunks k
                    WHERE k.id = t.chunk_id AND k.collection_id = t.collection_id)"""

MISCOUNTED_RUNS = """
SELECT format('run %s: %s files, of which %s stored, %s skipped, %s failed, %s left',
              r.id, files_total, files_stored, files_skipped, f.failed, files_left)
  FROM ingestion_runs r,
       LATERAL (SELECT count(*) AS failed FROM run_failures
                 WHERE run_id = r.id AND stage = 'read') f
 WHERE state = 'completed'
   AND (files_total <> files_stored + files_skipped + f.failed OR files_left <> 0)"""

HOLES_IN_WINDOWS = """
SELECT chunk_id::text FROM {table} GROUP BY chunk_id
HAVING min(window_index) <> 0 OR max(window_index) <> count(*) - 1"""

ORPHAN_VECTORS = """
SELECT chunk_id::text FROM {table} e
 WHERE NOT EXISTS (SELECT FROM document_chunks k
                    WHERE k.id = e.chunk_id AND k.collection_id = e.collection_id)"""

WITHOUT_VECTORS = """
SELECT k.id::text FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id
 WHERE d.recipe LIKE '%{model}%'
   AND NOT EXISTS (SELECT FROM {table} e WHERE e.chunk_id = k.id)"""

ALWAYS = {
    "documents of which some chunks are old and some new": MIXED,
    "chunks whose neighbours are not those before and after": BROKEN_CHAIN,
    "chunks that no word finds": WITHOUT_POSTINGS,
    "terms that nobody knows": UNKNOWN_TERMS,
    "postings that are not those of the chunks": MISPACKED,
    "collections counted wrongly": MISCOUNTED_CHUNKS,
    "documents that nobody will process": WORK_FORGOTTEN,
    "documents with several parents, and parents of several documents": WRONG_PARENTS,
    "chunks without their document, and postings without their chunk": ORPHANS,
    "runs that counted wrongly": MISCOUNTED_RUNS,
}


async def broken(connection: AsyncConnection[Any]) -> dict[str, list[str]]:
    """What is wrong now, in one snapshot; at no moment may there be anything."""
    wrong = {}
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        queries = dict(ALWAYS)
        for space, model in await rows(connection, "SELECT id, model FROM embedding_spaces"):
            table = f"embeddings_{space}"
            queries[f"holes in {table}"] = HOLES_IN_WINDOWS.format(table=table)
            queries[f"orphans in {table}"] = ORPHAN_VECTORS.format(table=table)
            queries[f"nothing in {table}"] = WITHOUT_VECTORS.format(table=table, model=model)
        for name, query in queries.items():
            if found := [text for (text,) in await rows(connection, query)]:
                wrong[name] = found
    return wrong


async def open_jobs(connection: AsyncConnection[Any]) -> list[tuple[Any, ...]]:
    return await rows(
        connection,
        "SELECT d.path, q.status, q.error_message FROM processing_queue q"
        " JOIN crawled_documents d ON d.id = q.document_id WHERE q.status <> 'done'",
    )


async def everything(connection: AsyncConnection[Any]) -> dict[str, str]:
    """All that two databases must agree in when they hold the same folder, a line each."""
    lines: dict[str, str] = {}
    queries = {
        "document": "SELECT path, title, format, content_hash, source_hash, metadata, recipe,"
        " needs_processing FROM crawled_documents",
        "chunk": "SELECT k.id, d.path, chunk_index, total_chunks, k.content, k.title,"
        " heading_path, section_id, parent_id, previous_id, next_id, k.content_hash,"
        " k.source_hash, topic, keywords, token_count, word_count, char_count"
        " FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id",
        "postings": "SELECT chunk_id, length,"
        " (SELECT array_agg(term ORDER BY term) FROM terms WHERE id = ANY (term_ids))"
        " FROM chunk_terms",
        "statistics": "SELECT chunk_count, total_length FROM lexical_statistics",
    }
    for (space,) in await rows(connection, "SELECT id FROM embedding_spaces"):
        queries["vector"] = (
            "SELECT chunk_id || '.' || window_index, encode(input_hash, 'hex'),"
            f" vector_dims(embedding) FROM embeddings_{space}"
        )
    for kind, query in queries.items():
        for row in await rows(connection, query):
            lines[f"{kind} {row[0]}"] = json.dumps(row[1:], default=str)
    return lines


async def rows(connection: AsyncConnection[Any], query: str) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(query)  # type: ignore[arg-type]
    return list(await cursor.fetchall())


def chunks_of(folder: Path, collection: str, tokenizer: Tokenizer) -> dict[str, Sequence[str]]:
    """The texts of the chunks that a folder's files have, by path."""
    policy = load_profile(DEFAULT).chunks
    texts = {}
    for file in scan(folder, max_bytes=1_000_000):
        if isinstance(file, Found):
            document = read_file(file.path, name=file.relative, max_bytes=1_000_000)
            chunks = split(
                document,
                identity=f"{collection}:{file.relative}",
                policy=ChunkPolicy(
                    max_tokens=policy.max_tokens, overlap_tokens=policy.overlap_tokens
                ),
                tokenizer=tokenizer,
            )
            texts[file.relative] = [chunk.text for chunk in chunks]
    return texts
