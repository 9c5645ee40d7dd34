-- The cache of the web: which page is stored where, how fresh it is, and what became of each look.

-- One row a page and collection. `due_at` is its job: whoever takes it moves it on, so that a
-- fetch whose process dies comes back by itself.
CREATE TABLE web_pages (
    id            integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer     NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    url           text        NOT NULL,
    document_id   integer     REFERENCES crawled_documents (id) ON DELETE SET NULL,
    etag          text,
    last_modified text,
    tokens        integer     NOT NULL DEFAULT 0,
    fetched_at    timestamptz,
    verified_at   timestamptz,
    expires_at    timestamptz,
    error         text,
    failures      integer     NOT NULL DEFAULT 0,
    due_at        timestamptz,
    project       text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (collection_id, url)
);
COMMENT ON COLUMN web_pages.url IS 'Normalised; where redirects and the canonical link end.';
COMMENT ON COLUMN web_pages.tokens IS 'Of the whole page as markdown, a token being four bytes.';
CREATE INDEX web_pages_due ON web_pages (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX web_pages_document ON web_pages (document_id);

-- Other addresses of a page.
CREATE TABLE web_aliases (
    collection_id integer NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    url           text    NOT NULL,
    page_id       integer NOT NULL REFERENCES web_pages (id) ON DELETE CASCADE,
    PRIMARY KEY (collection_id, url)
);
CREATE INDEX web_aliases_page ON web_aliases (page_id);

-- What a client's model made of a page for one prompt: derived, never served as the page.
CREATE TABLE web_digests (
    id            integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer     NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    url           text        NOT NULL,
    prompt        text        NOT NULL,
    result        text        NOT NULL,
    derived       boolean     NOT NULL DEFAULT true,
    project       text,
    fetched_at    timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX web_digests_once ON web_digests (collection_id, md5(url), md5(prompt));

-- Results of web searches.
CREATE TABLE web_sources (
    id            integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id integer     NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    query         text        NOT NULL,
    url           text        NOT NULL,
    title         text        NOT NULL,
    snippet       text        NOT NULL,
    project       text,
    found_at      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX web_sources_once ON web_sources (collection_id, md5(url), md5(query));

-- What a project saw of a page when it last read it.
CREATE TABLE web_reads (
    page_id      integer     NOT NULL REFERENCES web_pages (id) ON DELETE CASCADE,
    project      text        NOT NULL,
    content_hash text        NOT NULL,
    paragraphs   bigint[]    NOT NULL,
    read_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (page_id, project)
);

CREATE TABLE cache_events (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT now(),
    kind          text        NOT NULL,
    outcome       text        NOT NULL,
    url           text        NOT NULL,
    project       text,
    tokens_served integer     NOT NULL DEFAULT 0,
    tokens_native integer     NOT NULL DEFAULT 0,
    latency_ms    real        NOT NULL DEFAULT 0,
    detail        text
);
COMMENT ON COLUMN cache_events.kind IS 'check, read, store, refresh, search';
CREATE INDEX cache_events_at ON cache_events (at);
