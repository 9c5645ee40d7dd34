-- One word for it: a note has a type, in commands and for agents. Here it was called kind.
ALTER TABLE notes RENAME COLUMN kind TO type;
UPDATE crawled_documents d
   SET metadata = d.metadata - 'kind' || jsonb_build_object('type', d.metadata -> 'kind'),
       facets = CASE WHEN d.facets ? 'kind'
                     THEN d.facets - 'kind' || jsonb_build_object('type', d.facets -> 'kind')
                     ELSE d.facets END
  FROM collections c
 WHERE c.id = d.collection_id AND c.name = 'project-notes' AND d.metadata ? 'kind';
