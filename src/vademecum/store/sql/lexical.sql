-- name: add_terms
-- None where the collection was deleted meanwhile.
INSERT INTO terms (collection_id, term)
SELECT c.id, t FROM collections c, unnest(%(terms)s::text[]) AS t
 WHERE c.id = %(collection)s
 ORDER BY t
ON CONFLICT (collection_id, term) DO NOTHING;

-- name: term_ids
SELECT term, id FROM terms WHERE collection_id = %(collection)s AND term = ANY (%(terms)s);

-- name: lock_lexical_statistics
SELECT pivot FROM lexical_statistics WHERE collection_id = %(collection)s FOR UPDATE;

-- name: lexical_average
SELECT total_length / nullif(chunk_count, 0) FROM lexical_statistics
 WHERE collection_id = %(collection)s;

-- name: set_lexical_pivot
UPDATE lexical_statistics SET pivot = %(pivot)s WHERE collection_id = %(collection)s;

-- name: copy_chunk_terms
COPY chunk_terms (chunk_id, document_id, collection_id, length, term_ids, weights, sequence)
FROM STDIN (FORMAT BINARY);

-- name: delete_chunk_terms
DELETE FROM chunk_terms WHERE chunk_id = ANY (%(chunks)s);

-- name: lexical_weights
SELECT chunk_id, length, weights FROM chunk_terms WHERE collection_id = %(collection)s;

-- name: update_lexical_weights
UPDATE chunk_terms SET weights = %(weights)s WHERE chunk_id = %(chunk)s;

-- name: known_terms
-- The terms of a query that the collection holds, with what their weights follow from.
SELECT t.term, t.id, t.chunk_count, s.chunk_count AS chunks
  FROM terms t JOIN lexical_statistics s ON s.collection_id = t.collection_id
 WHERE t.collection_id = %(collection)s AND t.term = ANY (%(terms)s) AND t.chunk_count > 0
 ORDER BY t.chunk_count, t.id;

-- name: lexical_hits
-- Chunks by BM25, best first; see the function for how it stays exact.
SELECT chunk_id, document_id, score
  FROM lexical_hits(%(ids)s::integer[], %(weights)s::real[], %(chunks)s::integer[],
                    %(keyword)s::text, %(limit)s::integer, %(exact)s::integer,
                    %(ceiling)s::integer);
