-- The lexical index, packed: for every term the chunks that hold it, side by side.
--
-- Chunks of a collection are numbered in the order they are written. Those written together are a
-- segment, a range of numbers; a term has one row for each segment, with an entry of twelve bytes for
-- each chunk that holds it. What BM25 needs stands in the entry, so that a query reads its terms' rows
-- and nothing else. Everything here follows from chunk_terms.

ALTER TABLE lexical_statistics ADD COLUMN next_number integer NOT NULL DEFAULT 0;

ALTER TABLE chunk_terms ADD COLUMN number integer, ADD COLUMN frequencies smallint[];

UPDATE chunk_terms t
   SET number = n.number,
       frequencies = (
           SELECT array_agg(least(32767, round(w.weight * n.norm / (1 - w.weight)))::smallint
                            ORDER BY w.place)
             FROM (SELECT split_part(pair, ':', 2)::double precision AS weight, place
                     FROM string_to_table(substring(t.weights::text FROM '\{(.*)\}'), ',')
                          WITH ORDINALITY AS pairs (pair, place)) w)
  FROM (SELECT chunk_id,
               row_number() OVER (PARTITION BY collection_id ORDER BY document_id, chunk_id) - 1
                   AS number,
               1.2 * (0.25 + 0.75 * length / pivot) AS norm
          FROM chunk_terms JOIN lexical_statistics USING (collection_id)) n
 WHERE n.chunk_id = t.chunk_id;

-- A chunk without a word.
UPDATE chunk_terms SET frequencies = '{}' WHERE frequencies IS NULL;

UPDATE lexical_statistics s
   SET next_number = (SELECT count(*) FROM chunk_terms t WHERE t.collection_id = s.collection_id);

DROP FUNCTION lexical_hits_within;
DROP FUNCTION lexical_hits;
DROP INDEX chunk_terms_term_ids;
DROP INDEX chunk_terms_collection;
DROP INDEX chunk_terms_document;
ALTER TABLE chunk_terms DROP COLUMN weights;
ALTER TABLE chunk_terms ALTER COLUMN number SET NOT NULL, ALTER COLUMN frequencies SET NOT NULL;
ALTER TABLE lexical_statistics DROP COLUMN pivot;
CREATE UNIQUE INDEX chunk_terms_number ON chunk_terms (collection_id, number);

CREATE TABLE segments (
    collection_id integer NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    first         integer NOT NULL,
    after         integer NOT NULL CHECK (after > first),
    chunks        integer NOT NULL,
    dropped       bytea   NOT NULL DEFAULT '',
    PRIMARY KEY (collection_id, first)
);
COMMENT ON COLUMN segments.after IS 'The first number that is not of it.';
COMMENT ON COLUMN segments.chunks IS 'Of it when it was written or merged.';
COMMENT ON COLUMN segments.dropped IS 'Numbers of those that are gone since, 4 bytes each, highest first.';

CREATE TABLE postings (
    term_id integer NOT NULL,
    first   integer NOT NULL,
    entries bytea   NOT NULL,
    PRIMARY KEY (term_id, first)
);
COMMENT ON COLUMN postings.entries IS 'Of each chunk, by number: number and document in 4 bytes each, frequency and length in 2 each, highest first.';
-- Arithmetic reads it at once; compressing gains little and costs more than reading.
ALTER TABLE postings ALTER COLUMN entries SET STORAGE EXTERNAL;

INSERT INTO segments (collection_id, first, after, chunks)
SELECT collection_id, 0, next_number, next_number FROM lexical_statistics WHERE next_number > 0;

INSERT INTO postings (term_id, first, entries)
SELECT u.term_id, 0,
       string_agg(int4send(t.number) || int4send(t.document_id) || int2send(u.frequency)
                  || int2send(least(t.length, 32767)::smallint), ''::bytea ORDER BY t.number)
  FROM chunk_terms t, unnest(t.term_ids, t.frequencies) AS u (term_id, frequency)
 GROUP BY u.term_id;

-- Frequencies stay in step with the rows, however these come and go. The row of the collection
-- is locked first, so that two writers cannot lock the same terms in different order.
CREATE OR REPLACE FUNCTION count_terms() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    PERFORM 1 FROM lexical_statistics
      WHERE collection_id IN (SELECT DISTINCT collection_id FROM changed)
      ORDER BY collection_id FOR UPDATE;
    UPDATE lexical_statistics s
       SET chunk_count = s.chunk_count + sign * c.chunks,
           total_length = s.total_length + sign * c.length
      FROM (SELECT collection_id, count(*) AS chunks, sum(length) AS length
              FROM changed GROUP BY collection_id) c
     WHERE s.collection_id = c.collection_id;
    UPDATE terms t
       SET chunk_count = t.chunk_count + sign * c.chunks
      FROM (SELECT term_id, count(*) AS chunks
              FROM changed, unnest(term_ids) AS term_id GROUP BY term_id) c
     WHERE t.id = c.term_id;
    IF TG_OP = 'DELETE' THEN
        UPDATE segments g
           SET dropped = g.dropped || d.numbers
          FROM (SELECT s.collection_id, s.first, string_agg(int4send(c.number), ''::bytea) AS numbers
                  FROM changed c
                  JOIN segments s ON s.collection_id = c.collection_id
                                 AND c.number >= s.first AND c.number < s.after
                 GROUP BY s.collection_id, s.first) d
         WHERE g.collection_id = d.collection_id AND g.first = d.first;
    END IF;
    RETURN NULL;
END $$;

-- Postings go with their terms: those of a collection all at once.
CREATE FUNCTION drop_postings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM postings p USING removed r WHERE p.term_id = r.id;
    RETURN NULL;
END $$;
CREATE TRIGGER terms_deleted AFTER DELETE ON terms
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION drop_postings();

-- The vectors of a document's chunks are read side by side.
DO $$
DECLARE
    space integer;
BEGIN
    FOR space IN SELECT id FROM embedding_spaces LOOP
        EXECUTE format('DROP INDEX IF EXISTS embeddings_%s_document_id', space);
        EXECUTE format('CREATE INDEX IF NOT EXISTS embeddings_%s_document'
                       ' ON embeddings_%s (document_id, chunk_id)', space, space);
    END LOOP;
END $$;
