-- name: chunk_ids_of_documents
SELECT id, document_id FROM document_chunks WHERE document_id = ANY (%(documents)s);

-- name: delete_chunks
DELETE FROM document_chunks WHERE id = ANY (%(chunks)b);

-- name: copy_chunks
COPY document_chunks (id, document_id, collection_id, chunk_index, total_chunks, content, title,
                      heading_path, section_id, parent_id, previous_id, next_id, content_hash,
                      source_hash, topic, keywords, token_count, word_count, char_count)
FROM STDIN (FORMAT BINARY);

-- name: update_chunk
UPDATE document_chunks
   SET chunk_index = %(ordinal)s, total_chunks = %(total_chunks)s, title = %(title)s,
       heading_path = %(heading_path)s, section_id = %(section_id)s,
       previous_id = %(previous_id)s, next_id = %(next_id)s, source_hash = %(source_hash)s,
       topic = %(topic)s, keywords = %(keywords)s, token_count = %(token_count)s,
       version = version + 1, updated_at = now()
 WHERE id = %(id)s;

-- name: chunks_by_id
-- Chunks with what a reader is shown of their documents.
SELECT k.id, k.document_id, c.name AS collection, d.path, d.url, k.title, k.heading_path,
       k.section_id, k.chunk_index AS ordinal, k.content AS text, k.topic, k.keywords,
       k.token_count, k.previous_id, k.next_id, d.facets
  FROM document_chunks k
  JOIN crawled_documents d ON d.id = k.document_id
  JOIN collections c ON c.id = k.collection_id
 WHERE k.collection_id = %(collection)s AND k.id = ANY (%(chunks)b);

-- name: draw_chunks
-- Chunks of one collection in an order that only the seed and their content decide.
SELECT k.id, k.document_id, c.name AS collection, d.path, d.url, k.title, k.heading_path,
       k.section_id, k.chunk_index AS ordinal, k.content AS text, k.topic, k.keywords,
       k.token_count, k.previous_id, k.next_id, d.facets
  FROM document_chunks k
  JOIN crawled_documents d ON d.id = k.document_id
  JOIN collections c ON c.id = k.collection_id
 WHERE k.collection_id = %(collection)s
 ORDER BY md5(%(seed)s::text || k.id::text), k.id
 LIMIT %(limit)s;

-- name: documents_of_chunks
SELECT id, document_id FROM document_chunks
 WHERE collection_id = %(collection)s AND id = ANY (%(chunks)s);
