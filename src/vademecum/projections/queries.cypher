// The named queries of the graph in Cypher: twins of store/sql/graph_queries.sql, in the same order.

// name: usable_apis
MATCH (a:APIReference {package: $package, project: ''})
WHERE coalesce(a.ecosystem, '') = $ecosystem AND ($name IS NULL OR a.name = $name)
WITH a, coalesce(a.version_order <= $order, true) AS below
ORDER BY a.name, below DESC,
         CASE WHEN below THEN coalesce(a.version_order, '') ELSE '' END DESC, a.version_order, a.id
WITH a.name AS name, collect(a)[0] AS a
WHERE (a.version_introduced IS NULL OR a.version_introduced_order <= $order)
  AND (a.deprecated_in IS NULL OR a.deprecated_in_order > $order)
  AND (a.removed_in IS NULL OR a.removed_in_order > $order)
RETURN a.id AS id, name, a.version AS read_from, a.signature AS signature,
       a.version_introduced AS version_introduced, a.deprecated_in AS deprecated_in
ORDER BY name, id LIMIT toInteger($limit)

// name: language_apis
MATCH (a:APIReference)-[:COMPATIBLE_WITH]->(l:Language)
WHERE toLower(l.name) = toLower($language)
  AND (l.version_order = $order
       OR a.package = toLower($language) AND a.version_introduced_order <= $order)
  AND (coalesce(a.package, '') <> toLower($language) OR a.deprecated_in IS NULL
       OR a.deprecated_in_order > $order)
RETURN DISTINCT a.id AS id, a.name AS name, a.package AS package,
       a.version_introduced AS version_introduced
ORDER BY name, id LIMIT toInteger($limit)

// name: framework_practices
MATCH (b:BestPractice)-[:APPLIES_TO]->(f:Framework {name: $package, ecosystem: $ecosystem})
WHERE (b.min_version IS NULL OR b.min_version_order <= $order)
  AND (b.deprecated_in IS NULL OR b.deprecated_in_order > $order)
  AND NOT EXISTS { MATCH (b)-[d:DEPRECATED_IN]->(f) WHERE d.version_order <= $order }
RETURN DISTINCT b.id AS id, b.name AS name, b.domain AS domain,
       toFloat(coalesce(b.confidence_score, 0)) AS confidence
ORDER BY confidence DESC, id LIMIT toInteger($limit)

// name: deprecated_apis
MATCH (a:APIReference {package: $package, project: ''})
WHERE coalesce(a.ecosystem, '') = $ecosystem
  AND (a.deprecated_in_order <= $order OR a.removed_in_order <= $order)
WITH a ORDER BY a.name, coalesce(a.version_order, '') DESC, a.id
WITH a.name AS name, collect(a)[0] AS a
OPTIONAL MATCH (a)-[:REPLACED_BY]->(n)
WITH a, name, min(n.name) AS replacement
RETURN a.id AS id, name,
       CASE WHEN coalesce(a.removed_in_order <= $order, false) THEN 'removed'
            ELSE 'deprecated' END AS status,
       a.deprecated_in AS deprecated_in, a.removed_in AS removed_in, a.deprecation AS deprecation,
       replacement
ORDER BY name, id LIMIT toInteger($limit)

// name: replacements
MATCH way = (a:APIReference {name: $name, project: ''})-[:REPLACED_BY*1..10]->()
WHERE coalesce(a.ecosystem, '') = $ecosystem
WITH length(way) AS step, relationships(way)[-1] AS last
RETURN DISTINCT step, startNode(last).name AS replaced, endNode(last).name AS replacement,
       last.in_version AS in_version
ORDER BY step, replaced, replacement, in_version

// name: effective_documents
MATCH (d:ExternalDoc {category: $category})<-[:USED]-(u:KnowledgeUsage {outcome: 'success'})
WITH d, count(DISTINCT u) AS successes
WHERE successes > $least
RETURN d.id AS id, d.name AS name, d.source AS source, successes, d.relevance_score AS relevance
ORDER BY successes DESC, relevance DESC, id LIMIT toInteger($limit)

// name: effective_sources
MATCH (d)<-[:USED]-(u:KnowledgeUsage)
WHERE u.outcome IN ['success', 'failure', 'misled']
WITH coalesce(d.source, '') AS source, d, u.outcome AS outcome, count(DISTINCT u) AS uses
WITH source, count(DISTINCT d) AS documents,
     sum(CASE outcome WHEN 'success' THEN uses ELSE 0 END) AS successes,
     sum(CASE outcome WHEN 'failure' THEN uses ELSE 0 END) AS failures,
     sum(CASE outcome WHEN 'misled' THEN uses ELSE 0 END) AS misled
RETURN source, successes, failures, misled, documents
ORDER BY (successes + 1.0) / (successes + failures + misled + 2.0) DESC, source
LIMIT toInteger($limit)

// name: top_documents
MATCH (d:ExternalDoc {category: $category})
WHERE $language = '' OR toLower(coalesce(d.language, '')) = $language
RETURN d.id AS id, d.name AS name, d.source AS source, d.relevance_score AS relevance
ORDER BY relevance DESC, id LIMIT toInteger($limit)

// name: neighbourhood
CALL {
  MATCH (c:Entity {project: $project, path: $path})
  WHERE (c:CodeFile OR c:Function) AND ($function IS NULL OR c:Function AND c.name = $function)
  MATCH (e)-[r]->(c)
  WHERE type(r) <> 'DEFINED_IN' AND r.project IN ['', $project]
  RETURN 1 AS step, type(r) AS relation, e.id AS id, e.kind AS kind, e.name AS name, c.name AS of,
         r.line_number AS line_number, r.context AS context
  UNION ALL
  MATCH (c:Entity {project: $project, path: $path})
  WHERE (c:CodeFile OR c:Function) AND ($function IS NULL OR c:Function AND c.name = $function)
  MATCH (n:APIReference)-[r]->(c) WHERE r.project IN ['', $project]
  MATCH (n)-[q:DOCUMENTED_IN|REPLACED_BY|ALTERNATIVE_TO]->(e) WHERE q.project IN ['', $project]
  RETURN DISTINCT 2 AS step, type(q) AS relation, e.id AS id, e.kind AS kind, e.name AS name,
         n.name AS of, null AS line_number, null AS context
  UNION ALL
  MATCH (c:Entity {project: $project, path: $path})
  WHERE (c:CodeFile OR c:Function) AND ($function IS NULL OR c:Function AND c.name = $function)
  MATCH (n)-[r]->(c) WHERE (n:APIReference OR n:ErrorPattern) AND r.project IN ['', $project]
  MATCH (e)-[q:DEMONSTRATES|REFERENCES|SOLVES]->(n) WHERE q.project IN ['', $project]
  RETURN DISTINCT 2 AS step, type(q) AS relation, e.id AS id, e.kind AS kind, e.name AS name,
         n.name AS of, null AS line_number, null AS context
}
RETURN step, relation, id, kind, name, of, line_number, context
ORDER BY step, line_number, relation, name, of, id, context LIMIT toInteger($limit)

// name: api_uses
MATCH (:APIReference {name: $name})-[r:USED_IN {project: $project}]->(c)
RETURN c.path AS path, CASE WHEN c:Function THEN c.name ELSE '' END AS function,
       r.line_number AS line_number, r.context AS context
ORDER BY path, line_number, function, context LIMIT toInteger($limit)
