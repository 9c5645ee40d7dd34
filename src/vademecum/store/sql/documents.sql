-- name: lock_collection
-- One writer of documents at a time in a collection; readers and workers are not held up.
SELECT id FROM collections WHERE id = %(collection)s FOR NO KEY UPDATE;

-- name: documents_of_source
-- The rows a source matches: by url, by file, or one of each.
SELECT id, path, url, file_path, title, content_hash, source_hash, metadata
  FROM crawled_documents
 WHERE collection_id = %(collection)s
   AND (url = %(url)s OR file_path = %(file_path)s)
 ORDER BY (url = %(url)s) DESC NULLS LAST, id;

-- name: insert_documents
-- Those of which nothing is stored and whose path is free, in this order, each with the job that
-- follows.
WITH stored AS (
    INSERT INTO crawled_documents (collection_id, path, url, file_path, title, format, content,
                                   content_hash, source_hash, metadata, last_modified_at, run_id)
    SELECT %(collection)s, w.*, %(run)s
      FROM unnest(%(paths)s::text[], %(urls)s::text[], %(file_paths)s::text[], %(titles)s::text[],
                  %(formats)s::text[], %(contents)b::text[], %(content_hashes)s::text[],
                  %(source_hashes)s::text[], %(metadata)s::jsonb[], %(times)s::timestamptz[])
        AS w (path, url, file_path, title, format, content, content_hash, source_hash, metadata,
              last_modified_at)
    ON CONFLICT DO NOTHING
    RETURNING id, path, collection_id, run_id
), queued AS (
    INSERT INTO processing_queue (document_id, collection_id, priority, run_id)
    SELECT id, collection_id, %(priority)s, run_id FROM stored
)
SELECT path, id FROM stored;

-- name: update_document
UPDATE crawled_documents
   SET url = coalesce(%(url)s, url), file_path = coalesce(%(file_path)s, file_path),
       title = %(title)s, format = %(format)s, content = %(content)s,
       content_hash = %(content_hash)s, source_hash = %(source_hash)s, metadata = %(metadata)s,
       last_modified_at = %(modified_at)s, last_fetched_at = now(), updated_at = now(),
       needs_processing = true, recipe = CASE WHEN NOT %(force)s THEN recipe END,
       run_id = coalesce(%(run)s, run_id)
 WHERE id = %(id)s;

-- name: touch_document
UPDATE crawled_documents
   SET url = coalesce(%(url)s, url), file_path = coalesce(%(file_path)s, file_path),
       source_hash = %(source_hash)s, last_modified_at = %(modified_at)s, last_fetched_at = now()
 WHERE id = %(id)s;

-- name: touch_documents
-- To the day: to write all rows of a large folder takes longer than to read and hash its files.
UPDATE crawled_documents SET last_fetched_at = now()
 WHERE id = ANY (%(ids)s) AND last_fetched_at < now() - interval '1 day';

-- name: lock_to_delete
-- Until the deletion is through no worker swaps their chunks, so that what goes can be counted.
SELECT id FROM crawled_documents WHERE id = ANY (%(ids)s) ORDER BY id FOR UPDATE;

-- name: delete_documents
DELETE FROM crawled_documents WHERE id = ANY (%(ids)s);

-- name: files_below
-- What is stored of the files of a folder.
SELECT id, file_path, source_hash, recipe, needs_processing, run_id
  FROM crawled_documents
 WHERE collection_id = %(collection)s AND starts_with(file_path, %(folder)s);

-- name: documents_elsewhere
-- What a collection holds that is not of a folder.
SELECT id FROM crawled_documents
 WHERE collection_id = %(collection)s
   AND (file_path IS NULL OR NOT starts_with(file_path, %(folder)s));

-- name: document_contents
-- What a worker needs to split documents; `path` and `title` as they are now.
SELECT d.id, d.collection_id, c.name AS collection, c.profile, c.declaration,
       coalesce(c.next_embedder, c.embedder) AS embedder, c.embedder AS serving_embedder,
       d.path, d.url, d.title, d.format, d.content AS text, d.content_hash, d.recipe,
       d.source_hash, d.metadata, d.updated_at
  FROM crawled_documents d JOIN collections c ON c.id = d.collection_id
 WHERE d.id = ANY (%(ids)s)
 ORDER BY d.id;

-- name: lock_documents
-- Of these documents, those that are still as the worker took them up.
SELECT d.id
  FROM crawled_documents d
  JOIN unnest(%(ids)s::integer[], %(times)s::timestamptz[]) AS w (id, updated_at)
    ON w.id = d.id AND w.updated_at = d.updated_at
 ORDER BY d.id
   FOR UPDATE OF d;

-- name: documents_processed
UPDATE crawled_documents d
   SET needs_processing = false, recipe = %(recipe)s, facets = w.facets
  FROM unnest(%(ids)s::integer[], %(facets)s::jsonb[]) AS w (id, facets)
 WHERE d.id = w.id;

-- name: documents_to_reprocess
-- Documents of a collection whose chunks another recipe made, or all of them.
SELECT id FROM crawled_documents
 WHERE collection_id = %(collection)s
   AND (%(force)s OR needs_processing OR recipe IS DISTINCT FROM %(recipe)s)
 ORDER BY id;

-- name: document_due
SELECT id FROM crawled_documents d
 WHERE id = %(document)s AND (needs_processing OR recipe IS DISTINCT FROM %(recipe)s)
   AND NOT EXISTS (SELECT FROM processing_queue q
                    WHERE q.document_id = d.id AND q.status = 'processing' AND q.run_id = %(run)s);

-- name: document_paths
SELECT path FROM crawled_documents WHERE collection_id = %(collection)s;

-- name: document_path
SELECT path FROM crawled_documents WHERE id = %(document)s;

-- name: forget_recipe
UPDATE crawled_documents SET recipe = NULL, needs_processing = true, updated_at = now()
 WHERE id = ANY (%(ids)s);

-- name: documents_holding
-- The index finds those that hold the words in any collection, the best filter first.
SELECT id FROM crawled_documents
 WHERE collection_id = %(collection)s AND content_tsv @@ plainto_tsquery('english', %(words)s);
