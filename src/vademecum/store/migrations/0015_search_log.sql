-- What was searched for and which of the sources found was then read: candidates for gold files.
CREATE TABLE search_log (
    id            bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    collection_id integer     NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    query         text        NOT NULL,
    path          text        NOT NULL,
    section_id    text        NOT NULL DEFAULT '',
    used_at       timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE search_log IS 'A row a source that was read after a search. Kept for VADE_SEARCH_LOG_DAYS; says neither who searched nor what was read.';
CREATE INDEX search_log_collection ON search_log (collection_id, used_at);
CREATE INDEX search_log_used_at ON search_log (used_at);
