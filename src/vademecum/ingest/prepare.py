"""A stored document as it is to be indexed: its chunks, what is embedded of each, its terms."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath

from vademecum.inference.bound import ByteTokenizer
from vademecum.inference.embedder import Embedder, Tokenizer
from vademecum.inference.words import WordTokenizer
from vademecum.ingest.language import language
from vademecum.ingest.split import ChunkPolicy, split
from vademecum.ingest.summary import summary6
from vademecum.ingest.windows import windows
from vademecum.profiles.profile import Profile
from vademecum.search.terms import STOP_WORDS, frequencies, sequence, terms
from vademecum.store.chunks import ChunkFields
from vademecum.store.documents import StoredDocument
from vademecum.store.ledger import DocumentCard
from vademecum.store.lexical import Postings
from vademecum.types import Chunk, Document

SPLITTER_VERSION = 1
"""Raise it when the same text would give other chunks, terms or windows."""

WINDOW_OVERLAP = 32
"""Tokens that the windows of one chunk share."""

LONGEST = 40
"""Characters of a keyword."""

FIELD_WEIGHTS = {"title": 1, "headings": 1, "file": 1, "topic": 1, "text": 1, "summary": 1}
"""How often each field counts in a chunk's term frequencies. A title mostly stands among the
headings and in the text too, so it counts more than once as it is; more measured no better on any
set. Keywords are words of the text and count there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A text to embed, and its SHA-256."""

    text: str
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedChunk:
    chunk: Chunk
    fields: ChunkFields
    windows: tuple[Window, ...]
    postings: Postings


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A document split, with everything but the vectors."""

    document: StoredDocument
    chunks: tuple[PreparedChunk, ...]
    card: DocumentCard | None = None
    """Of a document of a knowledge base."""
    facets: Mapping[str, object] = field(default_factory=dict)


def recipe(profile: Profile, embedder: Embedder | None) -> str:
    """What chunks depend on besides their document; another recipe makes them again."""
    space = embedder.space.key if embedder else "no vectors"
    return f"{SPLITTER_VERSION} {profile.name}:{profile.digest} {space}"


def prepare(
    document: StoredDocument,
    *,
    profile: Profile,
    tokenizer: Tokenizer,
    max_tokens: int | None,
    card: DocumentCard | None = None,
    reading: Tokenizer | None = None,
) -> Prepared:
    """Split a document; `max_tokens` is what one vector covers, None where nothing is embedded.

    `card` is what is known of it already, where its profile wants one; else it is made here.
    `reading` counts the tokens of chunks where that is not the embedder's own tokenizer.

    Raises ProfileViolation.
    """
    facets = profile.facets_of(document.path, document.metadata, document.text)
    # An upper bound would make chunks far shorter than meant: it minds only what a vector covers.
    reading = reading or tokenizer
    if isinstance(reading, ByteTokenizer):
        reading = WordTokenizer()
    split_chunks = split(
        Document(
            title=document.title,
            text=document.text,
            format=document.format,
            source_hash=document.source_hash,
            metadata=document.metadata,
        ),
        identity=f"{document.collection}:{document.path}",
        policy=ChunkPolicy(
            max_tokens=profile.chunks.max_tokens, overlap_tokens=profile.chunks.overlap_tokens
        ),
        tokenizer=reading,
    )
    if card is None and profile.summaries:
        card = card_of(document, profile)
    terms_of_all = _document_terms(document, card)
    prepared = []
    for chunk in split_chunks:
        fields = ChunkFields(
            document_id=document.id,
            collection_id=document.collection_id,
            title=document.title,
            source_hash=document.source_hash,
            total_chunks=len(split_chunks),
            topic=profile.topic(chunk.text),
            keywords=keywords(chunk.text),
        )
        made: tuple[Window, ...] = ()
        if max_tokens is not None:
            made = windows_of(
                header(document, chunk, fields, profile),
                chunk.text,
                tokenizer=tokenizer,
                limit=max_tokens,
                tokens=chunk.token_count if reading is tokenizer else None,
            )
        prepared.append(
            PreparedChunk(
                chunk=chunk,
                fields=fields,
                windows=made,
                postings=_postings(chunk, fields, terms_of_all),
            )
        )
    return Prepared(document=document, chunks=tuple(prepared), card=card, facets=facets)


def windows_of(
    header: str, text: str, *, tokenizer: Tokenizer, limit: int, tokens: int | None = None
) -> tuple[Window, ...]:
    """What is embedded of a chunk; `tokens` is its number of them, where that is known."""
    texts = windows(
        header, text, tokenizer=tokenizer, limit=limit, overlap=WINDOW_OVERLAP, tokens=tokens
    )
    return tuple(Window(text=one, digest=hashlib.sha256(one.encode()).digest()) for one in texts)


def card_of(document: StoredDocument, profile: Profile) -> DocumentCard:
    """What is known of a document as a whole, its summary in its own words."""
    return DocumentCard(
        topic=profile.topic(document.text),
        language=language(document.text),
        summary6=summary6(document.title, document.text, keywords(document.text)),
    )


def header(document: StoredDocument, chunk: Chunk, fields: ChunkFields, profile: Profile) -> str:
    """The line before a chunk's text when it is embedded: where the chunk stands."""
    headings = list(chunk.heading_path)
    if headings[:1] == [document.title]:
        headings = headings[1:]
    line = profile.chunks.header.format(
        collection=document.collection,
        file=_file(document.path),
        topic=fields.topic,
        title=document.title,
        headings=" > ".join(headings),
    )
    return line.removesuffix(" > ")


@lru_cache(maxsize=16)
def _file(path: str) -> str:
    return PurePosixPath(path).stem


def _document_terms(
    document: StoredDocument, card: DocumentCard | None
) -> Mapping[str, Sequence[str]]:
    """The terms of those fields that all chunks of a document share."""
    summary = [bullet.partition(" — ")[2] for bullet in card.summary6] if card else []
    return {
        "title": terms(document.title),
        "file": terms(_file(document.path)) if document.url is None else (),
        "summary": terms("\n".join(summary)),
    }


def _postings(chunk: Chunk, fields: ChunkFields, shared: Mapping[str, Sequence[str]]) -> Postings:
    found = {
        **shared,
        "headings": terms("\n".join(chunk.heading_path)),
        "topic": terms(fields.topic),
        "text": terms(chunk.text),
    }
    return Postings(
        chunk_id=chunk.id,
        document_id=fields.document_id,
        frequencies=frequencies((found[name], weight) for name, weight in FIELD_WEIGHTS.items()),
        sequence=sequence([*found["title"], *found["text"]]),
    )


def keywords(text: str, limit: int = 10) -> list[str]:
    """The words that a chunk repeats most, ties in order of appearance."""
    raws = text.split()
    short = max(map(len, raws), default=0) <= 2 * LONGEST
    counts = Counter(map(_keyword if short else _said, raws))
    del counts[""]
    return [word for word, _ in counts.most_common(limit)]


def _said(raw: str) -> str:
    """The word without what stands around it; empty where it says nothing by itself."""
    word = raw.strip("`*_.,;:!?()[]{}<>\"'#|=+-").lower()
    telling = 2 < len(word) <= LONGEST and word not in STOP_WORDS and word[0].isalpha()
    return word if telling else ""


_keyword = lru_cache(maxsize=100_000)(_said)
