"""Another order for the best hits, by a model that reads query and passage together.

Within a time: when it ends, the fused order stands, and the result says so.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vademecum.errors import LanguageModelFailed, ModelUnavailable
from vademecum.inference.reranker import Reranker
from vademecum.types import Contribution, Hit

SHORTLIST = 20
"""Best hits of the fused order that are looked at again."""
STANDS = "the fused order stands"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranked:
    """The hits, and by whom they were put in order, or why they were not."""

    hits: list[Hit]
    by: str | None = None
    notice: str | None = None


async def rerank(
    hits: Sequence[Hit], reranker: Reranker, query: str, *, milliseconds: int
) -> Reranked:
    """The shortlist in the reranker's order, ties in the fused one; the hits after it as they are.

    A reranker tells of the order alone: the scores of the shortlist are dealt out anew, and what a
    hit gains or loses by it is the share of `rerank` among its contributions.
    """
    shortlist = list(hits[:SHORTLIST])
    if len(shortlist) < 2:
        return Reranked(hits=list(hits), by=reranker.name)
    try:
        async with asyncio.timeout(milliseconds / 1000):
            scores = await reranker.scores(query, [passage(hit) for hit in shortlist])
    except TimeoutError:
        notice = f"{reranker.name} took longer than {milliseconds} ms: {STANDS}"
        return Reranked(hits=list(hits), notice=notice)
    except (ModelUnavailable, LanguageModelFailed) as error:
        return Reranked(hits=list(hits), notice=f"{error}: {STANDS}")
    order = sorted(range(len(shortlist)), key=lambda index: -scores[index])
    again = [
        _placed(shortlist[index], rank=rank, said=scores[index], score=shortlist[rank - 1].score)
        for rank, index in enumerate(order, start=1)
    ]
    return Reranked(hits=[*again, *hits[SHORTLIST:]], by=reranker.name)


def passage(hit: Hit) -> str:
    """What is read of a hit: where it stands, and its text."""
    return f"{' > '.join(dict.fromkeys((hit.title, *hit.heading_path)))}\n{hit.text}"


def _placed(hit: Hit, *, rank: int, said: float, score: float) -> Hit:
    moved = Contribution(retriever="rerank", rank=rank, score=said, share=score - hit.score)
    return replace(hit, score=score, contributions=(*hit.contributions, moved))
