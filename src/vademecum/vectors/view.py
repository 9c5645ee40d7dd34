"""A collection in memory, and which of its chunks are nearest.

    vector --signs--> windows to look at again --rough--> some to compare exactly --> [chunk]

As long as the signs of all windows fit into a processor's cache, to go over them takes less time
than a walk through a vector index, and finds more.
"""

from collections.abc import Collection as Ids
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from vademecum.ranking import Ranking, joined, let_through
from vademecum.store.lexical import Numbered
from vademecum.types import DocumentId, Vector
from vademecum.vectors.index import windows_for

AGAIN = 8
"""Windows looked at again for each one wanted. Measured on 88 266 windows with 150 wanted: the 1200
nearest by their signs hold 0.896 of them, and 0.987 of the best ten."""
FAR = np.uint16(np.iinfo(np.uint16).max)
STEPS = (1 << 15) - 1
"""Of a number from 0 to 1: a vector is kept in two bytes a number."""
IN_A_BYTE = 3
"""Words of 64 signs that differ in at most 255."""
BLOCK = 4096
"""Vectors gone over at once: what is made of them meanwhile is larger than they are."""


class Part:
    """The chunks of a segment, by number, and their windows in the same order."""

    def __init__(
        self,
        *,
        chunks: Ranking,
        sequences: NDArray[np.int32],
        lengths: NDArray[np.int32],
        owners: NDArray[np.intp],
        vectors: NDArray[np.int16],
    ) -> None:
        """`sequences` are the ids of the terms of each chunk, and after each a 0 that its length
        does not count; `owners` says which chunk each window is of, ascending."""
        self.chunks = chunks
        # Beside: a column of a table is slow to go over.
        self.numbers = chunks["number"].astype(np.int32)
        self.documents = chunks["document"].astype(np.int32)
        self.sequences = sequences
        self.lengths = lengths
        self.starts = np.cumsum(lengths + 1) - lengths - 1
        self.owners = owners.astype(np.int32)
        self.windows = np.searchsorted(self.owners, np.arange(len(chunks)))
        self.windows_after = np.searchsorted(self.owners, np.arange(len(chunks)), side="right")
        self.vectors = vectors
        self.signs = _signs(vectors)
        self.size = sum(array.nbytes for array in vars(self).values())


@dataclass(frozen=True, slots=True)
class Left:
    """A part, and which of its chunks are left; None for all of them."""

    part: Part
    chunks: NDArray[np.bool_] | None = None
    gone: int = 0
    """How many are not."""

    def distances(
        self, signs: NDArray[np.uint64], passing: NDArray[np.bool_] | None
    ) -> NDArray[np.uint16]:
        """In how many signs each window differs, FAR where it may not be found."""
        part = self.part
        differing = np.zeros(len(part.owners), np.uint16)
        for first in range(0, len(signs), IN_A_BYTE):
            words = slice(first, first + IN_A_BYTE)
            pairs = zip(part.signs[words], signs[words], strict=True)
            differing += reduce(np.add, [np.bitwise_count(own ^ wanted) for own, wanted in pairs])
        found = self.chunks
        if passing is not None:
            meeting = passing[np.minimum(part.documents, len(passing) - 1)]
            found = meeting if found is None else found & meeting
        if found is not None:
            differing[~found[part.owners]] = FAR
        return differing

    def chunks_of(
        self, numbers: NDArray[np.int64], *, sequences: bool
    ) -> tuple[Ranking, NDArray[np.int32], NDArray[np.int32]]:
        """Those of the chunks that are left; their sequences, and how long."""
        part = self.part
        places = self._places(numbers)
        found = part.chunks[places]
        if not sequences:
            return found, part.sequences[:0], part.lengths[:0]
        lengths, starts = part.lengths[places], part.starts[places]
        return found, part.sequences.take(_ranges(starts, starts + lengths + 1)), lengths

    def similarities(
        self, numbers: NDArray[np.int64], query: NDArray[np.int16]
    ) -> NDArray[np.float64]:
        """Of those of the chunks that are left, each of its best window; 0 without any."""
        part = self.part
        places = self._places(numbers)
        best = np.zeros(len(places))
        first, after = part.windows[places], part.windows_after[places]
        some = after > first
        begins = (np.cumsum(after - first) - (after - first))[some]
        if len(begins):
            exact = _similarities(part.vectors.take(_ranges(first, after), axis=0), query)
            best[some] = np.maximum.reduceat(exact, begins)
        return best

    def _places(self, numbers: NDArray[np.int64]) -> NDArray[np.intp]:
        """Where those of the chunks are that are left."""
        part = self.part
        places = np.searchsorted(part.numbers, numbers)
        here = places < len(part.numbers)
        here[here] = part.numbers[places[here]] == numbers[here]
        places = places[here]
        return places if self.chunks is None else places[self.chunks[places]]


class View:
    """The chunks of a collection as they were at one moment."""

    def __init__(self, left: Sequence[Left]) -> None:
        """In the order of their numbers."""
        self._left = left

    def nearest(
        self, vector: Vector, *, limit: int, documents: Ids[DocumentId] | None = None
    ) -> Ranking:
        """The chunks whose best window is nearest, of all documents or of some, best first, ties by
        id; the score is the cosine similarity."""
        query = steps(vector[np.newaxis])
        passing = None if documents is None else let_through(documents)
        signs = _signs(query)[:, 0]
        distances = [one.distances(signs, passing) for one in self._left]
        wanted = windows_for(limit)
        some = [
            places[one[places] < FAR]
            for one, places in zip(distances, _nearest(distances, AGAIN * wanted), strict=True)
        ]
        rough = [
            -np.vecdot(
                one.part.vectors.take(places, axis=0).astype(np.float32),
                query[0].astype(np.float32),
            )
            for one, places in zip(self._left, some, strict=True)
        ]
        near = _nearest(rough, wanted)
        found = joined(
            _best_windows(one.part, places[best], query[0])
            for one, places, best in zip(self._left, some, near, strict=True)
        )
        order = np.lexsort((found["low"], found["high"], -found["score"]))
        best: Ranking = found[order[:limit]]
        return best

    def chunks_of(self, numbers: NDArray[np.int64], *, sequences: bool) -> Numbered:
        """As `lexical.chunks_of`, without similarities."""
        found = [one.chunks_of(numbers, sequences=sequences) for one in self._left]
        chunks, terms, lengths = zip(*found, strict=True)
        return Numbered(
            found=joined(chunks), sequences=np.concatenate(terms), lengths=np.concatenate(lengths)
        )

    def similarities(self, numbers: NDArray[np.int64], vector: Vector) -> NDArray[np.float64]:
        """Cosine similarities of those of the chunks that exist, each of its best window; 0 for one
        without vectors. Ascending by number, as `chunks_of` has them."""
        query = steps(vector[np.newaxis])[0]
        return np.concatenate([one.similarities(numbers, query) for one in self._left])


def _best_windows(part: Part, windows: NDArray[np.intp], query: NDArray[np.int16]) -> Ranking:
    """The chunks of the windows, ascending, each with the similarity of its best one."""
    owners = part.owners[windows]
    begins = np.flatnonzero(np.diff(owners, prepend=-1))
    found: Ranking = part.chunks[owners[begins]]
    if len(begins):
        found["score"] = np.maximum.reduceat(
            _similarities(part.vectors.take(windows, axis=0), query), begins
        )
    return found


def _nearest(distances: Sequence[NDArray[np.generic]], count: int) -> list[NDArray[np.intp]]:
    """The places of so many of the least, and of those that equal the last; ascending, for each
    array."""
    together = np.concatenate(distances)
    if len(together) <= count:
        return [np.arange(len(one)) for one in distances]
    last = np.partition(together, count)[count]
    return [np.flatnonzero(one <= last) for one in distances]


def _similarities(vectors: NDArray[np.int16], query: NDArray[np.int16]) -> NDArray[np.float64]:
    """Cosine similarities: whole numbers are added up, so that each is the same to the last bit,
    whatever it is compared beside."""
    # Not as a product of matrices: BLAS would keep all cores busy for it, waiting for each other.
    products: NDArray[np.float64] = np.vecdot(vectors.astype(np.float64), query.astype(np.float64))
    return products / STEPS**2


def steps(vectors: NDArray[np.floating]) -> NDArray[np.int16]:
    """Unit vectors of the same directions, shape (vectors, dimensions)."""
    norms = np.linalg.norm(vectors.astype(np.float32), axis=1, keepdims=True)
    unit = vectors / np.where(norms > 0, norms, 1)
    return np.rint(unit * STEPS).astype(np.int16)


def _signs(vectors: NDArray[np.int16]) -> NDArray[np.uint64]:
    """A bit for each number, whether it is positive; shape (dimensions / 64, vectors)."""
    signs = np.zeros((len(vectors), -(-vectors.shape[1] // 64) * 8), np.uint8)
    for start in range(0, len(vectors), BLOCK):
        bits = np.packbits(vectors[start : start + BLOCK] > 0, axis=1)
        signs[start : start + BLOCK, : bits.shape[1]] = bits
    return np.ascontiguousarray(signs.view(np.uint64).T)


def _ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """All whole numbers from each start to before its end, one range after the other."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
