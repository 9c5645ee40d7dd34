-- name: web_page
-- The page that has this address or this other address, with what is stored of it, and which
-- content of it a project last read.
SELECT p.id, p.collection_id, p.url, p.document_id, p.etag, p.last_modified, p.tokens,
       p.fetched_at, p.verified_at, p.expires_at, p.error, p.project, p.deaths,
       d.title, d.content AS text, d.content_hash, d.needs_processing, r.content_hash AS read_hash
  FROM web_pages p LEFT JOIN crawled_documents d ON d.id = p.document_id
       LEFT JOIN web_reads r ON r.page_id = p.id AND r.project = %(project)s
 WHERE p.collection_id = %(collection)s
   AND (p.url = %(url)s OR p.id = (SELECT page_id FROM web_aliases
                                    WHERE collection_id = %(collection)s AND url = %(url)s))
 ORDER BY (p.document_id IS NOT NULL) DESC, (p.url = %(url)s) DESC
 LIMIT 1;

-- name: queue_fetch
-- The page's row, due now; a fetch that is under way or due sooner stays as it is.
INSERT INTO web_pages (collection_id, url, project, due_at)
VALUES (%(collection)s, %(url)s, %(project)s, now())
ON CONFLICT (collection_id, url) DO UPDATE
   SET due_at = coalesce(web_pages.due_at, now());

-- name: take_due_page
-- One page to fetch; it comes back when whoever took it does not finish. `suspect` are those that a
-- process died on.
UPDATE web_pages SET due_at = now() + make_interval(secs => %(seconds)s), failures = failures + 1
 WHERE id = (SELECT id FROM web_pages WHERE due_at <= now() AND (deaths > 0) = %(suspect)s
              ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, collection_id, url, project, failures;

-- name: due_pages
SELECT count(*) AS due, extract(epoch FROM min(due_at) - now())::float8 AS due_in
  FROM web_pages WHERE due_at IS NOT NULL;

-- name: page_reading
UPDATE web_pages SET deaths = deaths + 1 WHERE id = %(page)s;

-- name: page_survived
UPDATE web_pages SET deaths = 0 WHERE id = %(page)s;

-- name: page_stored
INSERT INTO web_pages (collection_id, url, document_id, etag, last_modified, tokens, fetched_at,
                       verified_at, expires_at, project)
VALUES (%(collection)s, %(url)s, %(document)s, %(etag)s, %(last_modified)s, %(tokens)s,
        %(now)s, %(now)s, %(expires_at)s, %(project)s)
ON CONFLICT (collection_id, url) DO UPDATE
   SET document_id = excluded.document_id, etag = excluded.etag,
       last_modified = excluded.last_modified, tokens = excluded.tokens,
       fetched_at = excluded.fetched_at, verified_at = excluded.verified_at,
       expires_at = excluded.expires_at, error = NULL, failures = 0, deaths = 0, due_at = NULL
RETURNING id;

-- name: page_alias
INSERT INTO web_aliases (collection_id, url, page_id)
VALUES (%(collection)s, %(url)s, %(page)s)
ON CONFLICT (collection_id, url) DO UPDATE SET page_id = excluded.page_id;

-- name: drop_moved_page
-- An address that leads elsewhere has no page of its own.
WITH moved AS (
    DELETE FROM web_pages WHERE collection_id = %(collection)s AND url = %(url)s
    RETURNING document_id
)
DELETE FROM crawled_documents
 WHERE id IN (SELECT document_id FROM moved) AND collection_id = %(collection)s;

-- name: page_verified
UPDATE web_pages
   SET verified_at = %(now)s, expires_at = %(expires_at)s, error = NULL, failures = 0,
       due_at = NULL
 WHERE id = %(page)s;

-- name: page_failed
-- What is stored stays; the next try is at `due_at`, or never where that is null.
UPDATE web_pages
   SET error = %(error)s, tried_at = now(),
       due_at = now() + make_interval(secs => %(seconds)s::float8)
 WHERE id = %(page)s;

-- name: page_put_off
-- Taking it counted a try that was not made.
UPDATE web_pages
   SET due_at = now() + make_interval(secs => %(seconds)s), failures = greatest(failures - 1, 0)
 WHERE id = %(page)s;

-- name: host_busy
INSERT INTO web_hosts (host, busy_until)
VALUES (%(host)s, now() + make_interval(secs => %(seconds)s))
ON CONFLICT (host) DO UPDATE SET busy_until = greatest(web_hosts.busy_until, excluded.busy_until);

-- name: busy_seconds
SELECT extract(epoch FROM busy_until - now())::float8 AS seconds
  FROM web_hosts WHERE host = %(host)s;

-- name: pages_to_refresh
SELECT p.id, p.collection_id, p.url, p.project
  FROM web_pages p
 WHERE p.document_id IS NOT NULL
   AND greatest(p.verified_at, p.tried_at) < now() - make_interval(secs => %(seconds)s)
 ORDER BY p.verified_at;

-- name: page_chunks
SELECT id, content AS text, heading_path, chunk_index AS ordinal
  FROM document_chunks WHERE document_id = %(document)s ORDER BY chunk_index;

-- name: store_digest
INSERT INTO web_digests (collection_id, url, prompt, result, derived, project)
VALUES (%(collection)s, %(url)s, %(prompt)s, %(result)s, %(derived)s, %(project)s)
ON CONFLICT (collection_id, md5(url), md5(prompt)) DO UPDATE
   SET result = excluded.result, derived = excluded.derived, project = excluded.project,
       fetched_at = now();

-- name: store_web_source
INSERT INTO web_sources (collection_id, query, url, title, snippet, project)
VALUES (%(collection)s, %(query)s, %(url)s, %(title)s, %(snippet)s, %(project)s)
ON CONFLICT (collection_id, md5(url), md5(query)) DO UPDATE
   SET title = excluded.title, snippet = excluded.snippet, found_at = now();

-- name: last_read
SELECT paragraphs, read_at FROM web_reads
 WHERE page_id = %(page)s AND project = %(project)s;

-- name: note_read
INSERT INTO web_reads (page_id, project, content_hash, paragraphs)
VALUES (%(page)s, %(project)s, %(content_hash)s, %(paragraphs)s)
ON CONFLICT (page_id, project) DO UPDATE
   SET content_hash = excluded.content_hash, paragraphs = excluded.paragraphs, read_at = now();

-- name: note_event
INSERT INTO cache_events (kind, outcome, url, project, tokens_served, tokens_native, latency_ms,
                          detail)
VALUES (%(kind)s, %(outcome)s, %(url)s, %(project)s, %(tokens_served)s, %(tokens_native)s,
        %(latency_ms)s, %(detail)s);

-- name: event_totals
-- What became of the checks, reads, refreshes and searches of a period. A first check of an address
-- is warm-up: nothing can be there yet.
WITH seen AS (
    SELECT *, row_number() OVER (PARTITION BY kind, url ORDER BY at, id) > 1 AS warm
      FROM cache_events
)
SELECT kind, outcome, warm, count(*) AS events,
       coalesce(sum(tokens_native - tokens_served), 0)::bigint AS saved
  FROM seen WHERE at >= %(since)s AND at < %(until)s
 GROUP BY kind, outcome, warm ORDER BY kind, outcome, warm;

-- name: event_latency
SELECT kind, percentile_cont(0.5) WITHIN GROUP (ORDER BY latency_ms) AS p50,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY latency_ms) AS p95
  FROM cache_events WHERE at >= %(since)s AND at < %(until)s
 GROUP BY kind;

-- name: event_buckets
-- The checks of a period in equal steps of time.
SELECT width_bucket(extract(epoch FROM at)::float8, %(from)s::float8, %(to)s::float8,
                    %(steps)s) AS step,
       count(*) AS checks,
       count(*) FILTER (WHERE outcome IN ('hit', 'verified', 'changed', 'stale')) AS hits,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY latency_ms) AS p95
  FROM cache_events
 WHERE kind = 'check' AND outcome <> 'pass' AND at >= %(since)s AND at < %(until)s
 GROUP BY step ORDER BY step;

-- name: cache_state
SELECT (SELECT count(*) FROM crawled_documents) AS documents,
       (SELECT count(*) FROM crawled_documents WHERE NOT needs_processing) AS searchable,
       (SELECT count(*) FROM processing_queue WHERE status IN ('pending', 'processing')) AS queued,
       (SELECT count(*) FROM web_pages WHERE document_id IS NOT NULL) AS pages,
       (SELECT count(*) - count(DISTINCT (collection_id, content_hash, coalesce(url, file_path)))
          FROM crawled_documents) AS doubles,
       (SELECT min(at) FROM cache_events) AS first_event;

-- name: collection_name_of
SELECT name FROM collections WHERE id = %(collection)s;
