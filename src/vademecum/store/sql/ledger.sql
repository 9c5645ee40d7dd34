-- name: ledger_chunked
-- Documents are split and summarised, and not yet searchable in this form.
INSERT INTO document_ledger (document_id, collection_id, chunked_at, summary6_at,
                             topic, language, summary6, summary6_by, summary6_hash)
SELECT d.id, d.collection_id, clock_timestamp(), clock_timestamp(),
       %(topic)s, %(language)s, %(summary6)s, %(summary6_by)s, d.source_hash
  FROM crawled_documents d WHERE d.id = %(document)s AND d.updated_at = %(updated_at)s
ON CONFLICT (document_id) DO UPDATE
   SET chunked_at = excluded.chunked_at, embedded_at = NULL, upserted_at = NULL,
       summary6_at = excluded.summary6_at, topic = excluded.topic, language = excluded.language,
       summary6 = excluded.summary6, summary6_by = excluded.summary6_by,
       summary6_hash = excluded.summary6_hash;

-- name: summary_written
-- The summary that a writer made of the present content of a document.
SELECT l.summary6
  FROM document_ledger l JOIN crawled_documents d ON d.id = l.document_id
 WHERE l.document_id = %(document)s AND l.summary6_by = %(by)s AND l.summary6_hash = d.source_hash;

-- name: ledger_embedded
UPDATE document_ledger SET embedded_at = clock_timestamp() WHERE document_id = ANY (%(documents)s);

-- name: ledger_upserted
UPDATE document_ledger SET upserted_at = clock_timestamp(), vector_count = %(vectors)s
 WHERE document_id = %(document)s;

-- name: ledger
-- One row a document. A step that is older than the content is still to be done.
SELECT d.id AS document_id, d.path, d.title, d.source_hash AS sha256, d.created_at AS discovered_at,
       CASE WHEN l.chunked_at >= d.updated_at THEN l.chunked_at END AS chunked_at,
       CASE WHEN l.embedded_at >= d.updated_at THEN l.embedded_at END AS embedded_at,
       CASE WHEN l.upserted_at >= d.updated_at THEN l.upserted_at END AS upserted_at,
       CASE WHEN l.summary6_at >= d.updated_at THEN l.summary6_at END AS summary6_at,
       coalesce(l.topic, '') AS topic, coalesce(l.language, '') AS language,
       coalesce(l.summary6, '{}') AS summary6, coalesce(l.vector_count, 0) AS vector_count,
       coalesce((SELECT j.error_message FROM processing_queue j
                  WHERE j.document_id = d.id AND j.status = 'failed'
                  ORDER BY j.id DESC LIMIT 1), '') AS notes
  FROM crawled_documents d LEFT JOIN document_ledger l ON l.document_id = d.id
 WHERE d.collection_id = %(collection)s
 ORDER BY d.path COLLATE "C";

-- name: recent_updates
-- The documents of one collection that changed last.
SELECT path, title, url, last_modified_at AS modified_at, updated_at
  FROM crawled_documents WHERE collection_id = %(collection)s
 ORDER BY updated_at DESC, id DESC LIMIT %(limit)s;

-- name: document_text
SELECT id, content FROM crawled_documents WHERE collection_id = %(collection)s AND path = %(path)s;

-- name: section_texts
SELECT content FROM document_chunks
 WHERE collection_id = %(collection)s AND document_id = %(document)s AND section_id = %(section)s
 ORDER BY chunk_index;

-- name: set_collection_root
UPDATE collections SET root = %(root)s WHERE id = %(collection)s;

-- name: collection_name
SELECT name FROM collections WHERE id = %(collection)s;

-- name: collection_root
SELECT root FROM collections WHERE id = %(collection)s;

-- name: chunk_metadata
-- Every key of the metadata schema, of chunks of one collection.
SELECT k.id, jsonb_build_object(
         'kb_name', c.name, 'namespace', c.name, 'file_path', c.name || '/' || d.path,
         'file_name', regexp_replace(regexp_replace(d.path, '^.*/', ''), '(.)\.[^.]*$', '\1'),
         'title', k.title, 'heading_path', array_to_string(k.heading_path, ' ▸ '),
         'section_id', k.section_id, 'sql_topic', k.topic, 'language', coalesce(l.language, ''),
         'token_count', k.token_count, 'sha256', k.source_hash,
         'last_modified', to_char(d.last_modified_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         'keywords', k.keywords, 'summary6', coalesce(l.summary6, '{}'), 'doc_title', d.title
       ) AS metadata
  FROM document_chunks k
  JOIN crawled_documents d ON d.id = k.document_id
  JOIN collections c ON c.id = k.collection_id
  LEFT JOIN document_ledger l ON l.document_id = d.id
 WHERE k.collection_id = %(collection)s AND k.id = ANY (%(chunks)s);
