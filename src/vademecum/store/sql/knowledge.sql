-- name: note_documents
-- What the score of a document depends on, as it is stated.
INSERT INTO knowledge_scores AS k (entity_id, kind, source, category, language, last_updated)
SELECT * FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(sources)s::text[],
                     %(categories)s::text[], %(languages)s::text[],
                     %(last_updated)s::timestamptz[]) ORDER BY 1
ON CONFLICT (entity_id) DO UPDATE
   SET source = excluded.source, category = excluded.category, language = excluded.language,
       last_updated = excluded.last_updated
 WHERE (k.source, k.category, k.language, k.last_updated)
       IS DISTINCT FROM (excluded.source, excluded.category, excluded.language, excluded.last_updated);

-- name: hold_scores
SELECT entity_id, kind, source, category, language, last_updated, access_count, last_accessed,
       successes, failures, misled
  FROM knowledge_scores WHERE entity_id = ANY (%(ids)s::uuid[]) ORDER BY entity_id FOR UPDATE;

-- name: scores_after
SELECT entity_id, kind, source, category, language, last_updated, access_count, last_accessed,
       successes, failures, misled
  FROM knowledge_scores WHERE entity_id > %(after)s ORDER BY entity_id LIMIT %(limit)s FOR UPDATE;

-- name: write_scores
UPDATE knowledge_scores AS k
   SET credibility = n.credibility, freshness = n.freshness, usage = n.usage,
       helpfulness = n.helpfulness, relevance = n.relevance, scored_at = %(now)s
  FROM unnest(%(ids)s::uuid[], %(credibility)s::float8[], %(freshness)s::float8[],
              %(usage)s::float8[], %(helpfulness)s::float8[], %(relevance)s::float8[])
       AS n (id, credibility, freshness, usage, helpfulness, relevance)
 WHERE k.entity_id = n.id
   AND (k.credibility, k.freshness, k.usage, k.helpfulness, k.relevance)
       IS DISTINCT FROM (n.credibility, n.freshness, n.usage, n.helpfulness, n.relevance);

-- name: count_use
UPDATE knowledge_scores
   SET access_count = access_count + %(uses)s, successes = successes + %(successes)s,
       failures = failures + %(failures)s, misled = misled + %(misled)s,
       last_accessed = greatest(last_accessed, %(now)s)
 WHERE entity_id = %(id)s;

-- name: usage_outcome
SELECT properties ->> 'outcome' FROM entities WHERE id = %(id)s;

-- name: lock_top
SELECT pg_advisory_xact_lock(hashtextextended('vade top ' || %(category)s || ' ' || %(language)s, 0));

-- name: clear_top
DELETE FROM top_documents WHERE category = %(category)s AND language = %(language)s;

-- name: make_top
INSERT INTO top_documents (category, language, place, entity_id, relevance)
SELECT category, language, row_number() OVER (ORDER BY relevance DESC, entity_id), entity_id, relevance
  FROM (SELECT category, language, entity_id, relevance FROM knowledge_scores
         WHERE kind = 'ExternalDoc' AND category = %(category)s AND language = %(language)s
         ORDER BY relevance DESC, entity_id LIMIT %(limit)s) AS best;

-- name: top_groups
-- Every category and language of a document, and those whose list has lost its documents.
SELECT DISTINCT category, language FROM knowledge_scores WHERE kind = 'ExternalDoc'
UNION SELECT category, language FROM top_documents
 ORDER BY 1, 2;

-- name: scores_of
SELECT entity_id, source, last_updated, access_count, last_accessed, successes, failures, misled
  FROM knowledge_scores WHERE entity_id = ANY (%(ids)s::uuid[]);

-- name: changelogs
-- Of every package, what registries gave of how it changed; the newest version first.
SELECT k.entity_id AS id, e.properties ->> 'ecosystem' AS ecosystem,
       e.properties ->> 'package' AS package, e.name AS title,
       e.properties ->> 'source_url' AS url, e.properties ->> 'content_hash' AS digest
  FROM knowledge_scores k JOIN entities e ON e.id = k.entity_id
 WHERE k.kind = 'ExternalDoc' AND k.category = 'guide' AND k.source IN ('pypi', 'npm')
   AND e.properties ? 'package'
 ORDER BY package, (e.properties ->> 'version_order') COLLATE "C" DESC NULLS LAST, title;

-- name: note_change
INSERT INTO knowledge_changes (entity_id, name, change, detail)
VALUES (%(id)s, %(name)s, %(change)s, %(detail)s);

-- name: knowledge_changes
SELECT entity_id, name, change, detail, changed_at FROM knowledge_changes
 WHERE (%(id)s::uuid IS NULL OR entity_id = %(id)s::uuid)
   AND (%(since)s::timestamptz IS NULL OR changed_at >= %(since)s::timestamptz)
 ORDER BY changed_at DESC, id DESC LIMIT %(limit)s;

-- name: stale_documents
-- Older than its source's tier allows; and used more than most, or lately; and not tried lately.
-- Only pages: what is read from the environment is read again there. What stands where another
-- version does by now cannot be had again.
SELECT k.entity_id
  FROM knowledge_scores k
  JOIN entities e ON e.id = k.entity_id AND e.properties ->> 'source_url' ~ '^https?://'
  LEFT JOIN unnest(%(sources)s::text[], %(befores)s::timestamptz[]) AS t (source, before)
    ON t.source = k.source
 WHERE k.kind = 'ExternalDoc' AND k.source <> 'environment'
   AND k.last_updated < coalesce(t.before, %(otherwise)s)
   AND (k.access_count > (SELECT percentile_cont(%(share)s) WITHIN GROUP (ORDER BY access_count)
                            FROM knowledge_scores WHERE kind = 'ExternalDoc')
        OR k.last_accessed > %(used_after)s)
   AND NOT EXISTS (SELECT FROM knowledge_changes c
                    WHERE c.entity_id = k.entity_id AND c.change = 'fetch_failed'
                      AND c.changed_at > %(failed_after)s)
   AND NOT EXISTS (SELECT FROM relations r JOIN entities n ON n.id = r.start_id
                    WHERE r.end_id = k.entity_id AND r.kind = 'SUPERSEDES'
                      AND n.properties ->> 'source_url' = e.properties ->> 'source_url')
 ORDER BY k.access_count DESC, k.entity_id LIMIT %(limit)s;

-- name: most_used
SELECT e.id::text, e.name, k.source, k.access_count, k.successes, k.misled, k.relevance
  FROM knowledge_scores k JOIN entities e ON e.id = k.entity_id
 WHERE k.access_count > 0 ORDER BY k.access_count DESC, k.relevance DESC, e.id LIMIT %(limit)s;

-- name: never_used
SELECT e.id::text, e.name, k.source, k.last_updated
  FROM knowledge_scores k JOIN entities e ON e.id = k.entity_id
 WHERE k.kind = 'ExternalDoc' AND k.access_count = 0 AND e.created_at < %(before)s
 ORDER BY e.created_at, e.id LIMIT %(limit)s;

-- name: knowledge_gaps
-- What code uses and no document explains; failures without a solution; documents that only misled.
SELECT gap, name, weight FROM (
    SELECT 'package without documents' AS gap, a.properties ->> 'package' AS name, count(*) AS weight
      FROM relations r JOIN entities a ON a.id = r.start_id
     WHERE r.kind = 'USED_IN' AND a.properties ? 'package'
       AND NOT EXISTS (SELECT FROM entities d WHERE d.kind = 'ExternalDoc' AND d.properties ? 'package'
                          AND d.properties ->> 'package' = a.properties ->> 'package')
     GROUP BY 2
    UNION ALL
    SELECT 'error without solution', e.name, 1
      FROM entities e WHERE e.kind = 'ErrorPattern'
       AND NOT EXISTS (SELECT FROM relations r WHERE r.end_id = e.id AND r.kind = 'SOLVES')
    UNION ALL
    SELECT 'misled, and nothing helped', e.name, k.misled
      FROM knowledge_scores k JOIN entities e ON e.id = k.entity_id
     WHERE k.misled > 0 AND k.successes = 0
) AS found
 ORDER BY weight DESC, gap, name LIMIT %(limit)s;

-- name: used_since
SELECT entity_id FROM knowledge_scores
 WHERE entity_id = ANY (%(ids)s::uuid[]) AND last_accessed >= %(since)s;

-- name: lock_turn
SELECT pg_advisory_xact_lock(hashtextextended('vade turn ' || %(task)s, 0));

-- name: take_turn
INSERT INTO knowledge_changes (entity_id, name, change, changed_at)
SELECT '00000000-0000-0000-0000-000000000000', 'graph', %(task)s, %(now)s
 WHERE NOT EXISTS (SELECT FROM knowledge_changes
                    WHERE entity_id = '00000000-0000-0000-0000-000000000000'
                      AND change = %(task)s AND changed_at > %(before)s)
RETURNING true;
