-- name: find_user
SELECT id FROM users WHERE email_hash = %(user)s AND forgotten_at IS NULL;

-- name: make_user
INSERT INTO users (email_hash) VALUES (%(user)s)
ON CONFLICT (email_hash) DO UPDATE SET updated_at = now()
RETURNING id, forgotten_at;

-- name: memory_role
SELECT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'vademecum_memory'
                 AND pg_has_role(current_user, r.oid, 'MEMBER')
                 AND has_table_privilege(r.oid, 'memory', 'SELECT'));

-- name: as_user
SELECT set_config('vade.user', %(id)s, true);

-- name: make_memory
INSERT INTO memory (user_id, project) VALUES (%(id)s, %(project)s)
ON CONFLICT (user_id, project) DO NOTHING;

-- name: lock_memory
SELECT content, facts, version, updated_at FROM memory
 WHERE user_id = %(id)s AND project = %(project)s FOR UPDATE;

-- name: read_memory
SELECT content, facts, version, updated_at FROM memory
 WHERE user_id = %(id)s AND project = %(project)s;

-- name: memory_projects
SELECT project, version, updated_at FROM memory WHERE user_id = %(id)s ORDER BY project;

-- name: write_memory
WITH written AS (
    UPDATE memory SET content = %(content)s, facts = %(facts)s, version = version + 1,
                      updated_at = now()
     WHERE user_id = %(id)s AND project = %(project)s
    RETURNING version
)
INSERT INTO memory_versions (user_id, project, version, content, facts, reason)
SELECT %(id)s, %(project)s, version, %(content)s, %(facts)s, %(reason)s FROM written
RETURNING version;

-- name: memory_passages
SELECT text, section, version, terms, space, embedding FROM memory_passages
 WHERE user_id = %(id)s AND project = %(project)s
 ORDER BY version DESC, text;

-- name: memory_versions_since
SELECT version, content, facts, reason, created_at FROM memory_versions
 WHERE user_id = %(id)s AND project = %(project)s AND version > %(since)s ORDER BY version;

-- name: store_passage
INSERT INTO memory_passages AS known
       (user_id, project, text, section, version, terms, space, embedding)
VALUES (%(id)s, %(project)s, %(text)s, %(section)s, %(version)s, %(terms)s, %(space)s,
        %(embedding)s)
ON CONFLICT (user_id, project, text) DO UPDATE
   SET section = excluded.section, version = greatest(known.version, excluded.version),
       space = coalesce(excluded.space, known.space),
       embedding = coalesce(excluded.embedding, known.embedding);

-- name: log_interaction
INSERT INTO interactions (user_id, exchange_hash, project, agent, outcome)
VALUES (%(id)s, %(exchange)s, %(project)s, %(agent)s, %(outcome)s)
ON CONFLICT DO NOTHING RETURNING true;

-- name: seen_interaction
SELECT FROM interactions WHERE user_id = %(id)s AND exchange_hash = %(exchange)s;

-- name: read_interactions
SELECT project, agent, outcome, created_at FROM interactions
 WHERE user_id = %(id)s ORDER BY created_at;

-- name: begin_forget
-- From here on readers do not find the user; the receipt names the subject until it is complete.
WITH hidden AS (
    UPDATE users SET forgotten_at = coalesce(forgotten_at, now()) WHERE email_hash = %(user)s
    RETURNING id
)
INSERT INTO forget_receipts (subject, user_id) SELECT %(user)s, id FROM hidden
WHERE NOT EXISTS (SELECT FROM forget_receipts WHERE subject = %(user)s)
RETURNING id;

-- name: open_receipts
SELECT id, subject, user_id, removed FROM forget_receipts
 WHERE completed_at IS NULL AND (%(user)s::text IS NULL OR subject = %(user)s)
 ORDER BY started_at;

-- name: tables_of_users
-- Every table with rows of a user, whoever made it: those that refer to `users`.
SELECT c.conrelid::regclass::text, a.attname::text
  FROM pg_constraint c
  JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
 WHERE c.contype = 'f' AND c.confrelid = 'users'::regclass
 ORDER BY 1;

-- name: add_removed
UPDATE forget_receipts
   SET removed = jsonb_set(removed, ARRAY[%(table)s::text],
                           to_jsonb(coalesce((removed ->> %(table)s::text)::int, 0) + %(count)s::int))
 WHERE id = %(receipt)s;

-- name: all_receipts
SELECT id, removed, probe_hash, started_at, completed_at FROM forget_receipts
 ORDER BY completed_at IS NOT NULL, started_at DESC LIMIT %(limit)s;

-- name: lock_user
-- Waits for the writers of this user's rows, and holds off new ones.
SELECT FROM users WHERE id = %(id)s FOR UPDATE;

-- name: complete_receipt
UPDATE forget_receipts SET subject = NULL, user_id = NULL, probe_hash = %(probes)s,
                           completed_at = now()
 WHERE id = %(receipt)s
RETURNING id, removed, probe_hash, started_at, completed_at;
