-- name: collection_by_name
SELECT c.id, c.name, c.profile, c.declaration, c.embedder, c.next_embedder, c.space_id,
       s.key AS space_key, m.id AS mirror_id, coalesce(l.chunk_count, 0) AS chunk_count
  FROM collections c
  LEFT JOIN embedding_spaces s ON s.id = c.space_id
  LEFT JOIN lexical_statistics l ON l.collection_id = c.id
  LEFT JOIN mirrors m
         ON m.collection_id = c.id AND m.space_id = c.space_id AND m.state = 'serving'
 WHERE c.name = %(name)s;

-- name: collection_names
SELECT name FROM collections ORDER BY name;

-- name: create_collection
-- The collection of this name, made if it is new.
WITH made AS (
    INSERT INTO collections (name, profile, declaration, embedder)
    VALUES (%(name)s, %(profile)s, %(declaration)s, %(embedder)s)
    ON CONFLICT (name) DO NOTHING
    RETURNING id, name, profile, declaration, embedder, next_embedder, space_id,
              NULL::text AS space_key, NULL::integer AS mirror_id, 0 AS chunk_count
), counted AS (
    INSERT INTO lexical_statistics (collection_id) SELECT id FROM made
)
SELECT * FROM made;

-- name: settle_spaces
-- A collection is searched in a space once every document that can be found is embedded in it. One
-- that cannot be processed does not hold up the others, unless the old vectors still serve it: on
-- the way to another model, which also has to be accepted. A recipe ends with the key of its space.
UPDATE collections c
   SET space_id = s.id, embedder = coalesce(c.next_embedder, c.embedder), next_embedder = NULL,
       updated_at = now()
  FROM embedding_spaces s
 WHERE (c.space_id IS DISTINCT FROM s.id OR c.next_embedder IS NOT NULL)
   AND NOT (c.next_embedder IS NOT NULL
            AND EXISTS (SELECT FROM moves m
                         WHERE m.collection_id = c.id AND m.state <> 'accepted'))
   AND EXISTS (SELECT FROM crawled_documents d
                WHERE d.collection_id = c.id AND right(d.recipe, length(s.key)) = s.key)
   AND NOT EXISTS (SELECT FROM crawled_documents d
                    WHERE d.collection_id = c.id
                      AND (d.recipe IS NULL OR right(d.recipe, length(s.key)) <> s.key)
                      AND EXISTS (SELECT FROM document_chunks k WHERE k.document_id = d.id)
                      AND (c.next_embedder IS NOT NULL
                           OR NOT EXISTS (SELECT FROM processing_queue q
                                           WHERE q.document_id = d.id AND q.status = 'failed')));

-- name: set_next_embedder
-- Where there is nothing to embed anew, or nothing to be embedded, it is so at once.
UPDATE collections c
   SET next_embedder = CASE WHEN n.later AND c.embedder <> %(embedder)s THEN %(embedder)s END,
       embedder = CASE WHEN n.later THEN c.embedder ELSE %(embedder)s END,
       space_id = CASE WHEN n.later THEN c.space_id END, updated_at = now()
  FROM (SELECT %(embedder)s <> 'none' AND EXISTS (
                   SELECT FROM document_chunks k WHERE k.collection_id = %(collection)s) AS later) n
 WHERE c.id = %(collection)s;

-- name: stay_with_embedder
UPDATE collections SET next_embedder = NULL, updated_at = now() WHERE id = %(collection)s;

-- name: collections_left
-- Collections that are not searched in a space, and of which no document is embedded for it.
SELECT c.id
  FROM collections c JOIN embedding_spaces s ON s.id = %(space)s
 WHERE c.space_id IS DISTINCT FROM s.id
   AND NOT EXISTS (SELECT FROM crawled_documents d
                    WHERE d.collection_id = c.id AND right(d.recipe, length(s.key)) = s.key);

-- name: set_collection_profile
UPDATE collections SET profile = %(profile)s, declaration = %(declaration)s, updated_at = now()
 WHERE id = %(collection)s;

-- name: delete_collection
DELETE FROM collections WHERE id = %(collection)s;

-- name: collection_overview
-- One row a collection: what it holds and what is still to do.
SELECT c.name, c.profile, c.embedder,
       (SELECT count(*) FROM crawled_documents d WHERE d.collection_id = c.id) AS documents,
       (SELECT count(*) FROM document_chunks k WHERE k.collection_id = c.id) AS chunks,
       coalesce(q.pending, 0) AS pending, coalesce(q.processing, 0) AS processing,
       coalesce(q.failed, 0) AS failed,
       (SELECT max(d.updated_at) FROM crawled_documents d WHERE d.collection_id = c.id) AS updated_at
  FROM collections c
  LEFT JOIN (SELECT d.collection_id,
                    count(*) FILTER (WHERE j.status = 'pending') AS pending,
                    count(*) FILTER (WHERE j.status = 'processing') AS processing,
                    count(*) FILTER (WHERE j.status = 'failed') AS failed
               FROM processing_queue j JOIN crawled_documents d ON d.id = j.document_id
              WHERE j.status <> 'done'
              GROUP BY d.collection_id) q ON q.collection_id = c.id
 WHERE %(name)s::text IS NULL OR c.name = %(name)s
 ORDER BY c.name;
