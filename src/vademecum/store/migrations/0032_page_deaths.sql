-- A page that kills whoever reads it is not read again without end.
ALTER TABLE web_pages ADD COLUMN deaths integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN web_pages.deaths IS
    'Processes that began to read what was fetched of it, and never came to an end.';
