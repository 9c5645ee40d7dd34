-- name: mirrors
-- Of one collection, or of all.
SELECT m.id, m.collection_id, m.space_id, m.store, m.place, m.tenant, m.state, m.follows,
       s.dimensions
  FROM mirrors m JOIN embedding_spaces s ON s.id = m.space_id
 WHERE %(collection)s::integer IS NULL OR m.collection_id = %(collection)s
 ORDER BY m.id;

-- name: create_mirror
-- Made where it is new; one that exists stays as it is.
WITH made AS (
    INSERT INTO mirrors (collection_id, space_id, store, place, tenant, follows)
    SELECT %(collection)s, %(space)s, %(store)s,
           format('vade-%%s-%%s', i.id, %(space)s::integer), %(tenant)s, %(follows)s
      FROM installation i
    ON CONFLICT (collection_id, space_id, store) WHERE state <> 'leaving' DO NOTHING
    RETURNING *
)
SELECT m.id, m.collection_id, m.space_id, m.store, m.place, m.tenant, m.state, m.follows,
       s.dimensions
  FROM made m JOIN embedding_spaces s ON s.id = m.space_id;

-- name: serve_from_mirror
-- The mirrors of a collection and a space: one serves, the others only fill.
UPDATE mirrors SET state = CASE WHEN id = %(mirror)s THEN 'serving' ELSE 'filling' END
 WHERE collection_id = %(collection)s AND space_id = %(space)s AND state <> 'leaving';

-- name: serve_from_no_mirror
UPDATE mirrors SET state = 'filling'
 WHERE collection_id = %(collection)s AND space_id = %(space)s AND state = 'serving';

-- name: leave_old_mirrors
-- Of collections that have moved to a space where another mirror is complete.
UPDATE mirrors o SET state = 'leaving'
  FROM mirrors m JOIN collections c ON c.id = m.collection_id AND c.space_id = m.space_id
 WHERE m.follows AND m.state = 'filling' AND o.collection_id = m.collection_id
   AND o.space_id <> m.space_id AND o.state <> 'leaving' AND NOT o.follows
   AND NOT EXISTS (SELECT FROM mirror_changes h WHERE h.mirror_id = m.id);

-- name: mirrors_take_over
UPDATE mirrors m SET state = 'serving', follows = false
  FROM collections c
 WHERE c.id = m.collection_id AND c.space_id = m.space_id AND m.follows AND m.state = 'filling'
   AND NOT EXISTS (SELECT FROM mirror_changes h WHERE h.mirror_id = m.id);

-- name: leave_mirror
UPDATE mirrors SET state = 'leaving' WHERE id = %(mirror)s;

-- name: delete_mirror
DELETE FROM mirrors WHERE id = %(mirror)s;

-- name: hold_mirror
-- One feeder of a mirror at a time, until the transaction ends. 1986358898 is "vmir" in ASCII.
SELECT pg_try_advisory_xact_lock(1986358898, %(mirror)s);

-- name: mirror_changes
SELECT id, chunk_id FROM mirror_changes WHERE mirror_id = %(mirror)s ORDER BY id LIMIT %(limit)s;

-- name: forget_mirror_changes
DELETE FROM mirror_changes WHERE id = ANY (%(ids)s);

-- name: note_chunks
INSERT INTO mirror_changes (mirror_id, chunk_id)
SELECT %(mirror)s, chunk_id FROM unnest(%(chunks)s::uuid[]) AS c (chunk_id);

-- name: mirrors_to_feed
SELECT m.id FROM mirrors m
 WHERE (%(collection)s::integer IS NULL OR m.collection_id = %(collection)s)
   AND (m.state = 'leaving' OR EXISTS (SELECT FROM mirror_changes h WHERE h.mirror_id = m.id)
        -- Its collection has moved to its space, where it is to serve.
        OR m.follows AND EXISTS (SELECT FROM collections c
                                  WHERE c.id = m.collection_id AND c.space_id = m.space_id))
 ORDER BY m.id;

-- name: waiting_changes
-- Chunks that mirrors have yet to be told of, and the documents that these are of.
SELECT count(DISTINCT c.chunk_id) AS chunks, count(DISTINCT k.document_id) AS documents
  FROM mirror_changes c
  JOIN mirrors m ON m.id = c.mirror_id
  LEFT JOIN document_chunks k ON k.id = c.chunk_id
 WHERE m.state = 'serving'
   AND (%(collection)s::integer IS NULL OR m.collection_id = %(collection)s);

-- name: mirror_fields
-- What a store is told of chunks beside their vectors: where they stand, and whose they are.
SELECT k.id AS chunk_id, k.document_id, d.facets, k.content AS text,
       jsonb_build_object(
         'book_id', c.name, 'parent_doc_id', k.parent_id, 'content_hash', k.content_hash,
         'source_file_hash', k.source_hash, 'source_file', d.path,
         'section_title', k.heading_path[cardinality(k.heading_path)],
         'chunk_index', k.chunk_index, 'total_chunks', k.total_chunks,
         'prev_chunk_id', k.previous_id, 'next_chunk_id', k.next_id,
         'word_count', k.word_count, 'token_count', k.token_count, 'version', k.version,
         'created_at', to_char(k.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         'updated_at', to_char(k.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
       ) AS fields
  FROM document_chunks k
  JOIN crawled_documents d ON d.id = k.document_id
  JOIN collections c ON c.id = k.collection_id
 WHERE k.collection_id = %(collection)s AND k.id = ANY (%(chunks)s);

-- name: mirrored_profile
SELECT profile, declaration FROM collections WHERE id = %(collection)s;

-- name: changes_by_mirror
SELECT mirror_id, count(DISTINCT chunk_id) FROM mirror_changes
 WHERE mirror_id = ANY (%(mirrors)s) GROUP BY mirror_id;

-- name: sample_queries
-- What was searched for and then read, the latest first; and where that is not enough, headings.
SELECT text FROM (
    SELECT l.query AS text, 0 AS kind, NULL AS place, max(l.used_at) AS at
      FROM search_log l WHERE l.collection_id = %(collection)s GROUP BY l.query
    UNION ALL
    (SELECT coalesce(nullif(array_to_string(heading_path, ' '), ''), left(content, 100)), 1,
            md5(id::text), NULL
       FROM document_chunks WHERE collection_id = %(collection)s
      ORDER BY md5(id::text) LIMIT %(limit)s)
) queries
 ORDER BY kind, at DESC, place LIMIT %(limit)s;
