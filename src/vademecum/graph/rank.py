"""How relevant a document is: a weighted score, then what came of its use.

Why so: docs/decisions/0017-graph.md.
"""

from dataclasses import dataclass
from datetime import datetime

from vademecum.graph.sources import trust

CREDIBILITY, FRESHNESS, USAGE, SIMILARITY = 0.40, 0.20, 0.20, 0.20
FRESH_DAYS = 730.0
"""A document loses its freshness within two years."""
MUCH_USED = 100.0
"""Uses from which on more do not count."""
MISLED_WEIGHT = 3
"""Failures that one misleading counts as: the task may fail for other reasons, this is no doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What is known of the use of a document."""

    access_count: int = 0
    successes: int = 0
    failures: int = 0
    misled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """A score and its parts, each from 0 to 1.

    `score` is the weighted sum of the first four; `relevance` is the score moved by helpfulness:
    up to half of the way to 1 for what always helped, to half of itself for what never did.
    """

    credibility: float
    freshness: float
    usage: float
    similarity: float
    helpfulness: float

    @property
    def score(self) -> float:
        return (
            self.credibility * CREDIBILITY
            + self.freshness * FRESHNESS
            + self.usage * USAGE
            + self.similarity * SIMILARITY
        )

    @property
    def relevance(self) -> float:
        shift = self.helpfulness - 0.5  # within ±0.5
        return self.score + shift * (1.0 - self.score if shift > 0 else self.score)


def relevance(
    source: str, last_updated: datetime, use: Use, *, now: datetime, similarity: float = 0.0
) -> Relevance:
    """Freshness counts whole days, so that a score made twice a day is the same."""
    age = (now - last_updated).days
    bad = use.failures + MISLED_WEIGHT * use.misled
    return Relevance(
        credibility=trust(source),
        freshness=min(1.0, max(0.0, 1.0 - age / FRESH_DAYS)),
        usage=min(1.0, use.access_count / MUCH_USED),
        similarity=min(1.0, max(0.0, similarity)),
        # Laplace's rule: 0.5 while nothing is known, and never sure.
        helpfulness=(use.successes + 1) / (use.successes + bad + 2),
    )
