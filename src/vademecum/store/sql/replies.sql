-- name: reply
SELECT url, accept, final_url, content_type, digest, size, etag, last_modified, fetched_at
  FROM source_replies WHERE url = %(url)s AND accept = %(accept)s;

-- name: keep_reply
INSERT INTO source_replies (url, accept, final_url, content_type, digest, size, etag, last_modified,
                            fetched_at)
VALUES (%(url)s, %(accept)s, %(final_url)s, %(content_type)s, %(digest)s, %(size)s, %(etag)s,
        %(last_modified)s, %(fetched_at)s)
ON CONFLICT (url, accept) DO UPDATE
   SET final_url = excluded.final_url, content_type = excluded.content_type,
       digest = excluded.digest, size = excluded.size, etag = excluded.etag,
       last_modified = excluded.last_modified, fetched_at = excluded.fetched_at;

-- name: old_replies
DELETE FROM source_replies WHERE fetched_at < %(before)s RETURNING url, accept;
