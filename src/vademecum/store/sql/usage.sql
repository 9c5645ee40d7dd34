-- name: model_used
INSERT INTO model_usage (provider, model, purpose, tokens_in, tokens_out, cost, milliseconds, failed)
VALUES (%(provider)s, %(model)s, %(purpose)s, %(tokens_in)s, %(tokens_out)s, %(cost)s,
        %(milliseconds)s, %(failed)s);

-- name: model_spend
-- What was spent since a time, by model and purpose, the dearest first.
SELECT provider, model, purpose, count(*)::int AS calls,
       (count(*) FILTER (WHERE failed))::int AS failed,
       sum(tokens_in)::bigint AS tokens_in, sum(tokens_out)::bigint AS tokens_out,
       coalesce(sum(cost), 0)::double precision AS cost,
       (count(*) FILTER (WHERE cost IS NULL))::int AS unpriced
  FROM model_usage WHERE used_at >= now() - %(last)s::interval
 GROUP BY provider, model, purpose
 ORDER BY cost DESC, calls DESC, provider, model, purpose;
