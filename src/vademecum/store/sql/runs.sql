-- name: begin_run
-- A run that is held from its first moment; asked again after an answer was lost, the same one.
WITH made AS (
    INSERT INTO ingestion_runs (collection_id, folder, machine, mode, state, holder, leased_until,
                                started_at, taken_at)
    SELECT %(collection)s, %(folder)s, %(machine)s, %(mode)s, 'running', %(holder)s,
           now() + make_interval(secs => %(seconds)s), now(), now()
     WHERE NOT EXISTS (SELECT FROM ingestion_runs
                        WHERE completed_at IS NULL AND holder = %(holder)s)
    RETURNING id
)
SELECT id FROM made
UNION ALL
SELECT id FROM ingestion_runs WHERE completed_at IS NULL AND holder = %(holder)s
LIMIT 1;

-- name: queue_run
INSERT INTO ingestion_runs (collection_id, folder, machine, mode)
VALUES (%(collection)s, %(folder)s, %(machine)s, %(mode)s)
RETURNING id;

-- name: next_queued_run
-- The longest waiting run that this machine can do.
SELECT id FROM ingestion_runs
 WHERE completed_at IS NULL AND state = 'queued' AND NOT (stored AND holder IS NOT NULL)
   AND (folder IS NULL OR stored OR machine = %(machine)s)
 ORDER BY id
 LIMIT 1
   FOR UPDATE SKIP LOCKED;

-- name: take_run
UPDATE ingestion_runs
   SET state = 'running', holder = %(holder)s,
       leased_until = now() + make_interval(secs => %(seconds)s),
       started_at = coalesce(started_at, now()), taken_at = now(), completed_at = NULL,
       error = NULL, cancel_asked = false, files_left = 0
 WHERE id = %(run)s AND state = ANY (%(states)s)
RETURNING id;

-- name: requeue_run
UPDATE ingestion_runs
   SET state = 'queued', holder = NULL, leased_until = NULL, completed_at = NULL, error = NULL,
       cancel_asked = false, files_left = 0
 WHERE id = %(run)s AND state IN ('failed', 'cancelled')
RETURNING id;

-- name: beat_run
-- We are alive; and whether we are to stop.
UPDATE ingestion_runs SET leased_until = now() + make_interval(secs => %(seconds)s)
 WHERE id = %(run)s AND holder = %(holder)s AND state = 'running'
RETURNING cancel_asked;

-- name: note_run_files
UPDATE ingestion_runs
   SET files_total = %(total)s, files_stored = %(stored)s, files_skipped = %(skipped)s
 WHERE id = %(run)s;

-- name: forget_read_failures
DELETE FROM run_failures WHERE run_id = %(run)s AND stage = 'read';

-- name: note_run_failures
INSERT INTO run_failures (run_id, path, error, stage)
SELECT %(run)s, path, error, 'read' FROM unnest(%(paths)s::text[], %(errors)s::text[]) AS f (path, error)
ON CONFLICT DO NOTHING;

-- name: run_deletes
-- What goes with documents that are about to be deleted; and that all of the folder was read.
UPDATE ingestion_runs
   SET stored = true,
       files_deleted = files_deleted
           + (SELECT count(*) FROM crawled_documents WHERE id = ANY (%(documents)s)),
       chunks_deleted = chunks_deleted
           + (SELECT count(*) FROM document_chunks WHERE document_id = ANY (%(documents)s))
 WHERE id = %(run)s;

-- name: count_run_chunks
UPDATE ingestion_runs
   SET chunks_created = chunks_created + %(created)s, chunks_deleted = chunks_deleted + %(deleted)s
 WHERE id = %(run)s;

-- name: hand_over_run
-- All is stored; its jobs are left to whoever works off the queue.
UPDATE ingestion_runs
   SET state = 'queued', leased_until = NULL, taken_at = NULL,
       seconds = seconds + extract(epoch FROM now() - taken_at)::float8
 WHERE id = %(run)s AND holder = %(holder)s AND state = 'running';

-- name: put_back_run
-- Its process is stopped; the next one goes on with it.
UPDATE ingestion_runs
   SET state = 'queued', holder = NULL, leased_until = NULL, taken_at = NULL,
       seconds = seconds + extract(epoch FROM now() - taken_at)::float8
 WHERE id = %(run)s AND holder = %(holder)s AND state = 'running';

-- name: end_run
UPDATE ingestion_runs r
   SET state = %(state)s, error = %(error)s, completed_at = now(), leased_until = NULL,
       taken_at = NULL, cancel_asked = false,
       seconds = seconds + extract(epoch FROM now() - taken_at)::float8,
       files_left = (SELECT count(*) FROM processing_queue q
                      WHERE q.run_id = r.id AND q.status IN ('pending', 'processing', 'held'))
 WHERE id = %(run)s AND holder = %(holder)s AND state = 'running';

-- name: run_holders
SELECT DISTINCT holder FROM ingestion_runs WHERE completed_at IS NULL AND state = 'running';

-- name: end_lost_runs
-- Runs whose process died or was not heard of have failed; those handed over whose jobs are all
-- done are complete.
UPDATE ingestion_runs r
   SET state = CASE WHEN state = 'running' THEN 'failed' ELSE 'completed' END,
       error = CASE WHEN state = 'running' THEN 'the process that worked on it died' END,
       completed_at = now(), cancel_asked = false,
       seconds = seconds + coalesce(extract(epoch FROM leased_until
                     - make_interval(secs => %(seconds)s) - taken_at)::float8, 0),
       leased_until = NULL, taken_at = NULL,
       files_left = (SELECT count(*) FROM processing_queue q
                      WHERE q.run_id = r.id AND q.status IN ('pending', 'processing', 'held'))
 WHERE id IN (
    SELECT id FROM ingestion_runs o
     WHERE o.completed_at IS NULL
       AND (o.state = 'running' AND (o.leased_until < now() OR o.holder = ANY (%(dead)s))
            OR o.state = 'queued' AND o.stored AND o.holder IS NOT NULL
               AND NOT EXISTS (SELECT FROM processing_queue q
                                WHERE q.run_id = o.id AND q.status IN ('pending', 'processing')))
       FOR UPDATE SKIP LOCKED);

-- name: ask_cancel
-- One that runs is told to stop; one that waits is cancelled at once.
UPDATE ingestion_runs r
   SET cancel_asked = (state = 'running'),
       state = CASE WHEN state = 'running' THEN 'running' ELSE 'cancelled' END,
       completed_at = CASE WHEN state = 'running' THEN NULL ELSE now() END,
       files_left = CASE WHEN state = 'running' THEN 0 ELSE
                    (SELECT count(*) FROM processing_queue q
                      WHERE q.run_id = r.id AND q.status IN ('pending', 'processing', 'held')) END
 WHERE id = %(run)s AND state IN ('queued', 'running')
RETURNING state;

-- name: runs
-- Runs, newest first. Processed is what was stored, less what failed and what still waits.
SELECT r.id, c.name AS collection, r.folder, r.mode, r.state, r.stored, r.files_total,
       -- What is stored is noted now and then, and may wait already.
       greatest(r.files_stored - f.later - w.waiting, 0)::integer AS files_processed,
       r.files_skipped, f.failed::integer AS files_failed, w.waiting::integer AS files_pending,
       r.files_deleted, r.chunks_created, r.chunks_deleted, r.error, r.cancel_asked,
       r.created_at, r.started_at, r.completed_at,
       CASE WHEN r.started_at IS NOT NULL THEN
            r.seconds + coalesce(extract(epoch FROM now() - r.taken_at)::float8, 0) END
            AS duration_seconds
  FROM ingestion_runs r
  JOIN collections c ON c.id = r.collection_id
 CROSS JOIN LATERAL (SELECT count(*) AS failed, count(*) FILTER (WHERE stage = 'index') AS later
                       FROM run_failures WHERE run_id = r.id) f
 CROSS JOIN LATERAL (SELECT CASE WHEN r.completed_at IS NOT NULL THEN r.files_left
                            ELSE (SELECT count(*) FROM processing_queue q WHERE q.run_id = r.id
                                     AND q.status IN ('pending', 'processing', 'held')) END
                            AS waiting) w
 WHERE (%(run)s::integer IS NULL OR r.id = %(run)s)
   AND (%(collection)s::integer IS NULL OR r.collection_id = %(collection)s)
   AND (%(visible)s::text[] IS NULL OR c.name = ANY (%(visible)s))
 ORDER BY r.id DESC
 LIMIT %(limit)s;

-- name: run_failures
SELECT path, error FROM run_failures WHERE run_id = %(run)s ORDER BY path LIMIT %(limit)s;
