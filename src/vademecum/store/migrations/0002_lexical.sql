-- The lexical index: exact BM25 in plain PostgreSQL.
--
-- A chunk's row holds its saturated term frequencies as a sparse vector, so that a score is its
-- inner product with the query's idf weights; candidates come from the GIN index on term ids.
-- Term ids belong to one collection, so the postings of collections never mix.

CREATE TABLE terms (
    id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    term          text    NOT NULL,
    chunk_count   integer NOT NULL DEFAULT 0,
    UNIQUE (collection_id, term)
) WITH (fillfactor = 70);
COMMENT ON COLUMN terms.chunk_count IS 'Chunks that hold the term: its document frequency.';

CREATE TABLE lexical_statistics (
    collection_id integer          PRIMARY KEY REFERENCES collections (id) ON DELETE CASCADE,
    chunk_count   integer          NOT NULL DEFAULT 0,
    total_length  double precision NOT NULL DEFAULT 0,
    pivot         double precision
) WITH (fillfactor = 50);
COMMENT ON COLUMN lexical_statistics.pivot IS 'Average length that the stored weights were made with.';

CREATE TABLE chunk_terms (
    chunk_id      uuid                  PRIMARY KEY REFERENCES document_chunks (id) ON DELETE CASCADE,
    collection_id integer               NOT NULL,
    length        integer               NOT NULL,
    term_ids      integer[]             NOT NULL,
    weights       sparsevec(1000000000) NOT NULL
);
CREATE INDEX chunk_terms_term_ids ON chunk_terms USING gin (term_ids);
CREATE INDEX chunk_terms_collection ON chunk_terms (collection_id);

-- Frequencies stay in step with the rows, however these come and go. The row of the collection
-- is locked first, so that two writers cannot lock the same terms in different order.
CREATE FUNCTION count_terms() RETURNS trigger LANGUAGE plpgsql AS $$
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
    RETURN NULL;
END $$;

CREATE TRIGGER chunk_terms_inserted AFTER INSERT ON chunk_terms
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_terms();
CREATE TRIGGER chunk_terms_deleted AFTER DELETE ON chunk_terms
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_terms();

-- The best chunks of a collection for the terms of a query, best first.
--
-- Exact top-k without scoring every posting (after MaxScore, Turtle & Flood 1995): candidates are
-- the chunks that hold one of the rarest terms; a chunk that holds none of them scores at most the
-- sum of the other terms' weights, since a saturated frequency is below 1. When the k-th score
-- reaches that bound nothing better can be left out; else the net is cast four times wider.
-- A query over more than `ceiling` postings stops there: what could still be missed then holds only
-- the query's most frequent terms.
CREATE FUNCTION lexical_hits(
    collection integer, query_terms text[], query_counts real[], keyword text, hit_limit integer,
    ceiling integer
) RETURNS TABLE (chunk_id uuid, score double precision)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
AS $$
DECLARE
    ids     integer[];
    sums    bigint[];
    bounds  double precision[];
    query   sparsevec;
    cap     bigint := 1000;
    take    integer;
    ids_in  integer[];
    found   uuid[];
    scores  double precision[];
BEGIN
    SELECT array_agg(w.id ORDER BY w.place),
           array_agg(w.postings ORDER BY w.place),
           array_agg(w.rest ORDER BY w.place),
           ('{' || string_agg(w.id || ':' || w.weight, ',') || '}/1000000000')::sparsevec
      INTO ids, sums, bounds, query
      FROM (SELECT x.id, x.weight, row_number() OVER rarest AS place,
                   sum(x.chunk_count) OVER rarest AS postings,
                   sum(x.weight) OVER () - sum(x.weight) OVER rarest AS rest
              FROM (SELECT t.id, t.chunk_count,
                           (q.n * ln(1 + (s.chunk_count - t.chunk_count + 0.5)
                                       / (t.chunk_count + 0.5)))::real AS weight
                      FROM unnest(query_terms, query_counts) AS q (term, n)
                      JOIN terms t ON t.collection_id = collection AND t.term = q.term
                      JOIN lexical_statistics s ON s.collection_id = collection
                     WHERE t.chunk_count > 0) x
            WINDOW rarest AS (ORDER BY x.chunk_count, x.id ROWS UNBOUNDED PRECEDING)) w;
    IF ids IS NULL THEN
        RETURN;
    END IF;
    LOOP
        SELECT greatest(1, count(*)) INTO take FROM unnest(sums) AS s WHERE s <= cap;
        ids_in := ids[1:take];
        SELECT array_agg(h.id ORDER BY h.score DESC, h.id), array_agg(h.score ORDER BY h.score DESC, h.id)
          INTO found, scores
          FROM (SELECT c.chunk_id AS id, -(c.weights <#> query) AS score
                  FROM chunk_terms c
                 WHERE c.term_ids && ids_in
                   AND (keyword IS NULL OR EXISTS (
                        SELECT FROM document_chunks d JOIN crawled_documents p ON p.id = d.document_id
                         WHERE d.id = c.chunk_id
                           AND p.content_tsv @@ plainto_tsquery('english', keyword)))
                 ORDER BY 2 DESC, 1
                 LIMIT hit_limit) h;
        EXIT WHEN take = cardinality(ids)
               OR scores[hit_limit] >= bounds[take]
               OR sums[take + 1] > ceiling;
        cap := greatest(cap * 4, sums[take + 1]);
    END LOOP;
    RETURN QUERY SELECT * FROM unnest(found, scores);
END $$;
