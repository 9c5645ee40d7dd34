-- API keys: who may do what over HTTP. Of the secret only a hash is kept.
CREATE TABLE api_keys (
    id           integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text        NOT NULL UNIQUE,
    secret_hash  bytea       NOT NULL,
    scopes       text[]      NOT NULL,
    collections  text[],
    rate         real        CHECK (rate > 0),
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz
);
COMMENT ON COLUMN api_keys.secret_hash IS 'SHA-256 of 32 random bytes: too many to guess, so it needs no salt and no stretching.';
COMMENT ON COLUMN api_keys.collections IS 'By name; null is all, those made later too.';
COMMENT ON COLUMN api_keys.rate IS 'Requests a second.';
