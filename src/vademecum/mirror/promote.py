"""Shadow reads: whether another index answers as well as it must, before it serves.

Every query is asked three ways: of every vector one by one, which is the truth, of the index that
serves, and of the one that is to.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from vademecum.evaluate.compare import LEAST_GAIN
from vademecum.evaluate.gold import Expectation, Question
from vademecum.evaluate.metrics import first_met, measure
from vademecum.evaluate.pipeline import results
from vademecum.inference.embedder import Embedder
from vademecum.search.pipeline import MAX_LIMIT
from vademecum.types import Hit, Query, Scored
from vademecum.vectors.index import Nearest
from vademecum.vectors.pgvector import PgvectorIndex

TOP = 10
"""Chunks of each answer that are compared."""
LEAST_RECALL = 0.95

Search = Callable[[Query, Nearest | None], Awaitable[Sequence[Hit]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """How two indexes answer the same queries."""

    queries: int
    recall_now: float
    """Share of the ten nearest chunks that the serving index finds."""
    recall_then: float
    """The same of the other one."""
    p50_now_ms: float
    p50_then_ms: float
    ndcg_now: float | None = None
    """nDCG@10 of whole searches, where the queries have known answers."""
    ndcg_then: float | None = None

    def good(self, least_recall: float) -> bool:
        enough = self.recall_then >= min(least_recall, self.recall_now)
        if self.ndcg_now is None or self.ndcg_then is None:
            return enough
        return enough and self.ndcg_then - self.ndcg_now >= LEAST_GAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What a promotion did."""

    collection: str
    store: str
    told: int
    """Chunks that the store was told of."""
    shadow: Shadow | None
    """None where nothing was compared."""
    switched: bool
    reason: str


async def shadow(
    texts: Sequence[str],
    embedder: Embedder,
    *,
    truth: PgvectorIndex,
    now: Nearest,
    then: Nearest,
    asked: Callable[[int], None] = lambda count: None,
) -> Shadow:
    """Ask both indexes, and the truth. Raises VectorStoreUnavailable, ModelUnavailable."""
    recalls: list[tuple[float, float]] = []
    seconds: list[tuple[float, float]] = []
    for count, text in enumerate(texts, 1):
        vector = await embedder.embed_query(text)
        true = await truth.exact(vector, limit=TOP)
        answers, took = [], []
        for index in (now, then):
            started = time.perf_counter()
            answers.append(await index.nearest(vector, limit=TOP))
            took.append(time.perf_counter() - started)
        recalls.append((recall(true, answers[0]), recall(true, answers[1])))
        seconds.append((took[0], took[1]))
        asked(count)
    return Shadow(
        queries=len(texts),
        recall_now=fmean(one for one, _ in recalls),
        recall_then=fmean(other for _, other in recalls),
        p50_now_ms=median(one for one, _ in seconds) * 1000,
        p50_then_ms=median(other for _, other in seconds) * 1000,
    )


def recall(true: Sequence[Scored], found: Sequence[Scored]) -> float:
    """The share of the true nearest chunks that was found; one as near as the last is as good."""
    if not true:
        return 1.0
    wanted = {scored.chunk_id for scored in true}
    as_near = sum(s.chunk_id in wanted or s.score >= true[-1].score - 1e-3 for s in found)
    return min(1.0, as_near / len(true))


async def ndcg(
    questions: Sequence[Question], search: Search, index: Nearest | None, *, collection: str
) -> float:
    """The mean nDCG@10 of searches with this index."""
    values = []
    for question in questions:
        hits = await search(
            Query(text=question.query, collection=collection, limit=MAX_LIMIT), index
        )
        met = first_met(question.expect, results(question, hits), Expectation.met_by)
        values.append(measure(met, k=TOP).ndcg)
    return fmean(values)
