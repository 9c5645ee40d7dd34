-- What notes rest on: passages as they were when the note was kept. Whether they still stand is
-- asked when it is read, so that no writer of documents can forget to say so.

CREATE TABLE rests_on (
    note_id     uuid NOT NULL REFERENCES notes ON DELETE CASCADE,
    collection  text NOT NULL,  -- by name: a collection made again may hold the same passages
    path        text NOT NULL,
    section_id  text NOT NULL,
    chunk_hash  text NOT NULL,
    source_hash text NOT NULL,
    PRIMARY KEY (note_id, collection, path, section_id, chunk_hash)
);

-- A passage stands while its document has a chunk of the same text, or is split from the same
-- source in another way.
CREATE VIEW no_longer_stands AS
SELECT r.note_id, r.collection, r.path, r.section_id,
       r.collection || '/' || r.path || CASE WHEN r.section_id <> '' THEN '#' || r.section_id ELSE '' END
         || CASE WHEN d.id IS NULL THEN ' is gone' ELSE ' has changed' END AS why
  FROM rests_on r
  LEFT JOIN collections c ON c.name = r.collection
  LEFT JOIN crawled_documents d ON d.collection_id = c.id AND d.path = r.path
 WHERE NOT EXISTS (SELECT FROM document_chunks k
                    WHERE k.document_id = d.id
                      AND (k.content_hash = r.chunk_hash OR k.source_hash = r.source_hash));

CREATE INDEX relations_resting ON relations ((properties ->> 'rests_on')) WHERE properties ? 'rests_on';
