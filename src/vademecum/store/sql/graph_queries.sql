-- The named queries of the graph. Versions are compared by the texts stored beside them, byte by
-- byte. Each has its twin in projections/cypher, and one suite holds both to the same answers.

-- name: usable_apis
-- Of each API the node read from the nearest version, not above the one asked for where there is
-- one; those not yet there, deprecated or removed in it are left out.
SELECT id, name, read_from, signature, version_introduced, deprecated_in
  FROM (SELECT DISTINCT ON (name) id::text, name, p ->> 'version' AS read_from,
               p ->> 'signature' AS signature, p ->> 'version_introduced' AS version_introduced,
               p ->> 'deprecated_in' AS deprecated_in, p
          FROM (SELECT id, name, properties AS p,
                       coalesce((properties ->> 'version_order') COLLATE "C" <= %(order)s, true) AS below
                  FROM entities
                 WHERE kind = 'APIReference' AND project = ''
                   AND properties ? 'package' AND properties ->> 'package' = %(package)s
                   AND coalesce(properties ->> 'ecosystem', '') = %(ecosystem)s
                   AND (%(name)s::text IS NULL OR name = %(name)s)) AS known
         ORDER BY name, below DESC,
                  CASE WHEN below THEN coalesce(p ->> 'version_order', '') END COLLATE "C" DESC,
                  (p ->> 'version_order') COLLATE "C", id) AS nearest
 WHERE (NOT p ? 'version_introduced' OR (p ->> 'version_introduced_order') COLLATE "C" <= %(order)s)
   AND (NOT p ? 'deprecated_in' OR (p ->> 'deprecated_in_order') COLLATE "C" > %(order)s)
   AND (NOT p ? 'removed_in' OR (p ->> 'removed_in_order') COLLATE "C" > %(order)s)
 ORDER BY name COLLATE "C", id LIMIT %(limit)s;

-- name: language_apis
-- APIs known to work with this version of a language, or of its standard library, and in it by then.
SELECT DISTINCT id, name, package, version_introduced FROM (
    SELECT a.id::text, a.name COLLATE "C" AS name, a.properties ->> 'package' AS package,
           a.properties ->> 'version_introduced' AS version_introduced
      FROM entities l
      JOIN relations r ON r.end_id = l.id AND r.kind = 'COMPATIBLE_WITH'
      JOIN entities a ON a.id = r.start_id
     WHERE l.kind = 'Language' AND lower(l.name) = lower(%(language)s)
       AND (l.properties ->> 'version_order' = %(order)s
            OR a.properties ->> 'package' = lower(%(language)s)
               AND (a.properties ->> 'version_introduced_order') COLLATE "C" <= %(order)s)
       AND (a.properties ->> 'package' IS DISTINCT FROM lower(%(language)s)
            OR NOT a.properties ? 'deprecated_in'
            OR (a.properties ->> 'deprecated_in_order') COLLATE "C" > %(order)s)
) AS found
 ORDER BY name, id LIMIT %(limit)s;

-- name: framework_practices
-- Practices that hold for this version of a framework, the best supported first.
SELECT DISTINCT b.id::text, b.name, b.properties ->> 'domain' AS domain,
       coalesce((b.properties ->> 'confidence_score')::float8, 0) AS confidence
  FROM entities f
  JOIN relations r ON r.end_id = f.id AND r.kind = 'APPLIES_TO'
  JOIN entities b ON b.id = r.start_id
 WHERE f.kind = 'Framework' AND f.name = %(package)s
   AND f.properties ->> 'ecosystem' = %(ecosystem)s
   AND (NOT b.properties ? 'min_version'
        OR (b.properties ->> 'min_version_order') COLLATE "C" <= %(order)s)
   AND (NOT b.properties ? 'deprecated_in'
        OR (b.properties ->> 'deprecated_in_order') COLLATE "C" > %(order)s)
   AND NOT EXISTS (SELECT FROM relations d WHERE d.start_id = b.id AND d.kind = 'DEPRECATED_IN'
                      AND d.end_id = f.id
                      AND (d.properties ->> 'version_order') COLLATE "C" <= %(order)s)
 ORDER BY confidence DESC, id LIMIT %(limit)s;

-- name: deprecated_apis
-- What is deprecated or removed in a version of a package, what says so, and what replaces it.
SELECT id, name, status, deprecated_in, removed_in, deprecation, replacement FROM (
    SELECT DISTINCT ON (a.name) a.id::text, a.name COLLATE "C" AS name,
           CASE WHEN (p ->> 'removed_in_order') COLLATE "C" <= %(order)s THEN 'removed'
                ELSE 'deprecated' END AS status,
           p ->> 'deprecated_in' AS deprecated_in, p ->> 'removed_in' AS removed_in,
           p ->> 'deprecation' AS deprecation,
           (SELECT min(n.name COLLATE "C") FROM relations r JOIN entities n ON n.id = r.end_id
             WHERE r.start_id = a.id AND r.kind = 'REPLACED_BY') AS replacement
      FROM (SELECT id, name, properties AS p FROM entities
             WHERE kind = 'APIReference' AND project = ''
               AND properties ? 'package' AND properties ->> 'package' = %(package)s
               AND coalesce(properties ->> 'ecosystem', '') = %(ecosystem)s) AS a
     WHERE (p ->> 'deprecated_in_order') COLLATE "C" <= %(order)s
        OR (p ->> 'removed_in_order') COLLATE "C" <= %(order)s
     ORDER BY a.name, (p ->> 'version_order') COLLATE "C" DESC NULLS LAST, a.id) AS found
 ORDER BY name, id LIMIT %(limit)s;

-- name: replacements
-- What replaces an API, and what replaces that, up to ten steps.
WITH RECURSIVE step AS (
    SELECT 1 AS step, r.end_id, a.name AS replaced, r.properties ->> 'in_version' AS in_version,
           ARRAY[r.id] AS way
      FROM entities a JOIN relations r ON r.start_id = a.id AND r.kind = 'REPLACED_BY'
     WHERE a.kind = 'APIReference' AND a.name = %(name)s AND a.project = ''
       AND coalesce(a.properties ->> 'ecosystem', '') = %(ecosystem)s
    UNION ALL
    SELECT step + 1, r.end_id, e.name, r.properties ->> 'in_version', way || r.id
      FROM step JOIN relations r ON r.start_id = step.end_id AND r.kind = 'REPLACED_BY'
      JOIN entities e ON e.id = r.start_id
     WHERE step < 10 AND r.id <> ALL (way)
)
SELECT DISTINCT step, replaced COLLATE "C" AS replaced, e.name COLLATE "C" AS replacement, in_version
  FROM step JOIN entities e ON e.id = step.end_id
 ORDER BY step, replaced, replacement, in_version;

-- name: effective_documents
-- Documents of a category that helped more than five times.
SELECT e.id::text, e.name, s.source, s.successes, s.relevance
  FROM knowledge_scores s JOIN entities e ON e.id = s.entity_id
 WHERE s.kind = 'ExternalDoc' AND s.category = %(category)s AND s.successes > %(least)s
 ORDER BY s.successes DESC, s.relevance DESC, id LIMIT %(limit)s;

-- name: effective_sources
-- How often what a source says helped, and how often it misled.
SELECT source, sum(successes)::int AS successes, sum(failures)::int AS failures,
       sum(misled)::int AS misled, count(*)::int AS documents
  FROM knowledge_scores WHERE successes + failures + misled > 0
 GROUP BY source
 ORDER BY (sum(successes) + 1.0) / (sum(successes) + sum(failures) + sum(misled) + 2.0) DESC, source
 LIMIT %(limit)s;

-- name: top_documents
-- The best of a category; of all languages where none is named.
SELECT e.id::text, e.name, e.properties ->> 'source' AS source, t.relevance
  FROM top_documents t JOIN entities e ON e.id = t.entity_id
 WHERE t.category = %(category)s AND (%(language)s = '' OR t.language = %(language)s)
 ORDER BY t.relevance DESC, t.entity_id LIMIT %(limit)s;

-- name: neighbourhood
-- What is known about a file and its functions, or about one function: what leads to it, and from
-- APIs one step on.
WITH code AS (
    SELECT id, name, kind FROM entities
     WHERE project = %(project)s AND kind IN ('CodeFile', 'Function')
       AND properties ->> 'path' = %(path)s
       AND (%(function)s::text IS NULL OR kind = 'Function' AND name = %(function)s)
), near AS (
    SELECT 1 AS step, r.kind AS relation, e.id, e.kind, e.name, c.name AS of,
           (r.properties ->> 'line_number')::int AS line_number,
           r.properties ->> 'context' AS context
      FROM code c JOIN relations r ON r.end_id = c.id AND r.kind <> 'DEFINED_IN'
      JOIN graph_statements s ON s.id = r.statement_id AND s.project IN ('', %(project)s)
      JOIN entities e ON e.id = r.start_id
), beyond AS (
    SELECT DISTINCT 2 AS step, r.kind, e.id, e.kind, e.name, n.name, NULL::int, NULL::text
      FROM near n JOIN relations r ON r.start_id = n.id
       AND r.kind IN ('DOCUMENTED_IN', 'REPLACED_BY', 'ALTERNATIVE_TO')
      JOIN graph_statements s ON s.id = r.statement_id AND s.project IN ('', %(project)s)
      JOIN entities e ON e.id = r.end_id
     WHERE n.kind = 'APIReference'
    UNION
    SELECT DISTINCT 2 AS step, r.kind, e.id, e.kind, e.name, n.name, NULL::int, NULL::text
      FROM near n JOIN relations r ON r.end_id = n.id
       AND r.kind IN ('DEMONSTRATES', 'REFERENCES', 'SOLVES')
      JOIN graph_statements s ON s.id = r.statement_id AND s.project IN ('', %(project)s)
      JOIN entities e ON e.id = r.start_id
     WHERE n.kind IN ('APIReference', 'ErrorPattern')
)
SELECT step, relation, id::text, kind, name COLLATE "C" AS name, of COLLATE "C" AS of,
       line_number, context
  FROM (SELECT * FROM near UNION ALL SELECT * FROM beyond) AS found
 ORDER BY step, line_number, relation COLLATE "C", name, of, id, context COLLATE "C" LIMIT %(limit)s;

-- name: api_uses
-- Where a project uses an API, in whatever version it was read.
SELECT path, function, line_number, context FROM (
    SELECT (c.properties ->> 'path') COLLATE "C" AS path,
           (CASE c.kind WHEN 'Function' THEN c.name ELSE '' END) COLLATE "C" AS function,
           (r.properties ->> 'line_number')::int AS line_number,
           r.properties ->> 'context' AS context
      FROM entities a JOIN relations r ON r.start_id = a.id AND r.kind = 'USED_IN'
      JOIN graph_statements s ON s.id = r.statement_id AND s.project = %(project)s
      JOIN entities c ON c.id = r.end_id
     WHERE a.kind = 'APIReference' AND a.name = %(name)s
) AS uses
 ORDER BY path, line_number, function, context COLLATE "C" LIMIT %(limit)s;
