-- name: collection_by_name
SELECT c.id, c.name, c.profile, c.embedder, c.space_id, s.key AS space_key
  FROM collections c LEFT JOIN embedding_spaces s ON s.id = c.space_id
 WHERE c.name = %(name)s;

-- name: collection_names
SELECT name FROM collections ORDER BY name;

-- name: create_collection
-- The collection of this name, made if it is new.
WITH made AS (
    INSERT INTO collections (name, profile, embedder)
    VALUES (%(name)s, %(profile)s, %(embedder)s)
    ON CONFLICT (name) DO NOTHING
    RETURNING id, name, profile, embedder, space_id, NULL::text AS space_key
), counted AS (
    INSERT INTO lexical_statistics (collection_id) SELECT id FROM made
)
SELECT * FROM made;

-- name: settle_spaces
-- A collection is searched in a space once every document that can be found is embedded in it; one
-- that cannot be processed does not hold up the others. A recipe ends with the key of its space.
UPDATE collections c SET space_id = s.id, updated_at = now()
  FROM embedding_spaces s
 WHERE c.space_id IS DISTINCT FROM s.id
   AND EXISTS (SELECT FROM crawled_documents d
                WHERE d.collection_id = c.id AND right(d.recipe, length(s.key)) = s.key)
   AND NOT EXISTS (SELECT FROM crawled_documents d
                    WHERE d.collection_id = c.id
                      AND (d.recipe IS NULL OR right(d.recipe, length(s.key)) <> s.key)
                      AND EXISTS (SELECT FROM document_chunks k WHERE k.document_id = d.id)
                      AND NOT EXISTS (SELECT FROM processing_queue q
                                       WHERE q.document_id = d.id AND q.status = 'failed'));

-- name: set_collection_profile
UPDATE collections SET profile = %(profile)s, updated_at = now() WHERE id = %(collection)s;

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
              GROUP BY d.collection_id) q ON q.collection_id = c.id
 WHERE %(name)s::text IS NULL OR c.name = %(name)s
 ORDER BY c.name;
