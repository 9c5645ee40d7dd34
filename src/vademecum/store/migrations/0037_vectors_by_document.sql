-- Vectors are found by their document, and read from the table: the chunk beside it was for
-- searches that looked at all chunks of a document. Without it equal entries are kept once.
DO $$
DECLARE
    space integer;
BEGIN
    FOR space IN SELECT id FROM embedding_spaces LOOP
        EXECUTE format('DROP INDEX IF EXISTS embeddings_%s_document', space);
        EXECUTE format('CREATE INDEX embeddings_%s_document ON embeddings_%s (document_id)',
                       space, space);
    END LOOP;
END $$;
