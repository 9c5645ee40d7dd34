"""Arrays, and rows of COPY, as PostgreSQL reads them: element by element, as drivers do it, takes
long."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from struct import Struct
from typing import Any, Literal

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import adapters
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEAD = Struct(">iiiii")
"""Of an array in its binary form: dimensions, whether any is null, type, length, first index."""
_EMPTY = Struct(">iii")
_SIZE = Struct(">i")
_SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"


def packed(numbers: NDArray[np.integer[Any]], kind: Literal["int4", "int2"]) -> bytes:
    """An array of shape (numbers,) in its binary form."""
    [one] = packed_each(numbers, [len(numbers)], kind)
    return one


def packed_each(
    numbers: NDArray[np.integer[Any]], lengths: Sequence[int], kind: Literal["int4", "int2"]
) -> Iterator[bytes]:
    """Arrays of these lengths that stand side by side, each in its binary form."""
    size = {"int4": 4, "int2": 2}[kind]
    entries = np.empty(len(numbers), [("size", ">i4"), ("number", f">i{size}")])
    entries["size"], entries["number"] = size, numbers
    body, oid = entries.tobytes(), adapters.types[kind].oid
    for start, end in pairwise(accumulate(lengths, initial=0)):
        yield _head(end - start, oid) + body[start * entries.itemsize : end * entries.itemsize]


def packed_texts(texts: Sequence[str]) -> bytes:
    """An array of text in its binary form."""
    return _head(len(texts), adapters.types["text"].oid) + b"".join(map(_text, texts))


@lru_cache(maxsize=10_000)
def _text(text: str) -> bytes:
    encoded = text.encode()
    return _SIZE.pack(len(encoded)) + encoded


def _head(length: int, oid: int) -> bytes:
    return _HEAD.pack(1, 0, oid, length, 1) if length else _EMPTY.pack(0, 0, oid)


def copied(*columns: NDArray[Any]) -> bytes:
    """Rows for COPY in its binary form. A column has shape (rows,) or (rows, n), and the bytes of
    each of its rows are a field as the server reads it."""
    fields: list[tuple[Any, ...]] = [("fields", ">i2")]
    for place, column in enumerate(columns):
        fields += [(f"size{place}", ">i4"), (f"field{place}", column.dtype, column.shape[1:])]
    rows = np.empty(len(columns[0]), fields)
    rows["fields"] = len(columns)
    for place, column in enumerate(columns):
        rows[f"size{place}"] = column[:1].nbytes
        rows[f"field{place}"] = column
    return _SIGNATURE + rows.tobytes() + _TRAILER


def halves(vectors: NDArray[np.float32]) -> NDArray[np.uint16]:
    """A column of halfvec, from vectors of shape (rows, dimensions)."""
    rows, dimensions = vectors.shape
    column = np.zeros((rows, 2 + dimensions), ">u2")
    column[:, 0] = dimensions
    column[:, 2:] = vectors.astype(">f2").view(">u2")
    return column


class Numbers:
    """A parameter of type `integer[]`, from an array of shape (numbers,)."""

    def __init__(self, numbers: NDArray[np.integer[Any]]) -> None:
        self.packed = packed(numbers, "int4")


class _NumbersDumper(Dumper):
    format = Format.BINARY
    oid = adapters.types["int4"].array_oid

    def dump(self, obj: Numbers) -> Buffer:
        return obj.packed


psycopg.adapters.register_dumper(Numbers, _NumbersDumper)
