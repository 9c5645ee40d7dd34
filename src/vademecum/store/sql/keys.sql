-- name: create_key
INSERT INTO api_keys (name, secret_hash, scopes, collections, rate, memory_user, expires_at)
VALUES (%(name)s, %(hash)s, %(scopes)s, %(collections)s, %(rate)s, %(user)s,
        now() + make_interval(days => %(days)s))
RETURNING id;

-- name: keys
SELECT id, name, scopes, collections, rate, memory_user IS NOT NULL AS one_user, created_at, expires_at, last_used_at, revoked_at
  FROM api_keys
 ORDER BY id;

-- name: live_key
SELECT name, secret_hash, scopes, collections, rate, memory_user
  FROM api_keys
 WHERE id = %(id)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: key_used
-- Noted now and then, not for each call.
UPDATE api_keys SET last_used_at = now()
 WHERE id = %(id)s AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute');

-- name: revoke_key
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE name = %(name)s;
