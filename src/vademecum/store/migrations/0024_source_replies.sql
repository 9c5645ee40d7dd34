-- What servers of knowledge replied, so that they are not asked again too soon and there is
-- something while they are away. The content is in files of their owner only; here is what it takes
-- to find it, to trust it and to ask whether it changed.

CREATE TABLE source_replies (
    url           text NOT NULL,
    accept        text NOT NULL,
    final_url     text NOT NULL,
    content_type  text NOT NULL,
    digest        text NOT NULL,  -- SHA-256 of the file
    size          integer NOT NULL,
    etag          text,
    last_modified text,
    fetched_at    timestamptz NOT NULL,  -- or last found unchanged
    PRIMARY KEY (url, accept)
);

CREATE INDEX source_replies_by_age ON source_replies (fetched_at);
