-- What search needs of a memory's sentences: made from its versions, and made again where missing.
CREATE TABLE memory_passages (
    user_id   uuid    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    project   text    NOT NULL,
    text      text    NOT NULL,
    section   text    NOT NULL,
    version   integer NOT NULL,
    terms     text[]  NOT NULL,
    space     text,
    embedding bytea,
    PRIMARY KEY (user_id, project, text),
    CHECK ((space IS NULL) = (embedding IS NULL))
);
COMMENT ON COLUMN memory_passages.version IS 'The newest version in which it stands.';
COMMENT ON COLUMN memory_passages.embedding IS 'Float32, little-endian; of the embedding space whose key is `space`.';

ALTER TABLE memory_passages ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_passages FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON memory_passages
    USING (user_id = nullif(current_setting('vade.user', true), '')::uuid);
DO $$
BEGIN
    GRANT SELECT, INSERT, UPDATE, DELETE ON memory_passages TO vademecum_memory;
EXCEPTION WHEN undefined_object OR insufficient_privilege THEN
    NULL;  -- without that role the owner is bound by the policy itself
END $$;
