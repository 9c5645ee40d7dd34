-- The graph. A statement is what one source says at once, under a key: the call sites of a file,
-- the API of a package's version. What no statement says any more goes.

CREATE TABLE graph_statements (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project   text NOT NULL DEFAULT '',  -- '' is knowledge that all projects share
    source    text NOT NULL,
    key       text NOT NULL,
    digest    text NOT NULL DEFAULT '',
    stated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (project, source, key)
);

CREATE TABLE entities (
    id         uuid PRIMARY KEY,
    kind       text NOT NULL,
    project    text NOT NULL DEFAULT '',
    name       text NOT NULL,
    properties jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX entities_by_name ON entities (kind, name, project);
CREATE INDEX entities_by_package ON entities ((properties ->> 'package'), kind)
    WHERE properties ? 'package';
CREATE INDEX entities_by_path ON entities (project, (properties ->> 'path'))
    WHERE kind IN ('CodeFile', 'Function');
CREATE INDEX entities_by_url ON entities ((md5(properties ->> 'source_url')))
    WHERE properties ? 'source_url';

CREATE TABLE stated_entities (
    entity_id    uuid NOT NULL REFERENCES entities ON DELETE CASCADE,
    statement_id bigint NOT NULL REFERENCES graph_statements ON DELETE CASCADE,
    PRIMARY KEY (entity_id, statement_id)
);

CREATE INDEX stated_entities_by_statement ON stated_entities (statement_id);

CREATE TABLE relations (
    id           uuid PRIMARY KEY,
    kind         text NOT NULL,
    start_id     uuid NOT NULL REFERENCES entities ON DELETE CASCADE,
    end_id       uuid NOT NULL REFERENCES entities ON DELETE CASCADE,
    statement_id bigint NOT NULL REFERENCES graph_statements ON DELETE CASCADE,
    properties   jsonb NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX relations_by_start ON relations (start_id, kind);
CREATE INDEX relations_by_end ON relations (end_id, kind);
CREATE INDEX relations_by_statement ON relations (statement_id);
