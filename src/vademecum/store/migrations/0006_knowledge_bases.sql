-- Knowledge bases: the folder a collection mirrors, and what was done for each of its documents.

ALTER TABLE collections ADD COLUMN root text;
COMMENT ON COLUMN collections.root IS 'Folder of a knowledge base, where its ledger and summaries are written.';

CREATE TABLE document_ledger (
    document_id   integer     PRIMARY KEY REFERENCES crawled_documents (id) ON DELETE CASCADE,
    collection_id integer     NOT NULL,
    chunked_at    timestamptz,
    embedded_at   timestamptz,
    upserted_at   timestamptz,
    summary6_at   timestamptz,
    topic         text        NOT NULL DEFAULT '',
    language      text        NOT NULL DEFAULT '',
    summary6      text[]      NOT NULL DEFAULT '{}',
    vector_count  integer     NOT NULL DEFAULT 0
);
COMMENT ON TABLE document_ledger IS 'A step counts only if it is not older than the content: see the query ledger.';
CREATE INDEX document_ledger_collection ON document_ledger (collection_id);
