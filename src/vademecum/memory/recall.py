"""Search in a user's memory: the same two views as of documents, words and meaning, fused alike.

A memory is small, so all of it is scored, in this process.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vademecum.inference.embedder import Embedder
from vademecum.search.fuse import WEIGHTS, fuse
from vademecum.search.terms import query_terms, terms
from vademecum.types import Vector

K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A sentence of a memory, where it stands, and the newest version that it stands in."""

    text: str
    project: str
    section: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What search knows of a passage: its index terms, and its vector where there is one."""

    passage: Passage
    terms: Sequence[str]
    vector: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A passage that answers a query; `lexical` and `dense` are its shares of the score."""

    passage: Passage
    score: float
    lexical: float
    dense: float


async def entries(passages: Sequence[Passage], embedder: Embedder | None) -> list[Entry]:
    """The passages with terms and, given an embedder, vectors. Raises ModelUnavailable."""
    texts = [passage.text for passage in passages]
    vectors = await embedder.embed(texts) if embedder and texts else [None] * len(texts)
    return [
        Entry(passage=passage, terms=terms(passage.text), vector=vector)
        for passage, vector in zip(passages, vectors, strict=True)
    ]


def lexical_scores(
    texts: Sequence[Sequence[str]], query: str
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """BM25 of each text's terms as a share of the most any could have, shape (texts,)."""
    lengths = np.array([len(text) for text in texts], dtype=np.float64)
    average = max(float(lengths.mean()), 1.0) if len(texts) else 1.0
    scores = np.zeros(len(texts))
    most = 0.0
    for term, times in query_terms(query).items():
        frequency = np.array([text.count(term) for text in texts], dtype=np.float64)
        holding = int(np.count_nonzero(frequency))
        if not holding:
            continue
        weight = times * math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        scores += weight * frequency / (frequency + K1 * (1 - B + B * lengths / average))
        most += weight
    return scores / most if most else scores


async def rank(
    among: Sequence[Entry], query: str, *, embedder: Embedder | None, limit: int = 8
) -> list[Recalled]:
    """The entries that answer the query, best first; by words alone without an embedder.

    With one, each entry has a vector of its space. Raises ModelUnavailable.
    """
    if not among:
        return []
    scores = {"lexical": lexical_scores([entry.terms for entry in among], query)}
    weights = {"lexical": 1.0}
    if embedder is not None:
        asked = await embedder.embed_query(query)
        vectors = np.stack([entry.vector for entry in among if entry.vector is not None])
        scores["dense"] = (vectors @ asked).astype(np.float64)
        weights = dict(WEIGHTS)
    shares = fuse(np.arange(len(among), dtype=np.int64), scores, weights)
    total = np.sum(list(shares.values()), axis=0)
    order = np.argsort(-total, kind="stable")[:limit]
    found = scores["lexical"] > 0
    return [
        Recalled(
            passage=among[i].passage,
            score=float(total[i]),
            lexical=float(shares["lexical"][i]),
            dense=float(shares["dense"][i]) if "dense" in shares else 0.0,
        )
        for i in order
        if embedder is not None or found[i]
    ]
