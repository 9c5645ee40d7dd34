-- name: enqueue_jobs
-- A job for each document; one that already waits stays as it is, and is due now. A failed one is
-- forgotten: there is new work to try.
WITH forgotten AS (
    DELETE FROM processing_queue
     WHERE document_id = ANY (%(documents)s) AND status IN ('failed', 'done', 'held')
), stored AS (
    UPDATE crawled_documents SET run_id = %(run)s
     WHERE id = ANY (%(documents)s) AND run_id IS DISTINCT FROM coalesce(%(run)s, run_id)
)
INSERT INTO processing_queue AS q (document_id, collection_id, priority, run_id)
SELECT id, collection_id, %(priority)s, %(run)s FROM crawled_documents WHERE id = ANY (%(documents)s)
ON CONFLICT (document_id, operation) WHERE status = 'pending'
DO UPDATE SET available_at = now(), failures = 0, attempts = 0, error_message = NULL,
              run_id = coalesce(excluded.run_id, q.run_id);

-- name: lock_waiting_job
-- Until the transaction ends no worker leases it; one that is leasing it just now is waited for.
SELECT id FROM processing_queue
 WHERE document_id = %(document)s AND status = 'pending' FOR UPDATE;

-- name: lease_jobs
-- The next jobs, now ours until the lease runs out. Where workers have died on a job, it is taken
-- with ever fewer others and in the end alone, so that it cannot take them with it.
WITH due AS (
    SELECT id, priority, attempts - failures AS deaths
      FROM processing_queue
     WHERE status = 'pending' AND available_at <= now()
       AND (%(collection)s::integer IS NULL OR collection_id = %(collection)s)
), next AS (
    SELECT id FROM processing_queue
     WHERE status = 'pending' AND available_at <= now()
       AND (%(collection)s::integer IS NULL OR collection_id = %(collection)s)
     ORDER BY priority DESC, id
     LIMIT (SELECT greatest(1, %(limit)s::integer >> least(deaths, 20))
              FROM due ORDER BY priority DESC, id LIMIT 1)
       FOR UPDATE SKIP LOCKED
)
UPDATE processing_queue q
   SET status = 'processing', attempts = q.attempts + 1, worker = %(worker)s, started_at = now(),
       leased_until = now() + make_interval(secs => %(seconds)s)
  FROM next
 WHERE q.id = next.id
RETURNING q.id, q.document_id, q.attempts, q.failures, q.run_id;

-- name: extend_lease
UPDATE processing_queue
   SET leased_until = now() + make_interval(secs => %(seconds)s)
 WHERE id = ANY (%(ids)s) AND status = 'processing' AND worker = %(worker)s;

-- name: leased_workers
SELECT DISTINCT worker FROM processing_queue WHERE status = 'processing' AND worker IS NOT NULL;

-- name: return_lost_jobs
-- Jobs whose lease ran out, or whose worker is dead or does not know of them, wait again; a document
-- that too many workers died on has failed. Where a newer job of the document waits, that one is
-- enough.
WITH lost AS (
    SELECT id, document_id, operation, attempts - failures AS deaths
      FROM processing_queue
     WHERE status = 'processing'
       AND (leased_until < now() OR worker = ANY (%(dead)s)
            OR worker = %(worker)s AND id <> ALL (%(held)s::integer[]))
       FOR UPDATE SKIP LOCKED
), superseded AS (
    DELETE FROM processing_queue q USING lost l
     WHERE q.id = l.id
       AND (EXISTS (SELECT FROM processing_queue n WHERE n.document_id = l.document_id
                       AND n.operation = l.operation AND n.status = 'pending')
            OR EXISTS (SELECT FROM lost m WHERE m.document_id = l.document_id
                          AND m.operation = l.operation AND m.id > l.id))
    RETURNING q.id
), returned AS (
    UPDATE processing_queue q
       SET status = CASE WHEN l.deaths >= %(max_deaths)s THEN 'failed' ELSE 'pending' END,
           error_message = CASE WHEN l.deaths >= %(max_deaths)s
                                THEN format('%%s workers died while processing it', l.deaths) END,
           worker = NULL, leased_until = NULL
      FROM lost l
     WHERE q.id = l.id AND q.id NOT IN (SELECT id FROM superseded)
    RETURNING q.document_id, q.run_id, q.status, q.error_message
), told AS (
    INSERT INTO run_failures (run_id, path, error, stage)
    SELECT r.run_id, d.path, r.error_message, 'index'
      FROM returned r JOIN crawled_documents d ON d.id = r.document_id
     WHERE r.status = 'failed' AND r.run_id IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT count(*) FROM returned;

-- name: drop_superseded_jobs
-- Before jobs wait again: where a newer job of the document waits, that one is enough.
DELETE FROM processing_queue q
 WHERE (%(ids)s::integer[] IS NULL OR q.id = ANY (%(ids)s))
   AND q.status = 'processing' AND q.worker = %(worker)s
   AND EXISTS (SELECT FROM processing_queue n WHERE n.document_id = q.document_id
                  AND n.operation = q.operation
                  AND (n.status = 'pending'
                       -- A document that is stored again while a worker has it may be leased twice.
                       OR n.status = 'processing' AND n.worker = %(worker)s AND n.id > q.id
                          AND (%(ids)s::integer[] IS NULL OR n.id = ANY (%(ids)s))));

-- name: give_back_jobs
-- What a worker has not done and will not do now; it counts as no attempt.
UPDATE processing_queue
   SET status = 'pending', attempts = attempts - 1, worker = NULL, leased_until = NULL
 WHERE (%(ids)s::integer[] IS NULL OR id = ANY (%(ids)s))
   AND status = 'processing' AND worker = %(worker)s;

-- name: complete_jobs
UPDATE processing_queue
   SET status = 'done', completed_at = now(), leased_until = NULL, error_message = NULL
 WHERE id = ANY (%(ids)s) AND status = 'processing' AND worker = %(worker)s;

-- name: fail_jobs
-- Later again, each time twice as long; after the last attempt it has failed.
WITH put_off AS (
    UPDATE processing_queue
       SET failures = failures + 1, error_message = %(error)s, worker = NULL, leased_until = NULL,
           status = CASE WHEN failures + 1 >= %(max_failures)s THEN 'failed' ELSE 'pending' END,
           completed_at = CASE WHEN failures + 1 >= %(max_failures)s THEN now() END,
           available_at = now() + make_interval(secs => %(back_off)s * 2 ^ failures)
     WHERE id = ANY (%(ids)s) AND status = 'processing' AND worker = %(worker)s
    RETURNING document_id, run_id, status
)
INSERT INTO run_failures (run_id, path, error, stage)
SELECT p.run_id, d.path, %(error)s, 'index'
  FROM put_off p JOIN crawled_documents d ON d.id = p.document_id
 WHERE p.status = 'failed' AND p.run_id IS NOT NULL
ON CONFLICT DO NOTHING;

-- name: hold_jobs
-- What a cancelled run leaves in the queue waits until it is resumed, or another run wants it.
UPDATE processing_queue SET status = 'held' WHERE run_id = %(run)s AND status = 'pending';

-- name: release_jobs
-- What a run left, and what failed in it, is to be tried again.
WITH forgotten AS (
    DELETE FROM run_failures WHERE run_id = %(run)s AND stage = 'index'
), superseded AS (
    DELETE FROM processing_queue q
     WHERE q.run_id = %(run)s AND q.status IN ('held', 'failed')
       AND EXISTS (SELECT FROM processing_queue n WHERE n.document_id = q.document_id
                      AND n.operation = q.operation AND n.status = 'pending')
    RETURNING q.id
)
UPDATE processing_queue
   SET status = 'pending', available_at = now(), failures = 0, attempts = 0, error_message = NULL
 WHERE run_id = %(run)s AND status IN ('held', 'failed')
   AND id NOT IN (SELECT id FROM superseded);

-- name: open_jobs
-- What is left to do: waiting, in work, and failed; and when the next one is due.
SELECT count(*) FILTER (WHERE status = 'pending') AS pending,
       count(*) FILTER (WHERE status = 'processing') AS processing,
       count(*) FILTER (WHERE status = 'failed') AS failed,
       extract(epoch FROM min(available_at) FILTER (WHERE status = 'pending') - now())::float8
           AS due_in
  FROM processing_queue
 WHERE status <> 'done'
   AND (%(collection)s::integer IS NULL OR collection_id = %(collection)s);

-- name: failed_jobs
-- Documents that were given up, and pages that nobody survived reading.
SELECT d.path, j.error_message AS error
  FROM processing_queue j JOIN crawled_documents d ON d.id = j.document_id
 WHERE j.status = 'failed' AND (%(collection)s::integer IS NULL OR j.collection_id = %(collection)s)
 UNION
SELECT url, error FROM web_pages
 WHERE deaths >= %(max_deaths)s AND due_at IS NULL AND error IS NOT NULL
   AND (%(collection)s::integer IS NULL OR collection_id = %(collection)s)
 ORDER BY path;

-- name: given_up
SELECT document_id FROM processing_queue WHERE run_id = %(run)s AND status = 'failed';

-- name: forget_done_jobs
DELETE FROM processing_queue
 WHERE status = 'done' AND completed_at < now() - interval '7 days';

-- name: waiting_bytes
-- How much text waits to be embedded, by embedder.
SELECT coalesce(c.next_embedder, c.embedder), sum(octet_length(d.content))::bigint
  FROM processing_queue j
  JOIN crawled_documents d ON d.id = j.document_id
  JOIN collections c ON c.id = j.collection_id
 WHERE j.status IN ('pending', 'processing')
   AND (%(collection)s::integer IS NULL OR j.collection_id = %(collection)s)
 GROUP BY 1;
