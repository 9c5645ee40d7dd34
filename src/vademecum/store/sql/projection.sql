-- name: start_projection
INSERT INTO projections (target) VALUES (%(target)s) ON CONFLICT DO NOTHING;

-- name: stop_projection
-- Its jobs go with it.
DELETE FROM projections WHERE target = %(target)s;

-- name: projection_started
SELECT EXISTS (SELECT FROM projections WHERE target = %(target)s);

-- name: queue_all_entities
INSERT INTO projection_jobs (target, is_relation, id)
SELECT %(target)s, false, id FROM entities ORDER BY id ON CONFLICT DO NOTHING;

-- name: queue_all_relations
INSERT INTO projection_jobs (target, is_relation, id)
SELECT %(target)s, true, id FROM relations ORDER BY id ON CONFLICT DO NOTHING;

-- name: projection_left
SELECT count(*) FROM projection_jobs WHERE target = %(target)s;

-- name: projection_jobs
SELECT id, sequence FROM projection_jobs
 WHERE target = %(target)s AND is_relation = %(is_relation)s AND sequence > %(after)s
 ORDER BY sequence LIMIT %(limit)s;

-- name: projection_done
-- A job that was queued again meanwhile has another sequence, and stays.
DELETE FROM projection_jobs j USING unnest(%(ids)s::uuid[], %(sequences)s::bigint[]) AS d (id, sequence)
 WHERE j.target = %(target)s AND j.is_relation = %(is_relation)s AND j.id = d.id
   AND j.sequence = d.sequence;

-- name: projected_entities
SELECT id, kind, project, name, properties, updated_at FROM known_entities
 WHERE id = ANY (%(ids)s::uuid[]);

-- name: projected_relations
SELECT r.id, r.kind, r.start_id, r.end_id, r.properties, s.project, s.source, s.key AS stated_by
  FROM relations r JOIN graph_statements s ON s.id = r.statement_id
 WHERE r.id = ANY (%(ids)s::uuid[]);

-- name: entities_after
SELECT id, kind, project, name, properties, updated_at FROM known_entities
 WHERE id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: relations_after
SELECT r.id, r.kind, r.start_id, r.end_id, r.properties, s.project, s.source, s.key AS stated_by
  FROM relations r JOIN graph_statements s ON s.id = r.statement_id
 WHERE r.id > %(after)s ORDER BY r.id LIMIT %(limit)s;
