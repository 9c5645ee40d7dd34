"""Fusion: what the retrievers say of each candidate, to one ranking that explains itself.

Both scores are first brought to one scale, by what they mean and not by what the other candidates
happen to score: the cosine similarity as it is, and BM25 as a share of the most that any chunk
could score for the query. So scores compare between queries, and a retriever that finds nothing
good cannot pretend to.

The chunks of a document support one another: a document's score is the smooth maximum (log-sum-exp)
of its chunks' scores, for each retriever by itself. One excellent chunk is as good as a few good
ones, and many mediocre ones add little. A document of one chunk keeps that chunk's score.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vademecum.types import ChunkId, Contribution, DocumentId, Scored

RRF_K = 60
"""Reciprocal rank fusion: Cormack, Clarke & Büttcher 2009, whose k this is."""

SHARPNESS = 20.0
"""Of the smooth maximum. Measured: docs/decisions/0006-fusion.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk that at least one retriever found, with every retriever's score of it."""

    chunk_id: ChunkId
    document_id: DocumentId
    scores: Mapping[str, float]
    """By retriever, on the common scale where 1 is the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """A chunk with its fused score, which is the sum of the retrievers' shares."""

    chunk_id: ChunkId
    score: float
    shares: Mapping[str, float]


def calibrated(
    candidates: Sequence[Candidate], weights: Mapping[str, float], *, sharpness: float = SHARPNESS
) -> list[Fused]:
    """Candidates by their document's score and their own; best first, ties by id.

    The best chunk of a document has the document's score; each other one has less by as much as
    it is worse itself.
    """
    documents: dict[DocumentId, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        documents[candidate.document_id].append(candidate)
    fused = []
    for chunks in documents.values():
        best = min(chunks, key=lambda c: (-_own(c, weights), c.chunk_id))
        support = {
            retriever: smooth_maximum([c.scores[retriever] for c in chunks], sharpness)
            - best.scores[retriever]
            for retriever in weights
        }
        for chunk in chunks:
            shares = {
                retriever: weight * (chunk.scores[retriever] + support[retriever])
                for retriever, weight in weights.items()
            }
            fused.append(Fused(chunk_id=chunk.chunk_id, score=sum(shares.values()), shares=shares))
    return sorted(fused, key=lambda hit: (-hit.score, hit.chunk_id))


def smooth_maximum(scores: Sequence[float], sharpness: float) -> float:
    """ln Σ exp(sharpness · score) / sharpness; at least the maximum, and it for one score."""
    most = max(scores)
    return most + math.log(sum(math.exp(sharpness * (s - most)) for s in scores)) / sharpness


def _own(candidate: Candidate, weights: Mapping[str, float]) -> float:
    return sum(weight * candidate.scores[retriever] for retriever, weight in weights.items())


def reciprocal_rank(rankings: Mapping[str, Sequence[Scored]], *, k: int = RRF_K) -> list[Fused]:
    """Σ 1 / (k + rank) over the rankings that hold a chunk; best first, ties by id."""
    shares: dict[ChunkId, dict[str, float]] = defaultdict(dict)
    for retriever, ranking in rankings.items():
        for rank, scored in enumerate(ranking, start=1):
            shares[scored.chunk_id][retriever] = 1 / (k + rank)
    fused = [
        Fused(chunk_id=chunk, score=sum(of.values()), shares=of) for chunk, of in shares.items()
    ]
    return sorted(fused, key=lambda hit: (-hit.score, hit.chunk_id))


def contributions(
    fused: Fused,
    rankings: Mapping[str, Sequence[Scored]],
    raw: Mapping[str, Mapping[ChunkId, float]],
) -> tuple[Contribution, ...]:
    """What each retriever says of a hit; rank 0 where it is not among those it found itself."""
    return tuple(
        Contribution(
            retriever=retriever,
            rank=_rank(rankings.get(retriever, ()), fused.chunk_id),
            score=raw.get(retriever, {}).get(fused.chunk_id, 0.0),
            share=share,
        )
        for retriever, share in fused.shares.items()
    )


def _rank(ranking: Sequence[Scored], chunk: ChunkId) -> int:
    return next((n for n, scored in enumerate(ranking, 1) if scored.chunk_id == chunk), 0)
