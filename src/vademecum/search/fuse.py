"""Fusion: several rankings to one, each hit with the share of every retriever."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vademecum.types import ChunkId, Contribution, Scored

RRF_K = 60
"""Reciprocal rank fusion: Cormack, Clarke & Büttcher 2009, whose k this is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """A chunk with its fused score, which is the sum of its contributions' shares."""

    chunk_id: ChunkId
    score: float
    contributions: tuple[Contribution, ...]


def reciprocal_rank(rankings: Mapping[str, Sequence[Scored]], *, k: int = RRF_K) -> list[Fused]:
    """Σ 1 / (k + rank) over the rankings that hold a chunk; best first, ties by id."""
    found: dict[ChunkId, list[Contribution]] = {}
    for retriever, ranking in rankings.items():
        for rank, scored in enumerate(ranking, start=1):
            found.setdefault(scored.chunk_id, []).append(
                Contribution(
                    retriever=retriever, rank=rank, score=scored.score, share=1 / (k + rank)
                )
            )
    fused = [
        Fused(
            chunk_id=chunk,
            score=sum(contribution.share for contribution in contributions),
            contributions=tuple(contributions),
        )
        for chunk, contributions in found.items()
    ]
    return sorted(fused, key=lambda hit: (-hit.score, hit.chunk_id))
