-- name: add_terms
INSERT INTO terms (collection_id, term)
SELECT %(collection)s, t FROM unnest(%(terms)s::text[]) AS t ORDER BY t
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
COPY chunk_terms (chunk_id, collection_id, length, term_ids, weights) FROM STDIN (FORMAT BINARY);

-- name: delete_chunk_terms
DELETE FROM chunk_terms WHERE chunk_id = ANY (%(chunks)s);

-- name: lexical_weights
SELECT chunk_id, length, weights FROM chunk_terms WHERE collection_id = %(collection)s;

-- name: update_lexical_weights
UPDATE chunk_terms SET weights = %(weights)s WHERE chunk_id = %(chunk)s;

-- name: lexical_hits
-- Chunks by BM25, best first; see the function for how it stays exact.
SELECT chunk_id, score
  FROM lexical_hits(%(collection)s::integer, %(terms)s::text[], %(counts)s::real[],
                    %(keyword)s::text, %(limit)s::integer, %(ceiling)s::integer);
