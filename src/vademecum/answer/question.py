"""What a question asks about: its terms, and how rare each is in the collection."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from vademecum.search.terms import query_terms
from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import CollectionId

RAREST = 0.001
"""Share of chunks below which a term is as rare as can be: then a weight does not depend on how
large the collection is, and what holds in a small one holds in a large one."""

# `real-time` is no name, and a text may well say `real time`; `--no-verify` and `a.b` are.
_COMPOUND_WORD = re.compile(r"\w+(?:[-/]\w+)+")


@dataclass(frozen=True)
class Question:
    """A question to a collection. `shares` has the share of chunks that hold each known term."""

    text: str
    shares: Mapping[str, float]

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """How much each term tells: inverse document frequency."""
        return {
            term: math.log(1 + 1 / (self.shares.get(term, 0.0) + RAREST))
            for term in query_terms(self.text)
        }

    @cached_property
    def unknown(self) -> float:
        """Share of the terms that no chunk of the collection holds."""
        counted = [term for term in self.weights if not _COMPOUND_WORD.fullmatch(term)]
        return sum(not self.shares.get(term) for term in counted) / max(len(counted), 1)

    def coverage(self, terms: frozenset[str]) -> float:
        """Weight of the question's terms that are among these, as a share of all."""
        total = sum(self.weights.values())
        return sum(self.weights[term] for term in terms & self.weights.keys()) / (total or 1.0)


async def ask(connection: Connection, collection: CollectionId, text: str) -> Question:
    """The question with what the collection knows of its terms."""
    cursor = await connection.execute(
        SQL["known_terms"], {"collection": collection, "terms": list(query_terms(text))}
    )
    rows = await cursor.fetchall()
    return Question(text, {term: holding / chunks for term, _, holding, chunks in rows if chunks})
