-- A collection's move to another embedder is judged before the collection is searched with it.
CREATE TABLE moves (
    collection_id integer     PRIMARY KEY REFERENCES collections (id) ON DELETE CASCADE,
    embedder      text        NOT NULL,
    space_id      integer     NOT NULL REFERENCES embedding_spaces (id),
    state         text        NOT NULL DEFAULT 'filling'
                              CHECK (state IN ('filling', 'refused', 'accepted')),
    judged_by     text        NOT NULL CHECK (judged_by IN ('gold', 'logged', 'nobody')),
    questions     jsonb       NOT NULL,
    verdict       jsonb,
    started_at    timestamptz NOT NULL DEFAULT now(),
    judged_at     timestamptz
);
COMMENT ON TABLE moves IS 'The last move of each collection; kept after it, with what it was judged by.';
COMMENT ON COLUMN moves.questions IS 'Queries with what they should find, as in gold files; kept here so that any worker can judge.';
