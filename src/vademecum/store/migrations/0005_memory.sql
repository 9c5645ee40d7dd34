-- The memory of each user. What is written here has passed the privacy gate.

CREATE TABLE users (
    id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    email_hash   varchar(64) NOT NULL UNIQUE,
    forgotten_at timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON COLUMN users.email_hash IS 'SHA-256, or HMAC with the installation''s key, of the lower-cased part before the @.';
COMMENT ON COLUMN users.forgotten_at IS 'Being removed: no longer there for readers.';

-- One row a user and project; the general memory is project ''.
CREATE TABLE memory (
    id         uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    project    text        NOT NULL DEFAULT '',
    content    text        NOT NULL DEFAULT '',
    facts      jsonb       NOT NULL DEFAULT '{}',
    version    integer     NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT unique_user_memory UNIQUE (user_id, project)
);

CREATE TABLE memory_versions (
    user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    project    text        NOT NULL,
    version    integer     NOT NULL,
    content    text        NOT NULL,
    facts      jsonb       NOT NULL,
    reason     text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, project, version)
);

-- Each exchange once. No content.
CREATE TABLE interactions (
    user_id       uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    exchange_hash text        NOT NULL,
    project       text        NOT NULL,
    agent         text        NOT NULL,
    outcome       text        NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, exchange_hash)
);
COMMENT ON COLUMN interactions.exchange_hash IS 'SHA-256 of the user and the id, since ids of messages hold addresses.';

-- The subject is kept only while the removal is incomplete, so that it can be resumed.
CREATE TABLE forget_receipts (
    id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    subject      text,
    user_id      uuid,
    removed      jsonb       NOT NULL DEFAULT '{}',
    probe_hash   text,
    started_at   timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz,
    CHECK (completed_at IS NULL OR (subject IS NULL AND user_id IS NULL))
);

-- Rows of one user only, for each transaction that names its user.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['memory', 'memory_versions', 'interactions'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_rows ON %I USING (user_id = '
                       'nullif(current_setting(''vade.user'', true), '''')::uuid)', name);
    END LOOP;
    -- A superuser passes by all policies, so it takes on this role for the memory.
    BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'vademecum_memory') THEN
            CREATE ROLE vademecum_memory NOLOGIN NOBYPASSRLS;
        END IF;
        EXECUTE format('GRANT vademecum_memory TO %I', current_user);
        GRANT SELECT, INSERT, UPDATE, DELETE ON memory, memory_versions, interactions
           TO vademecum_memory;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO vademecum_memory', current_schema());
    EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation OR internal_error THEN
        NULL;  -- without rights to make roles the owner is bound by the policies itself
    END;
END $$;
