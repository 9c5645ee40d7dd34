-- A collection on its way to another model is searched with the old one until all is embedded anew.
ALTER TABLE collections ADD COLUMN next_embedder text;
COMMENT ON COLUMN collections.next_embedder IS 'What documents are embedded with from now on; null where that is `embedder`. Takes its place when all of them are.';
