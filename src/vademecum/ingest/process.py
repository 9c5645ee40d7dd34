"""Prepared documents to searchable ones: embed what is new, swap in one transaction.

    [Prepared] --embed--> vectors --swap--> searchable

Readers see a document's old chunks until its new ones, with vectors and postings, replace them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vademecum.inference.embedder import Embedder
from vademecum.ingest.prepare import Prepared, PreparedChunk
from vademecum.store import chunks, documents, embeddings, jobs, ledger, lexical, runs
from vademecum.store.db import Connection
from vademecum.store.embeddings import Embedding
from vademecum.store.jobs import Job
from vademecum.store.lexical import Lexicon
from vademecum.telemetry.spans import span
from vademecum.types import ChunkId, DocumentId, SpaceId, Vector


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
    terms = set().union(*(c.postings.frequencies for d in prepared for c in d.chunks))
    term_ids = await lexicon.ids(connection, collection, terms)
    async with connection.transaction():
        current = await documents.lock_unchanged(connection, [d.document for d in prepared])
        rows = [c for d in prepared if d.document.id in current for c in d.chunks]
        document_of = await chunks.ids_of(connection, current)
        old = set(document_of)
        new = {row.chunk.id for row in rows}
        await lexical.delete(connection, old)
        await chunks.delete(connection, old - new)
        written = [(row.chunk, row.fields) for row in rows]
        await chunks.update(connection, [row for row in written if row[0].id in old])
        await chunks.insert(connection, [row for row in written if row[0].id not in old])
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
