"""Rankings as arrays: what a retriever found, best first, in one piece as the database packs it."""

from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from vademecum.types import ChunkId, DocumentId, Scored

_PACKED = np.dtype(
    [("number", ">i4"), ("document", ">i4"), ("score", ">f8"), ("high", ">u8"), ("low", ">u8")]
)
FOUND = np.dtype([*_PACKED.newbyteorder("=").descr, ("section", np.int64)])
"""A chunk: its number in the lexical index, -1 where it has none, its document, how well it was
liked, its id in two halves, and its section: the same for no other one, 0 where it is not known."""

PACKED = (
    "int4send(coalesce({number}, -1)) || int4send({document}) || float8send({score})"
    " || uuid_send({chunk})"
)
"""A row of FOUND in SQL."""

Ranking = NDArray[np.void]
"""Of type FOUND, shape (chunks,), best first."""


def unpacked(rows: bytes | None) -> Ranking:
    """From what `string_agg` made of PACKED; None where nothing was found."""
    packed = np.frombuffer(rows or b"", _PACKED)
    found = np.zeros(len(packed), FOUND)
    found[list(_PACKED.names or ())] = packed
    return found


def joined(rankings: Iterable[Ranking]) -> Ranking:
    """One after the other."""
    # Told the type, numpy does not compare those of all of them, which takes it longer.
    return np.concatenate(list(rankings), dtype=FOUND)


def ranking_of(scored: Sequence[Scored], numbers: Mapping[ChunkId, int]) -> Ranking:
    """Of chunks in an order given, with the numbers of those that have one."""
    return np.array(
        [
            (
                numbers.get(one.chunk_id, -1),
                one.document_id,
                one.score,
                one.chunk_id.int >> 64,
                one.chunk_id.int & _LOW,
                0,
            )
            for one in scored
        ],
        FOUND,
    )


def scored(ranking: Ranking) -> list[Scored]:
    """Each chunk by itself."""
    return [
        Scored(
            chunk_id=chunk_id(entry),
            document_id=DocumentId(int(entry["document"])),
            score=float(entry["score"]),
        )
        for entry in ranking
    ]


def chunk_id(entry: np.void) -> ChunkId:
    return ChunkId(UUID(int=int(entry["high"]) << 64 | int(entry["low"])))


def let_through(documents: Ids[DocumentId]) -> NDArray[np.bool_]:
    """Which documents may be found, by their numbers; the last entry stands for all that are not
    there, and is false."""
    passing = np.zeros(max(documents, default=0) + 2, np.bool_)
    passing[np.fromiter(documents, np.int64, len(documents))] = True
    return passing


def by_id(ranking: Ranking) -> NDArray[np.intp]:
    """The order of the chunks' ids, which does not depend on who came first."""
    return np.lexsort((ranking["low"], ranking["high"]))


_LOW = (1 << 64) - 1
