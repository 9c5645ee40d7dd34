-- name: lock_notes
SELECT pg_advisory_xact_lock(hashtextextended('notes:' || %(project)s, 0));

-- name: notes_in_force
-- Notes that hold, the most important and newest first.
SELECT id, project, type, title, content, tags, importance, evidence, agent, replaced_by,
       replaced_why, created_at, updated_at,
       ARRAY(SELECT DISTINCT why FROM no_longer_stands s WHERE s.note_id = notes.id ORDER BY 1) AS stale
  FROM notes
 WHERE project = %(project)s AND replaced_by IS NULL AND NOT removed
   AND (%(type)s::text IS NULL OR type = %(type)s)
   AND tags @> %(tags)s::text[]
   AND importance >= %(importance)s
 ORDER BY importance DESC, updated_at DESC, id
 LIMIT %(limit)s;

-- name: notes_by_id
SELECT id, project, type, title, content, tags, importance, evidence, agent, replaced_by,
       replaced_why, created_at, updated_at,
       ARRAY(SELECT DISTINCT why FROM no_longer_stands s WHERE s.note_id = notes.id ORDER BY 1) AS stale
  FROM notes
 WHERE project = %(project)s AND id = ANY(%(ids)s) AND NOT removed;

-- name: notes_replaced_by
SELECT id, project, type, title, content, tags, importance, evidence, agent, replaced_by,
       replaced_why, created_at, updated_at,
       ARRAY(SELECT DISTINCT why FROM no_longer_stands s WHERE s.note_id = notes.id ORDER BY 1) AS stale
  FROM notes
 WHERE project = %(project)s AND replaced_by = %(id)s AND NOT removed
 ORDER BY updated_at DESC;

-- name: insert_note
INSERT INTO notes (project, type, title, content, tags, importance, evidence, agent)
VALUES (%(project)s, %(type)s, %(title)s, %(content)s, %(tags)s, %(importance)s, %(evidence)s,
        %(agent)s)
RETURNING id;

-- name: confirm_note
-- Said again: what is added to it stays.
UPDATE notes
   SET importance = greatest(importance, %(importance)s),
       tags = ARRAY(SELECT DISTINCT unnest(tags || %(tags)s::text[]) ORDER BY 1),
       evidence = ARRAY(SELECT DISTINCT unnest(evidence || %(evidence)s::text[]) ORDER BY 1),
       updated_at = now()
 WHERE project = %(project)s AND id = %(id)s;

-- name: set_evidence
UPDATE notes SET evidence = %(evidence)s, updated_at = now()
 WHERE project = %(project)s AND id = %(id)s;

-- name: replace_note
UPDATE notes SET replaced_by = %(by)s, replaced_why = %(why)s, updated_at = now()
 WHERE project = %(project)s AND id = %(id)s;

-- name: restore_note
UPDATE notes SET replaced_by = NULL, replaced_why = '', updated_at = now()
 WHERE project = %(project)s AND id = %(id)s AND NOT removed;

-- name: remove_note
UPDATE notes SET removed = true, title = '', content = '', tags = '{}', evidence = '{}',
                 updated_at = now()
 WHERE project = %(project)s AND id = %(id)s;

-- name: documents_at
SELECT id FROM crawled_documents WHERE collection_id = %(collection)s AND url = ANY(%(urls)s);

-- name: note_projects
SELECT project, count(*) FILTER (WHERE replaced_by IS NULL) AS notes
  FROM notes WHERE NOT removed GROUP BY project ORDER BY project;
