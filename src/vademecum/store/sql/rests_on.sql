-- name: passages_at
-- The chunks that references name now; a reference without a section names its whole document.
SELECT DISTINCT c.name AS collection, d.path, k.section_id, k.content_hash AS chunk_hash
  FROM unnest(%(collections)s::text[], %(paths)s::text[], %(sections)s::text[])
       AS asked (collection, path, section)
  JOIN collections c ON c.name = asked.collection
  JOIN crawled_documents d ON d.collection_id = c.id AND d.path = asked.path
  JOIN document_chunks k ON k.document_id = d.id AND asked.section IN ('', k.section_id)
 ORDER BY 1, 2, 3, 4;

-- name: rest_on
-- A passage that changed since it was read has no source any more, and does not stand.
INSERT INTO rests_on (note_id, collection, path, section_id, chunk_hash, source_hash)
SELECT %(note)s, p.collection, p.path, p.section, p.chunk_hash,
       coalesce((SELECT k.source_hash
                   FROM collections c
                   JOIN crawled_documents d ON d.collection_id = c.id AND d.path = p.path
                   JOIN document_chunks k ON k.document_id = d.id AND k.content_hash = p.chunk_hash
                  WHERE c.name = p.collection LIMIT 1), '')
  FROM unnest(%(collections)s::text[], %(paths)s::text[], %(sections)s::text[],
              %(hashes)s::text[]) AS p (collection, path, section, chunk_hash)
ON CONFLICT DO NOTHING;

-- name: rest_no_longer
DELETE FROM rests_on WHERE note_id = %(note)s;

-- name: rest_anew
-- What a note rested on in the same sections.
DELETE FROM rests_on r
 USING unnest(%(collections)s::text[], %(paths)s::text[], %(sections)s::text[])
       AS p (collection, path, section)
 WHERE r.note_id = %(note)s AND (r.collection, r.path, r.section_id) = (p.collection, p.path, p.section);

-- name: references_of_note
SELECT DISTINCT collection, path, section_id FROM rests_on WHERE note_id = %(note)s ORDER BY 1, 2, 3;

-- name: stale_notes
SELECT n.id, n.type, n.project, n.title, array_agg(DISTINCT s.why ORDER BY s.why) AS why,
       array_agg(DISTINCT s.collection) AS collections
  FROM no_longer_stands s JOIN notes n ON n.id = s.note_id
 WHERE n.replaced_by IS NULL AND NOT n.removed
   AND (%(collection)s::text IS NULL OR EXISTS (
        SELECT FROM rests_on r WHERE r.note_id = n.id AND r.collection = %(collection)s))
 GROUP BY n.id ORDER BY n.project, n.title, n.id;

-- name: stale_summaries
-- Summaries of content that has been replaced, with what keeps the new one from being made.
SELECT c.name AS collection, d.path, d.title,
       (SELECT j.error_message FROM processing_queue j
         WHERE j.document_id = d.id AND j.status = 'failed' ORDER BY j.id DESC LIMIT 1) AS error
  FROM document_ledger l
  JOIN crawled_documents d ON d.id = l.document_id
  JOIN collections c ON c.id = d.collection_id
 WHERE l.summary6 <> '{}' AND l.summary6_hash <> d.source_hash
   AND (%(collection)s::text IS NULL OR c.name = %(collection)s)
 ORDER BY c.name, d.path;

-- name: resting_relations
-- Relations that say which knowledge they rest on, with that as it is now; NULL where nobody but
-- those who rest on it states it any more. The statement of a document itself, as adapters make it,
-- states it. What rests on a document that is as it was is left out.
SELECT * FROM (
    SELECT r.id, r.kind, g.project, a.name AS start_name, b.name AS end_name, r.properties,
           e.kind AS knowledge_kind, e.name AS knowledge_name,
           CASE WHEN g.project = '' AND g.key = rtrim(concat_ws(' ', e.properties ->> 'source_url',
                                                                e.properties ->> 'version'))
                  OR EXISTS (SELECT FROM stated_entities s
                               JOIN graph_statements o ON o.id = s.statement_id
                              WHERE s.entity_id = e.id AND o.id <> g.id
                                AND (o.source, o.project) <> (g.source, g.project))
                THEN e.properties END AS knowledge
      FROM relations r
      JOIN graph_statements g ON g.id = r.statement_id
      JOIN entities a ON a.id = r.start_id
      JOIN entities b ON b.id = r.end_id
      LEFT JOIN entities e ON e.id = (r.properties ->> 'rests_on')::uuid
     WHERE r.properties ? 'rests_on'
) AS resting
 WHERE knowledge IS NULL
    OR NOT knowledge ? 'content_hash'
    OR knowledge ->> 'content_hash' <> properties ->> 'rests_on_hash'
 ORDER BY project, kind, id;

-- name: relations_resting_on
SELECT id, properties FROM relations
 WHERE properties ? 'rests_on' AND properties ->> 'rests_on' = %(knowledge)s FOR UPDATE;

-- name: relations_still_stand
UPDATE relations SET properties = properties || jsonb_build_object('rests_on_hash', %(digest)s::text),
                     updated_at = now()
 WHERE id = ANY (%(ids)s::uuid[]);
