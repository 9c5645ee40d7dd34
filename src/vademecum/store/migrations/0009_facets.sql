-- Facets: what a profile declares of its documents, and what a search may be filtered by.
ALTER TABLE collections ADD COLUMN declaration text;
COMMENT ON COLUMN collections.declaration IS 'The profile in TOML where it is the user''s own; null for one that comes with Vademecum.';

ALTER TABLE crawled_documents ADD COLUMN facets jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN crawled_documents.facets IS 'Of the present chunks; changes in the transaction that swaps them.';

-- One row for each value, so that equality, any-of and ranges are each one range of an index.
CREATE TABLE document_facets (
    document_id   integer NOT NULL REFERENCES crawled_documents (id) ON DELETE CASCADE,
    collection_id integer NOT NULL,
    facet         text    COLLATE "C" NOT NULL,
    keyword       text    COLLATE "C",
    number        bigint,
    CONSTRAINT one_value CHECK (num_nonnulls(keyword, number) = 1)
);
COMMENT ON COLUMN document_facets.keyword IS 'Keywords, levels, true and false, dates as YYYY-MM-DD; integers are numbers.';
CREATE INDEX document_facets_keyword ON document_facets (collection_id, facet, keyword, document_id)
    WHERE keyword IS NOT NULL;
CREATE INDEX document_facets_number ON document_facets (collection_id, facet, number, document_id)
    WHERE number IS NOT NULL;
CREATE INDEX document_facets_document ON document_facets (document_id);

-- The rows follow the document's own column, whoever writes it.
CREATE FUNCTION spread_facets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM document_facets WHERE document_id = NEW.id;
    INSERT INTO document_facets (document_id, collection_id, facet, keyword, number)
    SELECT DISTINCT NEW.id, NEW.collection_id, f.key,
           CASE WHEN jsonb_typeof(v.value) <> 'number' THEN v.value #>> '{}' END,
           CASE WHEN jsonb_typeof(v.value) = 'number' THEN (v.value #>> '{}')::bigint END
      FROM jsonb_each(NEW.facets) f,
           jsonb_array_elements(CASE jsonb_typeof(f.value) WHEN 'array' THEN f.value
                                ELSE jsonb_build_array(f.value) END) v;
    RETURN NULL;
END $$;
CREATE TRIGGER document_facets_follow AFTER UPDATE OF facets ON crawled_documents
    FOR EACH ROW WHEN (OLD.facets IS DISTINCT FROM NEW.facets) EXECUTE FUNCTION spread_facets();

-- As `lexical_hits`, among these documents only. A net that the filter leaves too little of is cast
-- wider whatever it costs, so a filter never starves the result. Planned for each call, since few
-- documents are best looked up by themselves and many by the terms.
CREATE FUNCTION lexical_hits_within(
    term_ids integer[], term_weights real[], term_chunks integer[], keyword text,
    hit_limit integer, exact_limit integer, ceiling integer, documents integer[]
) RETURNS TABLE (chunk_id uuid, document_id integer, score double precision)
LANGUAGE plpgsql STABLE ROWS 100
SET enable_seqscan = off
SET plan_cache_mode = force_custom_plan
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
                   AND c.document_id = ANY (documents)
                   AND (keyword IS NULL OR EXISTS (
                        SELECT FROM crawled_documents d
                         WHERE d.id = c.document_id
                           AND d.content_tsv @@ plainto_tsquery('english', keyword)))
                 ORDER BY 3 DESC, 1
                 LIMIT hit_limit) h;
        EXIT WHEN taken = cardinality(term_ids)
               OR scores[exact_limit] >= rest
               OR (postings + term_chunks[taken + 1] > ceiling AND cardinality(found) = hit_limit);
        cap := greatest(cap * 4, postings + term_chunks[taken + 1]);
    END LOOP;
    RETURN QUERY SELECT * FROM unnest(found, places, scores);
END $$;
