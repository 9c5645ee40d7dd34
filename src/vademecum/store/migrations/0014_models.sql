-- What language models were asked for and what it cost, and who wrote a summary.

CREATE TABLE model_usage (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    used_at      timestamptz NOT NULL DEFAULT now(),
    provider     text        NOT NULL,
    model        text        NOT NULL,
    purpose      text        NOT NULL,
    tokens_in    integer     NOT NULL,
    tokens_out   integer     NOT NULL,
    cost         numeric(14, 8),
    milliseconds integer     NOT NULL,
    failed       boolean     NOT NULL
);
COMMENT ON TABLE model_usage IS 'One row a call of a language model; no text of it is kept.';
COMMENT ON COLUMN model_usage.cost IS 'US dollars by the price table of that time; NULL where it declared no price.';
CREATE INDEX model_usage_used_at ON model_usage (used_at);

ALTER TABLE document_ledger
    ADD COLUMN summary6_by   text NOT NULL DEFAULT '',
    ADD COLUMN summary6_hash text NOT NULL DEFAULT '';
COMMENT ON COLUMN document_ledger.summary6_by IS 'The language model and prompt that wrote the summary; empty: it is extractive.';
COMMENT ON COLUMN document_ledger.summary6_hash IS 'The source_hash of the content that was summarised.';
