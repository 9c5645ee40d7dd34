-- Mirrors: collections whose vectors are also in another store, and what it has yet to be told.
CREATE TABLE installation (
    id  text    NOT NULL DEFAULT left(md5(gen_random_uuid()::text), 8),
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);
COMMENT ON TABLE installation IS 'One row: names this database where several share a store.';
INSERT INTO installation DEFAULT VALUES;

-- No reference to the collection: a store must still be told when that is gone.
CREATE TABLE mirrors (
    id            integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer     NOT NULL,
    space_id      integer     NOT NULL REFERENCES embedding_spaces (id),
    store         text        NOT NULL,
    place         text        NOT NULL,
    tenant        text        NOT NULL,
    state         text        NOT NULL DEFAULT 'filling'
                  CHECK (state IN ('filling', 'serving', 'leaving')),
    follows       boolean     NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN mirrors.follows IS 'Serves by itself once its collection has moved to its space.';
COMMENT ON COLUMN mirrors.place IS 'The name of its collection (Qdrant) or index (Pinecone) in the store.';
COMMENT ON COLUMN mirrors.tenant IS 'What keeps the collection apart from others there.';
CREATE UNIQUE INDEX mirrors_once ON mirrors (collection_id, space_id, store) WHERE state <> 'leaving';
CREATE UNIQUE INDEX mirrors_serving ON mirrors (collection_id, space_id) WHERE state = 'serving';

-- Written by triggers in the transaction of the change; a chunk is then brought in line with what
-- PostgreSQL holds of it at that time, whatever the change was.
CREATE TABLE mirror_changes (
    id        bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mirror_id integer NOT NULL REFERENCES mirrors (id) ON DELETE CASCADE,
    chunk_id  uuid    NOT NULL
);
CREATE INDEX mirror_changes_mirror ON mirror_changes (mirror_id, id);

-- On a space's table, once for each statement; its argument is the space.
CREATE FUNCTION note_vector_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mirror_changes (mirror_id, chunk_id)
    SELECT DISTINCT m.id, c.chunk_id
      FROM changed c
      JOIN mirrors m ON m.collection_id = c.collection_id AND m.space_id = TG_ARGV[0]::integer
     WHERE m.state <> 'leaving';
    RETURN NULL;
END $$;

CREATE FUNCTION note_chunk_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mirror_changes (mirror_id, chunk_id)
    SELECT m.id, NEW.id FROM mirrors m
     WHERE m.collection_id = NEW.collection_id AND m.state <> 'leaving';
    RETURN NULL;
END $$;

CREATE FUNCTION note_facets_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mirror_changes (mirror_id, chunk_id)
    SELECT m.id, k.id FROM mirrors m JOIN document_chunks k ON k.document_id = NEW.id
     WHERE m.collection_id = NEW.collection_id AND m.state <> 'leaving';
    RETURN NULL;
END $$;

CREATE FUNCTION leave_mirrors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mirrors SET state = 'leaving' WHERE collection_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER mirrors_leave AFTER DELETE ON collections
    FOR EACH ROW EXECUTE FUNCTION leave_mirrors();
