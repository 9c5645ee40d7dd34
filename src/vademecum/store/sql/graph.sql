-- name: open_statement
-- The statement's id, and its row held: two writers of one statement follow each other.
INSERT INTO graph_statements (project, source, key, digest)
VALUES (%(project)s, %(source)s, %(key)s, %(digest)s)
ON CONFLICT (project, source, key) DO UPDATE SET digest = excluded.digest, stated_at = now()
RETURNING id;

-- name: upsert_entities
INSERT INTO entities AS e (id, kind, project, name, properties)
SELECT * FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(projects)s::text[], %(names)s::text[],
                     %(properties)s::jsonb[]) ORDER BY 1
ON CONFLICT (id) DO UPDATE
   SET name = excluded.name, properties = excluded.properties, updated_at = now()
 WHERE (e.name, e.properties) IS DISTINCT FROM (excluded.name, excluded.properties)
RETURNING (xmax = 0) AS inserted;

-- name: update_entities
-- Those that are there, whoever states them.
UPDATE entities AS e SET name = n.name, properties = n.properties, updated_at = now()
  FROM unnest(%(ids)s::uuid[], %(names)s::text[], %(properties)s::jsonb[]) AS n (id, name, properties)
 WHERE e.id = n.id;

-- name: mention_entities
-- Entities that are only referred to: made where new, else left as they are.
INSERT INTO entities (id, kind, project, name, properties)
SELECT * FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(projects)s::text[], %(names)s::text[],
                     %(properties)s::jsonb[]) ORDER BY 1
ON CONFLICT (id) DO NOTHING
RETURNING true AS inserted;

-- name: note_stated
INSERT INTO stated_entities (entity_id, statement_id)
SELECT unnest(%(ids)s::uuid[]), %(statement)s ON CONFLICT DO NOTHING;

-- name: upsert_relations
INSERT INTO relations AS r (id, kind, start_id, end_id, statement_id, properties)
SELECT id, kind, start_id, end_id, %(statement)s, properties
  FROM unnest(%(ids)s::uuid[], %(kinds)s::text[], %(starts)s::uuid[], %(ends)s::uuid[],
              %(properties)s::jsonb[]) AS given (id, kind, start_id, end_id, properties)
 ORDER BY id
ON CONFLICT (id) DO UPDATE SET properties = excluded.properties, updated_at = now()
 WHERE r.properties IS DISTINCT FROM excluded.properties
RETURNING (xmax = 0) AS inserted;

-- name: retract_relations
-- What the statement no longer says.
DELETE FROM relations WHERE statement_id = %(statement)s AND id <> ALL (%(keep)s::uuid[]);

-- name: retract_entities
DELETE FROM stated_entities
 WHERE statement_id = %(statement)s AND entity_id <> ALL (%(keep)s::uuid[])
RETURNING entity_id;

-- name: statement_ids
SELECT id FROM graph_statements
 WHERE project = %(project)s AND source = %(source)s
   AND (%(keys)s::text[] IS NULL OR key = ANY (%(keys)s::text[]))
 ORDER BY id FOR UPDATE;

-- name: drop_statement
DELETE FROM graph_statements WHERE id = %(statement)s;

-- name: hold_entities
-- Before what nobody states is deleted: whoever is about to state one of them waits, or is seen.
SELECT id FROM entities WHERE id = ANY (%(ids)s::uuid[]) ORDER BY id FOR UPDATE;

-- name: delete_unstated
DELETE FROM entities e
 WHERE id = ANY (%(ids)s::uuid[])
   AND NOT EXISTS (SELECT FROM stated_entities s WHERE s.entity_id = e.id);

-- name: statement_digests
SELECT key, digest FROM graph_statements
 WHERE project = %(project)s AND source = %(source)s ORDER BY key;

-- name: entities_by_id
SELECT id, kind, project, name, properties, updated_at
  FROM known_entities
 WHERE id = ANY (%(ids)s::uuid[]) AND project = ANY (%(projects)s::text[]) ORDER BY id;

-- name: entities_by_name
SELECT id, kind, project, name, properties, updated_at
  FROM known_entities
 WHERE kind = %(kind)s AND name = ANY (%(names)s::text[]) AND project = ANY (%(projects)s::text[])
 ORDER BY name, id;

-- name: entities_of_package
SELECT id, kind, project, name, properties, updated_at
  FROM known_entities
 WHERE properties ? 'package' AND properties ->> 'package' = %(package)s AND kind = %(kind)s
   AND coalesce(properties ->> 'ecosystem', '') = %(ecosystem)s
   AND (%(version)s::text IS NULL OR coalesce(properties ->> 'version', '') = %(version)s)
   AND project = ANY (%(projects)s::text[])
 ORDER BY name, id;

-- name: relations_of
SELECT r.id, r.kind, r.start_id, r.end_id, r.properties, s.project, s.source, s.key AS stated_by
  FROM relations r JOIN graph_statements s ON s.id = r.statement_id
 WHERE (r.start_id = ANY (%(ids)s::uuid[]) AND %(outgoing)s
        OR r.end_id = ANY (%(ids)s::uuid[]) AND %(incoming)s)
   AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
   AND s.project = ANY (%(projects)s::text[])
 ORDER BY r.kind, r.id;

-- name: count_entities
SELECT kind, count(*) FROM entities WHERE project = ANY (%(projects)s::text[])
 GROUP BY kind ORDER BY kind;

-- name: graph_projects
-- The projects whose code, decisions or usage the graph holds, with how many nodes of each.
SELECT project, count(*) FROM entities WHERE project <> '' GROUP BY project ORDER BY project;

-- name: count_relations
SELECT r.kind, count(*) FROM relations r JOIN graph_statements s ON s.id = r.statement_id
 WHERE s.project = ANY (%(projects)s::text[]) GROUP BY r.kind ORDER BY r.kind;

-- name: stated_by
-- Which sources state nodes that all projects share, and under which keys.
SELECT e.entity_id, s.source, s.key
  FROM stated_entities e JOIN graph_statements s ON s.id = e.statement_id
 WHERE e.entity_id = ANY (%(ids)s::uuid[]) AND s.project = ''
 ORDER BY e.entity_id, s.source, s.key;
