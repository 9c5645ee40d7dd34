"""What a question asks about: its terms, and how rare each is in the collection."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from vademecum.search.terms import query_terms
from vademecum.store.db import Connection
from vademecum.store.lexical import KeptEntries, postings
from vademecum.types import CollectionId

RAREST = 0.001
"""Share of chunks below which a term is as rare as can be: then a weight does not depend on how
large the collection is, and what holds in a small one holds in a large one."""

FEW = 30
"""Chunks: a collection of so few does not know half of the words that it could."""
ASKING = frozenset(
    """
    actually anybody anyone anything best between called come current describe difference different
    do does doing done else ever everyone example exactly explain find general get getting give go
    good happen happens help instead just keep know let like long look make many mean means most
    much must name need needed normally often please possible properly purpose question recommended
    right role see set several show simple someone something still sure take tell thing think try
    trying understand use used useful using usually want way weird without wonder work working works
    """.split()  # noqa: SIM905
)
"""Words of the asking, not of what is asked about: texts that answer seldom repeat them."""

# `real-time` is no name, and a text may well say `real time`; `--no-verify` and `a.b` are.
_COMPOUND_WORD = re.compile(r"\w+(?:[-/]\w+)+")


@dataclass(frozen=True)
class Question:
    """A question to a collection. `shares`: of its chunks, those that hold each known term."""

    text: str
    shares: Mapping[str, float]
    chunks: int

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """How much each term tells: inverse document frequency."""
        return {
            term: math.log(1 + 1 / (self.shares.get(term, 0.0) + RAREST))
            for term in telling_terms(self.text)
        }

    @cached_property
    def unknown(self) -> float:
        """Share of the terms that no chunk of the collection holds, less for a small one."""
        counted = [term for term in self.weights if not _COMPOUND_WORD.fullmatch(term)]
        share = sum(not self.shares.get(term) for term in counted) / max(len(counted), 1)
        return share * self.chunks / (self.chunks + FEW)

    def coverage(self, terms: frozenset[str]) -> float:
        """Weight of the question's terms that are among these, as a share of all."""
        total = sum(self.weights.values())
        return sum(self.weights[term] for term in terms & self.weights.keys()) / (total or 1.0)


def telling_terms(text: str) -> list[str]:
    """The terms of what is asked about; all terms where nothing else is left."""
    words = [word for word in text.split() if word.strip("?!.,;:'\"").casefold() not in ASKING]
    return list(query_terms(" ".join(words) or text))


async def ask(
    connection: Connection, collection: CollectionId, text: str, kept: KeptEntries
) -> Question:
    """The question with what the collection knows of its terms."""
    found = await postings(connection, collection, telling_terms(text), kept)
    if found is None:
        return Question(text, {}, chunks=0)
    statistics, held = found
    chunks = statistics.chunk_count
    return Question(
        text, {one.term.term: one.term.chunk_count / chunks for one in held}, chunks=chunks
    )
