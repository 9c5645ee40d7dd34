-- name: documents_page
-- Documents of a collection in the order of their paths, after one of them.
SELECT d.path, d.title, d.url, d.facets, d.updated_at, d.last_fetched_at AS ingested_at,
       d.source_hash, d.needs_processing,
       (SELECT k.parent_id FROM document_chunks k WHERE k.document_id = d.id LIMIT 1) AS parent_id,
       (SELECT count(*) FROM document_chunks k WHERE k.document_id = d.id) AS chunks
  FROM crawled_documents d
 WHERE d.collection_id = %(collection)s
   AND (%(after)s::text IS NULL OR d.path COLLATE "C" > %(after)s)
   AND (%(within)s::integer[] IS NULL OR d.id = ANY (%(within)s))
 ORDER BY d.path COLLATE "C"
 LIMIT %(limit)s;

-- name: chunk_details
-- Chunks of one collection with all that is known of them, in reading order.
SELECT k.id, c.name AS collection, d.path, d.url, k.title, k.heading_path, k.section_id,
       k.content AS text, d.facets, k.parent_id, k.chunk_index, k.total_chunks, k.previous_id,
       k.next_id, k.content_hash, k.source_hash, k.topic, k.keywords, k.token_count, k.word_count,
       k.char_count, k.version, k.created_at, k.updated_at
  FROM document_chunks k
  JOIN crawled_documents d ON d.id = k.document_id
  JOIN collections c ON c.id = k.collection_id
 WHERE k.collection_id = %(collection)s
   AND (%(chunks)s::uuid[] IS NULL OR k.id = ANY (%(chunks)s))
   AND (%(parent)s::uuid IS NULL OR k.parent_id = %(parent)s)
   AND (%(chunk)s::uuid IS NULL OR (k.document_id, k.chunk_index) IN (
        SELECT m.document_id, generate_series(m.chunk_index - %(context)s,
                                              m.chunk_index + %(context)s)
          FROM document_chunks m WHERE m.id = %(chunk)s AND m.collection_id = %(collection)s))
 ORDER BY k.document_id, k.chunk_index;

-- name: documents_of_parent
SELECT DISTINCT document_id FROM document_chunks
 WHERE collection_id = %(collection)s AND parent_id = %(parent)s;

-- name: ingestion_state
-- What is recorded of each file, and when runs last went over all of them.
SELECT (SELECT max(completed_at) FROM ingestion_runs
         WHERE collection_id = %(collection)s AND state = 'completed' AND mode <> 'incremental')
           AS last_full_ingest,
       (SELECT max(completed_at) FROM ingestion_runs
         WHERE collection_id = %(collection)s AND state = 'completed' AND mode = 'incremental')
           AS last_incremental_update,
       (SELECT count(*)::integer FROM document_chunks WHERE collection_id = %(collection)s)
           AS total_chunks,
       (SELECT count(*)::integer FROM crawled_documents WHERE collection_id = %(collection)s)
           AS total_documents;
