-- name: add_terms
-- Those that are new, of terms with blanks between; none where the collection was deleted meanwhile.
INSERT INTO terms (collection_id, term)
SELECT c.id, t FROM collections c, unnest(string_to_array(%(terms)s, ' ')) AS t
 WHERE c.id = %(collection)s
 ORDER BY t
ON CONFLICT (collection_id, term) DO NOTHING
RETURNING term, id;

-- name: term_ids
SELECT term, id FROM terms
 WHERE collection_id = %(collection)s AND term = ANY (string_to_array(%(terms)s, ' '));

-- name: lock_lexical_statistics
SELECT FROM lexical_statistics WHERE collection_id = %(collection)s FOR UPDATE;

-- name: number_chunks
-- The first of so many numbers for new chunks. Other writers wait until this one has committed.
UPDATE lexical_statistics SET next_number = next_number + %(chunks)s
 WHERE collection_id = %(collection)s
RETURNING next_number - %(chunks)s;

-- name: copy_chunk_terms
COPY chunk_terms (chunk_id, document_id, collection_id, number, length, term_ids, frequencies,
                  sequence)
FROM STDIN (FORMAT BINARY);

-- name: delete_chunk_terms
DELETE FROM chunk_terms WHERE chunk_id = ANY (%(chunks)s);

-- name: segments
-- A number of a chunk that is gone takes four bytes.
SELECT string_agg(int4send(first) || int4send(after) || int4send(chunks)
                  || int4send(chunks - length(dropped) / 4) || uuid_send(key), ''::bytea
                  ORDER BY first)
  FROM segments WHERE collection_id = %(collection)s;

-- name: dropped_chunks
SELECT uuid_send(key), dropped FROM segments WHERE collection_id = %(collection)s;

-- name: drop_segments
WITH gone AS (
    DELETE FROM segments
     WHERE collection_id = %(collection)s AND first >= %(first)s AND first < %(after)s
)
DELETE FROM postings p USING terms t
 WHERE t.collection_id = %(collection)s AND p.term_id = t.id
   AND p.first >= %(first)s AND p.first < %(after)s;

-- name: join_segments
-- Segments of which no chunk is gone are made one by putting their entries side by side.
WITH gone AS (
    DELETE FROM segments
     WHERE collection_id = %(collection)s AND first >= %(first)s AND first < %(after)s
), old AS (
    DELETE FROM postings p USING terms t
     WHERE t.collection_id = %(collection)s AND p.term_id = t.id
       AND p.first >= %(first)s AND p.first < %(after)s
    RETURNING p.term_id, p.first, p.entries
)
INSERT INTO postings (term_id, first, entries)
SELECT term_id, %(first)s, string_agg(entries, ''::bytea ORDER BY first) FROM old GROUP BY term_id;

-- name: pack_postings
INSERT INTO postings (term_id, first, entries)
SELECT u.term_id, %(first)s,
       string_agg(int4send(t.number) || int4send(t.document_id) || int2send(u.frequency)
                  || int2send(least(t.length, 32767)::smallint), ''::bytea ORDER BY t.number)
  FROM chunk_terms t, unnest(t.term_ids, t.frequencies) AS u (term_id, frequency)
 WHERE t.collection_id = %(collection)s AND t.number >= %(first)s AND t.number < %(after)s
 GROUP BY u.term_id;

-- name: add_segment
INSERT INTO segments (collection_id, first, after, chunks)
SELECT %(collection)s, %(first)s, %(after)s, count(*) FROM chunk_terms
 WHERE collection_id = %(collection)s AND number >= %(first)s AND number < %(after)s
HAVING count(*) > 0;

-- name: postings
-- What a query's terms are weighted and scored with; without the entries that are kept by who asks;
-- with all segments of the collection as they are at that moment. Terms have no blanks: one text is
-- quicker to send than an array.
SELECT t.term, t.id, uuid_send(g.key) AS key, g.dropped,
       CASE WHEN t.term || ' ' || encode(uuid_send(g.key), 'hex') NOT IN
                 (SELECT unnest(string_to_array(%(kept)s, E'\n')))
            THEN p.entries END AS entries,
       s.chunk_count AS chunks, s.total_length / s.chunk_count AS average_length, s.next_number,
       (SELECT string_agg(int4send(first) || int4send(after) || int4send(chunks)
                          || int4send(chunks - length(dropped) / 4) || uuid_send(key), ''::bytea
                          ORDER BY first)
          FROM segments WHERE collection_id = %(collection)s) AS segments
  FROM lexical_statistics s
  JOIN terms t ON t.collection_id = s.collection_id
  JOIN postings p ON p.term_id = t.id
  JOIN segments g ON g.collection_id = s.collection_id AND g.first = p.first
 WHERE s.collection_id = %(collection)s AND s.chunk_count > 0
   AND t.term = ANY (string_to_array(%(terms)s, ' '))
 ORDER BY t.term, p.first;

-- name: numbers_of_chunks
SELECT chunk_id, number FROM chunk_terms WHERE chunk_id = ANY (%(chunks)s);
