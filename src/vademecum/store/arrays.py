"""Arrays of numbers as PostgreSQL reads them: element by element, as drivers do it, takes long."""

from typing import Any, Literal

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import adapters
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format


def packed(numbers: NDArray[np.integer[Any]], kind: Literal["int4", "int2"]) -> bytes:
    """An array in its binary form: dimensions, whether any is null, type, length, first index, and
    before each number its size."""
    size = {"int4": 4, "int2": 2}[kind]
    oid = adapters.types[kind].oid
    head = [1, 0, oid, len(numbers), 1] if len(numbers) else [0, 0, oid]
    entries = np.empty(len(numbers), [("size", ">i4"), ("number", f">i{size}")])
    entries["size"], entries["number"] = size, numbers
    return np.array(head, ">i4").tobytes() + entries.tobytes()


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
