"""Stored documents to searchable ones: split, embed what is new, swap in one transaction.

    [StoredDocument] --prepare--> [Prepared] --embed--> vectors --swap--> searchable

Readers see a document's old chunks until its new ones, with vectors and postings, replace them.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from vademecum.inference.bound import ByteTokenizer
from vademecum.inference.embedder import Embedder, Tokenizer
from vademecum.inference.words import WordTokenizer
from vademecum.ingest.language import language
from vademecum.ingest.split import ChunkPolicy, split
from vademecum.ingest.summary import summary6
from vademecum.ingest.windows import windows
from vademecum.profiles.profile import Profile
from vademecum.search.terms import STOP_WORDS, frequencies, term_sequence
from vademecum.store import chunks, documents, embeddings, jobs, ledger, lexical, runs
from vademecum.store.chunks import ChunkFields
from vademecum.store.db import Connection
from vademecum.store.documents import StoredDocument
from vademecum.store.embeddings import Embedding
from vademecum.store.jobs import Job
from vademecum.store.ledger import DocumentCard
from vademecum.store.lexical import Lexicon, Postings
from vademecum.telemetry.spans import span
from vademecum.types import Chunk, ChunkId, Document, DocumentId, SpaceId, Vector

SPLITTER_VERSION = 1
"""Raise it when the same text would give other chunks, terms or windows."""

WINDOW_OVERLAP = 32
"""Tokens that the windows of one chunk share."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Documents in the windows of another embedder than the one that makes their chunks, and its
    vectors of them, by digest."""

    space: SpaceId
    prepared: Sequence[Prepared]
    vectors: dict[bytes, Vector]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """What a swap did."""

    documents: int
    chunks: int
    embedded: int
    """Chunks with at least one new vector."""
    reused: int
    """Chunks that kept all of theirs."""


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
                postings=Postings(
                    chunk_id=chunk.id,
                    document_id=document.id,
                    frequencies=_frequencies(document, chunk, fields, card),
                    sequence=term_sequence(f"{document.title}\n{chunk.text}"),
                ),
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
        file=PurePosixPath(document.path).stem,
        topic=fields.topic,
        title=document.title,
        headings=" > ".join(headings),
    )
    return line.removesuffix(" > ")


def _frequencies(
    document: StoredDocument, chunk: Chunk, fields: ChunkFields, card: DocumentCard | None
) -> Mapping[str, int]:
    texts = {
        "title": document.title,
        "headings": "\n".join(chunk.heading_path),
        "file": PurePosixPath(document.path).stem if document.url is None else "",
        "topic": fields.topic,
        "text": chunk.text,
        "summary": "\n".join(bullet.partition(" — ")[2] for bullet in card.summary6)
        if card
        else "",
    }
    return frequencies((texts[field], weight) for field, weight in FIELD_WEIGHTS.items())


def keywords(text: str, limit: int = 10) -> list[str]:
    """The words that a chunk repeats most, ties in order of appearance."""
    words = (word.strip("`*_.,;:!?()[]{}<>\"'#|=+-").lower() for word in text.split())
    counts = Counter(
        word
        for word in words
        if 2 < len(word) <= 40 and word not in STOP_WORDS and word[0].isalpha()
    )
    return [word for word, _ in counts.most_common(limit)]


async def reusable(
    connection: Connection, space: SpaceId, ids: Sequence[DocumentId]
) -> dict[bytes, Vector]:
    """The vectors that documents have now, by the digest of what was embedded."""
    stored = await embeddings.of_documents(connection, space, ids)
    return {embedding.input_hash: embedding.vector for embedding in stored}


async def embed(
    prepared: Sequence[Prepared], known: dict[bytes, Vector], embedder: Embedder
) -> dict[bytes, Vector]:
    """A vector for every window that has none yet, by digest; equal windows are embedded once."""
    missing = {
        window.digest: window.text
        for document in prepared
        for chunk in document.chunks
        for window in chunk.windows
        if window.digest not in known
    }
    texts = list(missing.values())
    provider, _, model = embedder.space.model.partition(":")
    with span("embed", provider, model=model, chunk_count=len(texts)) as traced:
        made = await embedder.embed(texts)
        if traced.recording:
            traced.set(tokens_processed=sum(embedder.tokenizer.counts(texts)))
    return dict(zip(missing, made, strict=True))


async def swap(
    connection: Connection,
    prepared: Sequence[Prepared],
    *,
    worker: str,
    taken: Sequence[Job],
    known: dict[bytes, Vector],
    made: dict[bytes, Vector],
    space: SpaceId | None,
    lexicon: Lexicon,
    recipe: str,
    also: Beside | None = None,
) -> Swapped:
    """Replace the chunks of documents of one collection by their new ones, all in one transaction
    with the end of their jobs. `also` are vectors of them in another space.

    A document that was changed or deleted since it was taken up is left alone, and its job is
    given back.
    """
    if not prepared:
        return Swapped(documents=0, chunks=0, embedded=0, reused=0)
    collection = prepared[0].document.collection_id
    terms = {t for d in prepared for c in d.chunks for t in c.postings.frequencies}
    term_ids = await lexicon.ids(connection, collection, terms)
    async with connection.transaction():
        current = await documents.lock_unchanged(connection, [d.document for d in prepared])
        rows = [c for d in prepared if d.document.id in current for c in d.chunks]
        document_of = await chunks.ids_of(connection, current)
        old = set(document_of)
        new = {row.chunk.id for row in rows}
        await lexical.delete(connection, old)
        await chunks.delete(connection, old - new)
        await chunks.upsert(connection, [(row.chunk, row.fields) for row in rows])
        if space is not None:
            await _write_vectors(connection, space, rows, old, known, made)
        if also is not None:
            beside = [c for d in also.prepared if d.document.id in current for c in d.chunks]
            await _write_vectors(connection, also.space, beside, old, also.vectors, {})
        await lexical.insert(connection, collection, [row.postings for row in rows], term_ids)
        await documents.mark_processed(
            connection,
            {d.document.id: d.facets for d in prepared if d.document.id in current},
            recipe=recipe,
        )
        await ledger.upserted(
            connection,
            {
                d.document.id: sum(len(c.windows) for c in d.chunks)
                for d in prepared
                if d.card and d.document.id in current
            },
        )
        await jobs.complete(connection, worker, [j for j in taken if j.document_id in current])
        await jobs.give_back(connection, worker, [j for j in taken if j.document_id not in current])
        run_of = {job.document_id: job.run_id for job in taken if job.run_id is not None}
        made_by = [run_of.get(row.fields.document_id) for row in rows if row.chunk.id not in old]
        unmade_by = [run_of.get(document_of[chunk]) for chunk in old - new]
        # Last, since every swap of a run waits here for the one before.
        await runs.count_chunks(connection, created=_counted(made_by), deleted=_counted(unmade_by))
    embedded = sum(any(w.digest in made for w in row.windows) for row in rows)
    with_vectors = sum(bool(row.windows) for row in rows)
    return Swapped(
        documents=len(current), chunks=len(rows), embedded=embedded, reused=with_vectors - embedded
    )


def _counted(run_ids: Iterable[int | None]) -> Counter[int]:
    return Counter(run for run in run_ids if run is not None)


async def _write_vectors(
    connection: Connection,
    space: SpaceId,
    rows: Sequence[PreparedChunk],
    old: set[ChunkId],
    known: dict[bytes, Vector],
    made: dict[bytes, Vector],
) -> None:
    """Vectors of chunks that are new, or changed, or embedded again; the others stay where they
    are."""
    vectors = known | made
    kept = [row.chunk.id for row in rows if row.chunk.id in old]
    stored = await embeddings.digests(connection, space, kept)
    changed = [
        row
        for row in rows
        if stored.get(row.chunk.id) != [w.digest for w in row.windows]
        or any(w.digest in made for w in row.windows)
    ]
    await embeddings.delete(connection, space, [r.chunk.id for r in changed if r.chunk.id in old])
    await embeddings.insert(
        connection,
        space,
        [
            Embedding(
                chunk_id=row.chunk.id,
                window_index=index,
                document_id=row.fields.document_id,
                collection_id=row.fields.collection_id,
                input_hash=window.digest,
                vector=vectors[window.digest],
            )
            for row in changed
            for index, window in enumerate(row.windows)
        ],
    )
