"""What a vector index is, whichever store is behind it, and what is written to one."""

import hashlib
import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from collections.abc import Collection as Ids
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from vademecum.profiles.facet import Facet
from vademecum.types import ChunkId, Condition, DocumentId, Scored, Vector

WINDOWS_PER_CHUNK = 1.5
"""Asked for, since the windows of a chunk compete. Measured: with 1.25 the Kubernetes pages lose
0.001 of nDCG@10, with 2 or 3 they gain nothing, and a scan of the index takes longer."""

VOLATILE = frozenset({"version", "created_at", "updated_at", "last_modified"})
"""Fields that may change while a chunk stays the same; no difference to a verification."""

RESERVED = frozenset(
    {"book_id", "parent_doc_id", "content_hash", "source_file_hash", "source_file"}
    | {"section_title", "chunk_index", "total_chunks", "prev_chunk_id", "next_chunk_id"}
    | {"word_count", "token_count", "version", "created_at", "updated_at", "text", "chunk_id"}
    | {"window_index", "document_id", "entry_hash", "kb_name", "namespace", "file_path"}
    | {"file_name", "title", "heading_path", "section_id", "sql_topic", "language", "sha256"}
    | {"last_modified", "keywords", "summary6", "doc_title"}
)
"""Fields of every chunk; a facet of such a name stands beside them under another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """One window of a chunk, as a store holds it. `fields` are what filters use, and metadata."""

    chunk_id: ChunkId
    window_index: int
    document_id: DocumentId
    input_hash: bytes
    """SHA-256 of the text that was embedded."""
    vector: Vector
    fields: Mapping[str, object]
    text: str = ""
    """Of the chunk, for stores that keep it for other readers; it is never read back."""

    @property
    def hash(self) -> str:
        return entry_hash(self.window_index, self.input_hash, self.fields)


def entry_hash(window_index: int, input_hash: bytes, fields: Mapping[str, object]) -> str:
    """What an entry depends on, as 32 hexadecimal digits; equal entries have equal ones."""
    kept = {name: value for name, value in fields.items() if name not in VOLATILE}
    plain = json.dumps(kept, sort_keys=True, ensure_ascii=False, default=str)
    digest = hashlib.sha256(f"{window_index}:{input_hash.hex()}:{plain}".encode())
    return digest.hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which chunks may be found: conditions on facets, all to be met.

    `documents` are the documents that meet them, where that is known; None is any.
    """

    conditions: tuple[Condition, ...] = ()
    documents: Sequence[DocumentId] | None = None


ANY = Filter()


class Nearest(Protocol):
    """What a search needs of an index."""

    async def nearest(self, vector: Vector, *, limit: int, where: Filter = ANY) -> list[Scored]:
        """The chunks whose best window is nearest, best first; the score is the cosine
        similarity."""
        ...


class Narrowed:
    """An index in which only what a filter lets through is looked for."""

    def __init__(self, index: Nearest, where: Filter) -> None:
        self._index, self._where = index, where

    async def nearest(self, vector: Vector, *, limit: int, where: Filter = ANY) -> list[Scored]:
        return await self._index.nearest(vector, limit=limit, where=self._where)


class VectorIndex(Nearest, Protocol):
    """The vectors of one collection in one embedding space."""

    async def upsert(self, entries: Sequence[IndexEntry]) -> None:
        """Write all windows of some chunks; windows that these chunks had besides are gone."""
        ...

    async def delete(self, chunks: Ids[ChunkId]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What a store says that it holds."""

    chunk_id: ChunkId
    window_index: int
    hash: str


class Mirror(VectorIndex, Protocol):
    """An index in another store. Everything raises VectorStoreUnavailable."""

    async def prepare(self, facets: Sequence[Facet]) -> None:
        """Make the place and its field indexes where they are missing."""
        ...

    async def settled(self) -> None:
        """Return once searches see all that was written through this object."""
        ...

    def listing(self) -> AsyncIterator[Listed]:
        """All that the store holds of the collection."""
        ...

    async def leave(self) -> None:
        """Remove all that the store holds of the collection."""
        ...

    async def close(self) -> None: ...


def windows_for(chunks: int) -> int:
    """How many windows to ask for where so many chunks are wanted."""
    return math.ceil(chunks * WINDOWS_PER_CHUNK)


def field_of(facet: str) -> str:
    """The field that a facet stands in."""
    return f"facet_{facet}" if facet in RESERVED else facet


def best_windows(found: Sequence[tuple[str, int, float]], limit: int) -> list[Scored]:
    """Each chunk by its best window, from (chunk, document, score) of windows; best first."""
    best: dict[str, tuple[int, float]] = {}
    for chunk, document, score in found:
        if chunk not in best or score > best[chunk][1]:
            best[chunk] = (document, score)
    ranked = sorted(best.items(), key=lambda item: (-item[1][1], item[0]))
    return [
        Scored(chunk_id=ChunkId(UUID(chunk)), document_id=DocumentId(document), score=score)
        for chunk, (document, score) in ranked[:limit]
    ]
