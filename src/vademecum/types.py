"""The words of Vademecum, as types. `docs/glossary.md` explains each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NewType
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

CollectionId = NewType("CollectionId", int)
DocumentId = NewType("DocumentId", int)
ChunkId = NewType("ChunkId", UUID)
SpaceId = NewType("SpaceId", int)

Vector = NDArray[np.float32]
"""One embedding, shape (dimensions,), length 1."""

Format = Literal["markdown", "html", "rst", "text", "pdf"]
Mode = Literal["hybrid", "dense", "lexical"]
Change = Literal["inserted", "updated", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a document is from: a file under an indexed folder, or a page of the web.

    `path` is the name a reader sees and cites: relative to the indexed folder, or the URL.
    """

    path: str
    file_path: str | None = None
    url: str | None = None
    root: str | None = None
    modified_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a reader makes of a source: clean markdown, whatever the source was."""

    title: str
    text: str
    format: Format
    source_hash: str
    """SHA-256 of the bytes read, hexadecimal."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    """Front matter or meta tags, as declared by the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of one document: what is embedded, found and cited.

    `text` is verbatim from `Document.text`. Previous and next follow reading order and are None
    at the ends; `parent_id` is one for all chunks of a document.
    """

    id: ChunkId
    parent_id: UUID
    previous_id: ChunkId | None
    next_id: ChunkId | None
    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    section_id: str
    content_hash: str
    """SHA-256 of `text`, hexadecimal."""
    token_count: int
    word_count: int
    char_count: int
