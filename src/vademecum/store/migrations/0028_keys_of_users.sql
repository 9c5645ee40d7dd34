-- A key may name the memory of one user only.
ALTER TABLE api_keys ADD COLUMN memory_user text;
COMMENT ON COLUMN api_keys.memory_user IS 'The hash that the user is known by, as in users; null is any user.';
