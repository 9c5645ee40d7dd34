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
    document_id   integer               NOT NULL,
    collection_id integer               NOT NULL,
    length        integer               NOT NULL,
    term_ids      integer[]             NOT NULL,
    weights       sparsevec(1000000000) NOT NULL,
    sequence      bytea                 NOT NULL
) WITH (toast_tuple_target = 8160);
COMMENT ON COLUMN chunk_terms.sequence IS 'Ids of title and text terms in order, stop words left out: 4 bytes each, lowest first.';
-- What scoring reads stays in the row; what only the best candidates need does not.
ALTER TABLE chunk_terms ALTER COLUMN weights SET STORAGE MAIN;
ALTER TABLE chunk_terms ALTER COLUMN sequence SET STORAGE EXTERNAL;
CREATE INDEX chunk_terms_document ON chunk_terms (document_id);
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

-- The best chunks for the terms of a query, best first. Terms come rarest first, each with its
-- weight and the number of chunks that hold it.
--
-- Exact top-k without scoring every posting (after MaxScore, Turtle & Flood 1995): candidates are
-- the chunks that hold one of the rarest terms; a chunk that holds none of them scores at most the
-- sum of the other terms' weights, since a saturated frequency is below 1. When the score at
-- `exact_limit` reaches that bound, nothing better than it can be left out; else the net is cast four
-- times wider. Hits after that one are the best of the net.
-- A net of more than `ceiling` postings is not cast: what could be missed then holds only the
-- query's most frequent terms.
CREATE FUNCTION lexical_hits(
    term_ids integer[], term_weights real[], term_chunks integer[], keyword text,
    hit_limit integer, exact_limit integer, ceiling integer
) RETURNS TABLE (chunk_id uuid, document_id integer, score double precision)
LANGUAGE plpgsql STABLE ROWS 100
SET enable_seqscan = off
AS $$
DECLARE
    query  sparsevec;
    rest   real := (SELECT sum(w) FROM unnest(term_weights) AS w);
    cap    bigint := 1000;
    postings  bigint := 0;
    taken  integer := 0;
    net    integer[];
    found  uuid[];
    places integer[];
    scores double precision[];
BEGIN
    SELECT ('{' || string_agg(t.id || ':' || t.weight, ',') || '}/1000000000')::sparsevec INTO query
      FROM unnest(term_ids, term_weights) AS t (id, weight);
    LOOP
        WHILE taken < cardinality(term_ids)
              AND (taken = 0 OR postings + term_chunks[taken + 1] <= cap) LOOP
            taken := taken + 1;
            postings := postings + term_chunks[taken];
            rest := rest - term_weights[taken];
        END LOOP;
        net := term_ids[1:taken];
        SELECT array_agg(h.id ORDER BY h.score DESC, h.id),
               array_agg(h.place ORDER BY h.score DESC, h.id),
               array_agg(h.score ORDER BY h.score DESC, h.id)
          INTO found, places, scores
          FROM (SELECT c.chunk_id AS id, c.document_id AS place,
                       -(c.weights <#> query) AS score
                  FROM chunk_terms c
                 WHERE c.term_ids && net
                   AND (keyword IS NULL OR EXISTS (
                        SELECT FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id
                         WHERE k.id = c.chunk_id
                           AND d.content_tsv @@ plainto_tsquery('english', keyword)))
                 ORDER BY 3 DESC, 1
                 LIMIT hit_limit) h;
        EXIT WHEN taken = cardinality(term_ids)
               OR scores[exact_limit] >= rest
               OR postings + term_chunks[taken + 1] > ceiling;
        cap := greatest(cap * 4, postings + term_chunks[taken + 1]);
    END LOOP;
    RETURN QUERY SELECT * FROM unnest(found, places, scores);
END $$;
