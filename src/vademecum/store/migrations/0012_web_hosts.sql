-- Hosts that asked to be left alone, for every process; and when a page was last tried in vain.
CREATE TABLE web_hosts (
    host       text        PRIMARY KEY,
    busy_until timestamptz NOT NULL
);
ALTER TABLE web_pages ADD COLUMN tried_at timestamptz;
