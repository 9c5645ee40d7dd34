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
EntityId = NewType("EntityId", UUID)
RelationId = NewType("RelationId", UUID)

Vector = NDArray[np.float32]
"""One embedding, shape (dimensions,), length 1."""

Format = Literal["markdown", "html", "rst", "text", "pdf"]
Mode = Literal["hybrid", "dense", "lexical"]
Boost = Literal["title", "heading", "topic", "file"]
Change = Literal["inserted", "updated", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpace:
    """Vectors compare only within one space; anything that changes them makes another."""

    model: str
    dimensions: int
    digest: str
    """Of weights and quantisation, so that the same name with other weights is another space."""
    document_prefix: str = ""
    query_prefix: str = ""

    @property
    def key(self) -> str:
        """The space in one line, equal for equal spaces."""
        prefixes = f"{self.document_prefix!r}/{self.query_prefix!r}"
        return f"{self.model}:{self.dimensions}:{self.digest}:{prefixes}"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A chunk, the document it is of, and how well one retriever likes it; higher is better."""

    chunk_id: ChunkId
    document_id: DocumentId
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a filter asks of one facet: one of the values, or within one of the ranges.

    Without values and ranges: that the document has the facet at all. Bounds are inclusive, None
    is open. `negated` is the opposite, and holds for a document without the facet too.
    """

    facet: str
    values: tuple[str | int, ...] = ()
    ranges: tuple[tuple[str | int | None, str | int | None], ...] = ()
    numeric: bool = False
    """Whether the facet's values are integers; others are text that sorts as it should."""
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search. Raises nothing itself: `search.pipeline.check` says what is wrong with it."""

    text: str
    collection: str
    mode: Mode = "hybrid"
    limit: int = 8
    threshold: float | None = None
    """Least cosine similarity of a hit's best window; None keeps all."""
    keyword: str | None = None
    """Only documents that hold these words."""
    filters: tuple[str, ...] = ()
    """Only documents whose facets are so: `tier<=2`, `level=A2,B1`; all must hold. The grammar is
    in docs/profiles.md."""
    parent: UUID | None = None
    """Only the document whose chunks have this parent."""
    boost: tuple[str, ...] = ()
    """Fields (title, heading, topic, file) whose match with the query counts more."""
    rerank: bool = False
    """Whether a reranker puts the best hits in order, where there is one."""
    snippets: bool = True
    """Whether hits have snippets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one retriever says of a hit, and its share of the hit's score.

    `rank` is 0 where the retriever did not find the chunk itself.
    """

    retriever: str
    rank: int
    score: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chunk that answers a query. The shares of `contributions` sum up to `score`."""

    chunk_id: ChunkId
    document_id: DocumentId
    score: float
    title: str
    collection: str
    path: str
    url: str | None
    heading_path: tuple[str, ...]
    section_id: str
    ordinal: int
    text: str
    snippet: str
    contributions: tuple[Contribution, ...]
    facets: Mapping[str, object] = field(default_factory=dict)
    """Of its document, as the profile declares them."""

    @property
    def reference(self) -> str:
        """The citation: collection/file#section."""
        return f"{self.collection}/{self.path}#{self.section_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A source of an answer."""

    reference: str
    collection: str
    path: str
    section_id: str
    title: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A sentence of a language model that is no part of the answer, and why."""

    sentence: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Sentences from the sources, each followed by its citation.

    Where the sources do not hold the answer `found` is False, `answer` says so, and `sources` are
    the nearest sections.
    """

    question: str
    found: bool
    answer: str
    sources: tuple[Cited, ...]
    by: str = "extractive"
    """Or the language model that wrote it, `provider:model`."""
    dropped: tuple[Dropped, ...] = ()
    """What it wrote that the sources do not support."""
