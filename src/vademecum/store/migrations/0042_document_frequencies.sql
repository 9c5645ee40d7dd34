-- How many chunks hold a term is how many entries its postings have, which a search reads anyway.
-- Counted beside the term, a batch of documents wrote each of its terms anew.
DROP TRIGGER chunk_terms_inserted ON chunk_terms;
DROP TRIGGER chunk_terms_deleted ON chunk_terms;
DROP FUNCTION count_terms();

ALTER TABLE terms DROP COLUMN chunk_count;
ALTER TABLE terms RESET (fillfactor);

-- Statistics stay in step with the rows, however these come and go. The rows of collections are
-- locked in their order, so that no two writers wait for each other.
CREATE FUNCTION follow_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER chunk_terms_inserted AFTER INSERT ON chunk_terms
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION follow_chunks();
CREATE TRIGGER chunk_terms_deleted AFTER DELETE ON chunk_terms
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION follow_chunks();
