-- Notes: what is known about a project. A note that another one replaced stays, as history.

CREATE TABLE notes (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    project       text NOT NULL CHECK (project <> ''),
    kind          text NOT NULL,
    title         text NOT NULL,
    content       text NOT NULL,
    tags          text[] NOT NULL DEFAULT '{}',
    importance    smallint NOT NULL CHECK (importance BETWEEN 1 AND 10),
    evidence      text[] NOT NULL DEFAULT '{}',
    agent         text NOT NULL DEFAULT '',
    replaced_by   uuid REFERENCES notes ON DELETE SET NULL,
    replaced_why  text NOT NULL DEFAULT '',
    removed       boolean NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX notes_in_force ON notes (project, importance DESC, updated_at DESC)
    WHERE replaced_by IS NULL AND NOT removed;
CREATE INDEX notes_of_project ON notes (project, created_at);
