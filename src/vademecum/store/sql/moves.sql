-- name: start_move
-- A judgement of the same embedder stands only until the move is started again.
INSERT INTO moves (collection_id, embedder, space_id, state, judged_by, questions)
VALUES (%(collection)s, %(embedder)s, %(space)s,
        CASE WHEN %(judged_by)s = 'nobody' THEN 'accepted' ELSE 'filling' END,
        %(judged_by)s, %(questions)s)
ON CONFLICT (collection_id) DO UPDATE
   SET embedder = excluded.embedder, space_id = excluded.space_id, state = excluded.state,
       judged_by = excluded.judged_by, questions = excluded.questions, verdict = NULL,
       started_at = now(), judged_at = NULL;

-- name: forget_move
DELETE FROM moves WHERE collection_id = %(collection)s;

-- name: move
-- A move is done once its collection is searched in its space; it is
-- filled once every document that can be found is embedded for it.
SELECT m.collection_id, c.name AS collection, c.embedder AS present, m.embedder, m.space_id,
       s.key AS space_key, c.next_embedder IS NULL AND c.space_id = m.space_id AS done,
       NOT EXISTS (SELECT FROM crawled_documents d
                    WHERE d.collection_id = c.id
                      AND (d.recipe IS NULL OR right(d.recipe, length(s.key)) <> s.key)
                      AND EXISTS (SELECT FROM document_chunks k WHERE k.document_id = d.id)
                  ) AS filled,
       m.state, m.judged_by, m.questions, m.verdict, m.started_at, m.judged_at
  FROM moves m
  JOIN collections c ON c.id = m.collection_id
  JOIN embedding_spaces s ON s.id = m.space_id
 WHERE m.collection_id = %(collection)s;

-- name: moves_under_way
SELECT collection_id FROM moves WHERE state = 'filling'
   AND (%(collection)s::integer IS NULL OR collection_id = %(collection)s);

-- name: judge_move
-- Only as it was started: another start meanwhile asks for another judgement.
UPDATE moves SET state = %(state)s, verdict = %(verdict)s, judged_at = now()
 WHERE collection_id = %(collection)s AND started_at = %(started_at)s;
