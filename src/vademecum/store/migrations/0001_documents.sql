-- Collections, documents, chunks and the queue.
CREATE EXTENSION IF NOT EXISTS vector;

-- Vectors compare only within one space: a model, its weights and its prefixes.
CREATE TABLE embedding_spaces (
    id         integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        text        NOT NULL UNIQUE,
    model      text        NOT NULL,
    dimensions integer     NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- The unit of isolation: every read and write names one.
CREATE TABLE collections (
    id         integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text        NOT NULL UNIQUE CHECK (name ~ '^[[:alnum:]_][[:alnum:]_.-]{0,99}$'),
    profile    text        NOT NULL,
    embedder   text        NOT NULL,
    space_id   integer     REFERENCES embedding_spaces (id),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- The newest content of every source. What is searchable are its chunks, which change
-- together once the new content is split and embedded.
CREATE TABLE crawled_documents (
    id               integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id    integer     NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    path             text        NOT NULL,
    url              text,
    file_path        text,
    title            text        NOT NULL,
    format           text        NOT NULL,
    content          text        NOT NULL,
    content_hash     text        NOT NULL,
    source_hash      text        NOT NULL,
    metadata         jsonb       NOT NULL DEFAULT '{}',
    -- A tsvector may not pass 1 MB: long documents are represented by their beginning here.
    content_tsv      tsvector    GENERATED ALWAYS AS (to_tsvector('english', left(content, 250000))) STORED,
    recipe           text,
    needs_processing boolean     NOT NULL DEFAULT true,
    last_fetched_at  timestamptz NOT NULL DEFAULT now(),
    last_modified_at timestamptz,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT has_source CHECK (url IS NOT NULL OR file_path IS NOT NULL),
    UNIQUE (collection_id, path),
    UNIQUE (collection_id, url),
    UNIQUE (collection_id, file_path)
);
COMMENT ON COLUMN crawled_documents.path IS 'What readers see and cite: relative to the indexed folder, or the URL.';
COMMENT ON COLUMN crawled_documents.source_hash IS 'SHA-256 of the bytes read: equal means nothing to do.';
COMMENT ON COLUMN crawled_documents.recipe IS 'What made the present chunks of it: profile, splitter, embedding space.';

CREATE INDEX crawled_documents_pending ON crawled_documents (id) WHERE needs_processing;
CREATE INDEX crawled_documents_tsv ON crawled_documents USING gin (content_tsv);
CREATE INDEX crawled_documents_url_hash ON crawled_documents (url, content_hash) WHERE url IS NOT NULL;

CREATE TABLE document_chunks (
    id            uuid        PRIMARY KEY,
    document_id   integer     NOT NULL REFERENCES crawled_documents (id) ON DELETE CASCADE,
    collection_id integer     NOT NULL,
    chunk_index   integer     NOT NULL CHECK (chunk_index >= 0),
    total_chunks  integer     NOT NULL,
    content       text        NOT NULL,
    title         text        NOT NULL,
    heading_path  text[]      NOT NULL,
    section_id    text        NOT NULL,
    parent_id     uuid        NOT NULL,
    previous_id   uuid,
    next_id       uuid,
    content_hash  text        NOT NULL,
    source_hash   text        NOT NULL,
    topic         text        NOT NULL DEFAULT '',
    keywords      text[]      NOT NULL DEFAULT '{}',
    token_count   integer     NOT NULL,
    word_count    integer     NOT NULL,
    char_count    integer     NOT NULL,
    version       integer     NOT NULL DEFAULT 1,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT chunk_position UNIQUE (document_id, chunk_index) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX document_chunks_collection ON document_chunks (collection_id);
CREATE INDEX document_chunks_parent ON document_chunks (parent_id, chunk_index);

-- Work to do. A job is leased to a worker; a lease that runs out gives it back.
CREATE TABLE processing_queue (
    id            integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document_id   integer     NOT NULL REFERENCES crawled_documents (id) ON DELETE CASCADE,
    collection_id integer     NOT NULL,
    operation     text        NOT NULL DEFAULT 'chunk_and_embed',
    priority      integer     NOT NULL DEFAULT 0,
    status        text        NOT NULL DEFAULT 'pending'
                  CHECK (status IN ('pending', 'processing', 'done', 'failed')),
    attempts      integer     NOT NULL DEFAULT 0,
    failures      integer     NOT NULL DEFAULT 0,
    error_message text,
    worker        text,
    available_at  timestamptz NOT NULL DEFAULT now(),
    leased_until  timestamptz,
    created_at    timestamptz NOT NULL DEFAULT now(),
    started_at    timestamptz,
    completed_at  timestamptz
);
COMMENT ON COLUMN processing_queue.attempts IS 'Times leased; failures counts the attempts that ended in an error.';

CREATE INDEX processing_queue_pending ON processing_queue (priority DESC, id) WHERE status = 'pending';
CREATE INDEX processing_queue_leased ON processing_queue (leased_until) WHERE status = 'processing';
CREATE INDEX processing_queue_document ON processing_queue (document_id);
CREATE UNIQUE INDEX processing_queue_once ON processing_queue (document_id, operation) WHERE status = 'pending';
