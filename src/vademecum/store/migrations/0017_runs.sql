-- Ingestion runs: each bringing up to date of a collection, with what it counted and how it ended.
CREATE TABLE ingestion_runs (
    id               integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id    integer     NOT NULL REFERENCES collections (id) ON DELETE CASCADE,
    folder           text,
    machine          text,
    mode             text        NOT NULL CHECK (mode IN ('incremental', 'full', 'recreate')),
    state            text        NOT NULL DEFAULT 'queued'
                     CHECK (state IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    stored           boolean     NOT NULL DEFAULT false,
    cancel_asked     boolean     NOT NULL DEFAULT false,
    files_total      integer     NOT NULL DEFAULT 0,
    files_stored     integer     NOT NULL DEFAULT 0,
    files_skipped    integer     NOT NULL DEFAULT 0,
    files_left       integer     NOT NULL DEFAULT 0,
    files_deleted    integer     NOT NULL DEFAULT 0,
    chunks_created   integer     NOT NULL DEFAULT 0 CHECK (chunks_created >= 0),
    chunks_deleted   integer     NOT NULL DEFAULT 0 CHECK (chunks_deleted >= 0),
    error            text,
    holder           text,
    leased_until     timestamptz,
    created_at       timestamptz NOT NULL DEFAULT now(),
    started_at       timestamptz,
    taken_at         timestamptz,
    completed_at     timestamptz,
    seconds          double precision NOT NULL DEFAULT 0,

    CONSTRAINT ended CHECK ((state IN ('queued', 'running')) = (completed_at IS NULL)),
    CONSTRAINT held CHECK (state <> 'running' OR (holder IS NOT NULL AND leased_until IS NOT NULL))
);
COMMENT ON COLUMN ingestion_runs.folder IS 'What it reads; null makes the chunks of stored documents again.';
COMMENT ON COLUMN ingestion_runs.machine IS 'The host that the folder is on.';
COMMENT ON COLUMN ingestion_runs.stored IS 'Whether the folder was read to its end: what is left are jobs.';
COMMENT ON COLUMN ingestion_runs.files_stored IS 'New or changed, and so each with a job.';
COMMENT ON COLUMN ingestion_runs.files_left IS 'Stored and not searchable when the run ended.';
COMMENT ON COLUMN ingestion_runs.holder IS 'The process that works on it; once its lease ran out the run has failed.';
COMMENT ON COLUMN ingestion_runs.seconds IS 'Of the times it ran before it was resumed.';

CREATE INDEX ingestion_runs_collection ON ingestion_runs (collection_id, id);
CREATE INDEX ingestion_runs_open ON ingestion_runs (id) WHERE completed_at IS NULL;

-- The sources that a run could not take, by name and with the reason.
CREATE TABLE run_failures (
    run_id integer NOT NULL REFERENCES ingestion_runs (id) ON DELETE CASCADE,
    path   text    NOT NULL,
    error  text    NOT NULL,
    stage  text    NOT NULL CHECK (stage IN ('read', 'index'))
);
CREATE UNIQUE INDEX run_failures_once ON run_failures (run_id, md5(path));

-- A job belongs to the newest run that wants it; a cancelled run's waiting jobs are held.
ALTER TABLE processing_queue
    ADD COLUMN run_id integer REFERENCES ingestion_runs (id) ON DELETE SET NULL,
    DROP CONSTRAINT processing_queue_status_check,
    ADD CONSTRAINT processing_queue_status_check
        CHECK (status IN ('pending', 'processing', 'done', 'failed', 'held'));
CREATE INDEX processing_queue_run ON processing_queue (run_id) WHERE run_id IS NOT NULL;

ALTER TABLE crawled_documents ADD COLUMN run_id integer;
COMMENT ON COLUMN crawled_documents.run_id IS 'The last run that stored it; so a resumed one knows what it has done.';
