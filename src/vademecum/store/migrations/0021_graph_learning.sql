-- What is learned of knowledge, what changed of it, and what projections have still to be told.

CREATE TABLE knowledge_scores (
    entity_id     uuid PRIMARY KEY REFERENCES entities ON DELETE CASCADE,
    kind          text NOT NULL,
    source        text NOT NULL DEFAULT '',
    category      text NOT NULL DEFAULT '',
    language      text NOT NULL DEFAULT '',
    last_updated  timestamptz NOT NULL,
    access_count  integer NOT NULL DEFAULT 0,
    last_accessed timestamptz,
    successes     integer NOT NULL DEFAULT 0,
    failures      integer NOT NULL DEFAULT 0,
    misled        integer NOT NULL DEFAULT 0,
    credibility   double precision NOT NULL DEFAULT 0,
    freshness     double precision NOT NULL DEFAULT 0,
    usage         double precision NOT NULL DEFAULT 0,
    helpfulness   double precision NOT NULL DEFAULT 0.5,
    relevance     double precision NOT NULL DEFAULT 0,
    scored_at     timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX knowledge_scores_top ON knowledge_scores (kind, category, language, relevance DESC, entity_id);
CREATE INDEX knowledge_scores_used ON knowledge_scores (access_count);

-- The best of each category and language, made by the daily maintenance.
CREATE TABLE top_documents (
    category  text NOT NULL,
    language  text NOT NULL,
    place     integer NOT NULL,
    entity_id uuid NOT NULL REFERENCES entities ON DELETE CASCADE,
    relevance double precision NOT NULL,
    PRIMARY KEY (category, language, place)
);

CREATE INDEX top_documents_by_entity ON top_documents (entity_id);

CREATE TABLE knowledge_changes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entity_id  uuid NOT NULL,
    name       text NOT NULL,
    change     text NOT NULL,
    detail     text NOT NULL DEFAULT '',
    changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX knowledge_changes_by_entity ON knowledge_changes (entity_id, changed_at);
CREATE INDEX knowledge_changes_by_time ON knowledge_changes (changed_at);

-- Projections: other stores that follow the graph. A change of a row is a job for each of them, in
-- the transaction that makes it, whoever makes it; several changes of a row are one job.

CREATE TABLE projections (
    target     text PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT now()
);

CREATE SEQUENCE projection_sequence;

CREATE TABLE projection_jobs (
    target      text NOT NULL REFERENCES projections ON DELETE CASCADE,
    is_relation boolean NOT NULL,
    id          uuid NOT NULL,
    sequence    bigint NOT NULL DEFAULT nextval('projection_sequence'),
    PRIMARY KEY (target, is_relation, id)
);

CREATE INDEX projection_jobs_in_order ON projection_jobs (target, is_relation, sequence);

CREATE FUNCTION queue_projection() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM projections) THEN
        RETURN NULL;
    END IF;
    EXECUTE format(
        'INSERT INTO projection_jobs (target, is_relation, id)'
        ' SELECT p.target, %L::boolean, c.%I FROM projections p, changed c ORDER BY 1, 3'
        ' ON CONFLICT (target, is_relation, id) DO UPDATE SET sequence = excluded.sequence',
        TG_ARGV[0], TG_ARGV[1]);
    RETURN NULL;
END $$;

CREATE TRIGGER entities_made AFTER INSERT ON entities REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION queue_projection('false', 'id');
CREATE TRIGGER entities_changed AFTER UPDATE ON entities REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION queue_projection('false', 'id');
CREATE TRIGGER entities_gone AFTER DELETE ON entities REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION queue_projection('false', 'id');
CREATE TRIGGER relations_made AFTER INSERT ON relations REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION queue_projection('true', 'id');
CREATE TRIGGER relations_changed AFTER UPDATE ON relations REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION queue_projection('true', 'id');
CREATE TRIGGER relations_gone AFTER DELETE ON relations REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION queue_projection('true', 'id');
CREATE TRIGGER scores_made AFTER INSERT ON knowledge_scores REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION queue_projection('false', 'entity_id');
CREATE TRIGGER scores_changed AFTER UPDATE ON knowledge_scores REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION queue_projection('false', 'entity_id');

-- Entities with what is learned of them among their properties.
CREATE VIEW known_entities AS
SELECT e.id, e.kind, e.project, e.name,
       CASE WHEN e.kind = 'ExternalDoc' AND s.entity_id IS NOT NULL
            THEN e.properties || jsonb_strip_nulls(jsonb_build_object(
                     'access_count', s.access_count, 'relevance_score', s.relevance,
                     'last_accessed', s.last_accessed))
            ELSE e.properties END AS properties,
       e.updated_at
  FROM entities e LEFT JOIN knowledge_scores s ON s.entity_id = e.id;

-- The text of a document that is searched goes with its entity.
CREATE FUNCTION drop_external_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM crawled_documents d USING collections c, gone g
     WHERE c.name = 'external-knowledge' AND d.collection_id = c.id
       AND d.url = 'urn:uuid:' || g.id AND g.kind = 'ExternalDoc';
    RETURN NULL;
END $$;

CREATE TRIGGER external_text_gone AFTER DELETE ON entities REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION drop_external_text();
