"""Documents: the newest content of every source, and what changed."""

import hashlib
from collections.abc import Collection as Ids
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from vademecum.errors import BadInput
from vademecum.store import jobs
from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import Change, CollectionId, Document, DocumentId, Format, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """What is stored of a file, to tell whether it changed."""

    id: DocumentId
    file_path: str
    source_hash: str
    recipe: str | None
    needs_processing: bool
    run_id: int | None
    """The last run that stored it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document as a worker takes it up."""

    id: DocumentId
    collection_id: CollectionId
    collection: str
    profile: str
    declaration: str | None
    embedder: str
    serving_embedder: str
    """Of the vectors that searches use; another one while the collection moves to a new model."""
    path: str
    url: str | None
    title: str
    format: Format
    text: str
    content_hash: str
    recipe: str | None
    """What made its present chunks; None where nothing of them is to be used again."""
    source_hash: str
    metadata: Mapping[str, object]
    updated_at: datetime
    """Any change, or a wish to have all made anew, moves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Match:
    id: DocumentId
    path: str
    url: str | None
    file_path: str | None
    title: str
    content_hash: str
    source_hash: str
    metadata: Mapping[str, object]


def content_hash(text: str) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def written(title: str, text: str, metadata: Mapping[str, object] | None = None) -> Document:
    """A document that we write ourselves: its text is its source."""
    return Document(
        title=title,
        text=text,
        format="markdown",
        source_hash=content_hash(text),
        metadata=metadata or {},
    )


async def upsert(
    connection: Connection,
    collection: CollectionId,
    source: Source,
    document: Document,
    *,
    force: bool = False,
    run: int | None = None,
) -> tuple[Change, DocumentId]:
    """Store a document and queue what follows from it; call inside a transaction.

    Unchanged content only touches the fetch time. Where url and file match two rows they become
    one, the url's. The old chunks go on serving until the new ones replace them in one step.
    """
    if source.url is None and source.file_path is None:
        raise BadInput("a document needs a url or a file")
    values = {
        "collection": collection,
        "url": source.url,
        "file_path": source.file_path,
        "title": document.title,
        "format": document.format,
        "content": document.text,
        "content_hash": content_hash(document.text),
        "source_hash": document.source_hash,
        "metadata": Jsonb(dict(document.metadata)),
        "modified_at": source.modified_at,
        "run": run,
    }
    await connection.execute(SQL["lock_collection"], {"collection": collection})
    async with connection.cursor(row_factory=class_row(_Match)) as cursor:
        await cursor.execute(SQL["documents_of_source"], values)
        matches = await cursor.fetchall()
    if not matches:
        return "inserted", await _insert(connection, collection, source, document, run=run)
    kept, *doubles = matches
    if doubles:
        await delete(connection, [double.id for double in doubles])
    same = (
        kept.content_hash == values["content_hash"]
        and kept.title == document.title
        and dict(kept.metadata) == dict(document.metadata)
    )
    if same and not doubles and not force:
        await connection.execute(SQL["touch_document"], values | {"id": kept.id})
        return "unchanged", kept.id
    await connection.execute(SQL["update_document"], values | {"id": kept.id, "force": force})
    await jobs.enqueue(connection, [kept.id], run=run)
    return "updated", kept.id


async def insert(
    connection: Connection,
    collection: CollectionId,
    new: Sequence[tuple[Source, Document]],
    *,
    run: int | None = None,
) -> dict[str, DocumentId]:
    """Store what nothing is stored of, and queue what follows; call inside a transaction. By
    path; those of which the url, the file or the path is known are left out, and want `upsert`."""
    if not new:
        return {}
    sources, read = [source for source, _ in new], [document for _, document in new]
    await connection.execute(SQL["lock_collection"], {"collection": collection})
    cursor = await connection.execute(
        SQL["insert_documents"],
        {
            "collection": collection,
            "paths": [source.path for source in sources],
            "urls": [source.url for source in sources],
            "file_paths": [source.file_path for source in sources],
            "titles": [document.title for document in read],
            "formats": [document.format for document in read],
            "contents": [document.text for document in read],
            "content_hashes": [content_hash(document.text) for document in read],
            "source_hashes": [document.source_hash for document in read],
            "metadata": [Jsonb(dict(document.metadata)) for document in read],
            "times": [source.modified_at for source in sources],
            "run": run,
            "priority": jobs.PRIORITY,
        },
    )
    return dict(await cursor.fetchall())


async def _insert(
    connection: Connection,
    collection: CollectionId,
    source: Source,
    document: Document,
    *,
    run: int | None,
) -> DocumentId:
    for path in _paths(source):
        placed = replace(source, path=path)
        if stored := await insert(connection, collection, [(placed, document)], run=run):
            return stored[path]
    raise BadInput(f"{source.path}: another document of the collection has this path")


def _paths(source: Source) -> Iterator[str]:
    """The source's own path and, for where another document has it, longer ones that say which."""
    yield source.path
    if source.file_path is None:
        yield str(source.url)
        return
    parts = PurePath(source.file_path).parts
    depth = len(PurePath(source.path).parts)
    yield from ("/".join(parts[-n:]) for n in range(depth + 1, len(parts)))
    yield source.file_path


async def touch(connection: Connection, ids: Ids[DocumentId]) -> None:
    """Note, to the day, that these were looked at and had not changed."""
    await connection.execute(SQL["touch_documents"], {"ids": list(ids)})


async def lock(connection: Connection, ids: Ids[DocumentId]) -> None:
    """Keep workers from these until the transaction ends."""
    await connection.execute(SQL["lock_to_delete"], {"ids": list(ids)})


async def delete(connection: Connection, ids: Ids[DocumentId]) -> None:
    """Documents with their chunks, vectors, postings and jobs."""
    await connection.execute(SQL["delete_documents"], {"ids": list(ids)})


async def files_below(
    connection: Connection, collection: CollectionId, folder: str
) -> dict[str, StoredFile]:
    """By absolute path, the stored files of a folder and all folders in it."""
    prefix = folder.rstrip("/") + "/"
    async with connection.cursor(row_factory=class_row(StoredFile)) as cursor:
        await cursor.execute(SQL["files_below"], {"collection": collection, "folder": prefix})
        return {file.file_path: file async for file in cursor}


async def elsewhere(
    connection: Connection, collection: CollectionId, folder: str
) -> list[DocumentId]:
    """What the collection holds that is not of this folder."""
    prefix = folder.rstrip("/") + "/"
    cursor = await connection.execute(
        SQL["documents_elsewhere"], {"collection": collection, "folder": prefix}
    )
    return [document for (document,) in await cursor.fetchall()]


async def contents(connection: Connection, ids: Sequence[DocumentId]) -> list[StoredDocument]:
    async with connection.cursor(row_factory=class_row(StoredDocument)) as cursor:
        await cursor.execute(SQL["document_contents"], {"ids": list(ids)})
        return await cursor.fetchall()


async def lock_unchanged(
    connection: Connection, documents: Sequence[StoredDocument]
) -> set[DocumentId]:
    """Lock those documents that are still as they were taken up."""
    cursor = await connection.execute(
        SQL["lock_documents"],
        {
            "ids": [document.id for document in documents],
            "times": [document.updated_at for document in documents],
        },
    )
    return {document for (document,) in await cursor.fetchall()}


async def mark_processed(
    connection: Connection, facets: Mapping[DocumentId, Mapping[str, object]], *, recipe: str
) -> None:
    """Documents whose chunks are made, with the facets that hold from now on."""
    await connection.execute(
        SQL["documents_processed"],
        {
            "ids": list(facets),
            "facets": [Jsonb(dict(values)) for values in facets.values()],
            "recipe": recipe,
        },
    )


async def to_reprocess(
    connection: Connection, collection: CollectionId, *, recipe: str, force: bool
) -> list[DocumentId]:
    """Documents whose chunks another recipe made; all of them with `force`."""
    cursor = await connection.execute(
        SQL["documents_to_reprocess"],
        {"collection": collection, "recipe": recipe, "force": force},
    )
    return [document for (document,) in await cursor.fetchall()]


async def is_due(connection: Connection, document: DocumentId, *, recipe: str, run: int) -> bool:
    """Whether its chunks are to be made, and no worker of the run is at it."""
    cursor = await connection.execute(
        SQL["document_due"], {"document": document, "recipe": recipe, "run": run}
    )
    return await cursor.fetchone() is not None


async def path_of(connection: Connection, document: DocumentId) -> str:
    """What readers cite the document by."""
    cursor = await connection.execute(SQL["document_path"], {"document": document})
    row = await cursor.fetchone()
    return str(row[0]) if row else ""


async def forget_recipe(connection: Connection, ids: Ids[DocumentId]) -> None:
    """Let a rebuild embed these anew: nothing of their present chunks is reused."""
    await connection.execute(SQL["forget_recipe"], {"ids": list(ids)})


async def text_of(
    connection: Connection, collection: CollectionId, path: str, *, section: str | None = None
) -> str | None:
    """The Markdown of a document, or the chunks of one section of it; None where it is unknown."""
    cursor = await connection.execute(
        SQL["document_text"], {"collection": collection, "path": path}
    )
    row = await cursor.fetchone()
    if row is None or section is None:
        return str(row[1]) if row else None
    cursor = await connection.execute(
        SQL["section_texts"], {"collection": collection, "document": row[0], "section": section}
    )
    return "\n\n".join(text for (text,) in await cursor.fetchall()) or None


async def paths(connection: Connection, collection: CollectionId) -> list[str]:
    """Of all documents of the collection, in no order."""
    cursor = await connection.execute(SQL["document_paths"], {"collection": collection})
    return [path for (path,) in await cursor.fetchall()]


async def holding(connection: Connection, collection: CollectionId, words: str) -> list[DocumentId]:
    """The documents of the collection that hold all of these words, in any form, in no order."""
    cursor = await connection.execute(
        SQL["documents_holding"], {"collection": collection, "words": words}
    )
    return [document for (document,) in await cursor.fetchall()]
