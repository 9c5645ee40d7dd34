-- name: log_search
INSERT INTO search_log (collection_id, query, path, section_id)
VALUES (%(collection)s, %(query)s, %(path)s, %(section)s);

-- name: forget_old_searches
DELETE FROM search_log WHERE used_at < now() - make_interval(days => %(days)s);

-- name: forget_searches
DELETE FROM search_log WHERE collection_id = %(collection)s;

-- name: used_sources
-- By query, whatever its letter case, the sources read; of documents and sections that still exist.
SELECT min(l.query COLLATE "C") AS query, l.path,
       CASE WHEN EXISTS (SELECT FROM document_chunks k
                          WHERE k.document_id = d.id AND k.section_id = l.section_id)
            THEN l.section_id ELSE '' END AS section_id,
       count(*)::integer AS uses, max(l.used_at) AS last_used
  FROM search_log l
  JOIN crawled_documents d ON d.collection_id = l.collection_id AND d.path = l.path
 WHERE l.collection_id = %(collection)s
   AND (%(days)s = 0 OR l.used_at >= now() - make_interval(days => %(days)s))
 GROUP BY lower(l.query), l.path, 3
 ORDER BY lower(l.query) COLLATE "C", uses DESC, l.path COLLATE "C", 3;
