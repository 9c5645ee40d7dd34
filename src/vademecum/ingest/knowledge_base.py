"""Knowledge bases: a folder of folders, each a collection, each with its ledger beside it.

ROOT/advantage/*.md --bulk-index--> collection advantage --> ROOT/advantage/{TASKS.md,.kb/}
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from vademecum.errors import BadInput, UnreadableSource
from vademecum.ingest.ledger_files import LedgerFiles
from vademecum.ingest.read.formats import reason_of
from vademecum.store import collections, ledger
from vademecum.store.db import Database
from vademecum.store.ledger import LedgerRow, Update
from vademecum.types import ChunkId, CollectionId

PROFILE = "kb"


class KnowledgeBases:
    """Keeps the files of knowledge bases in step with the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._files: dict[CollectionId, LedgerFiles | None] = {}
        self._noticed: set[str] = set()
        self._alone = asyncio.Lock()

    async def place(self, collection: CollectionId, root: Path) -> None:
        """Note the folder that a knowledge base is kept in."""

        async def store() -> None:
            async with self._database.connection() as connection:
                await ledger.set_root(connection, collection, os.fspath(root))

        await self._database.retry(store)
        self._files.pop(collection, None)

    async def rows(self, collection: str) -> list[LedgerRow]:
        """The ledger. Raises UnknownCollection."""
        async with self._database.connection() as connection:
            target = await collections.find(connection, collection)
            return await ledger.rows(connection, target.id)

    async def recent_updates(self, collection: str, *, limit: int = 20) -> list[Update]:
        """The documents of a collection that changed last. Raises BadInput, UnknownCollection."""
        if not 1 <= limit <= 1000:
            raise BadInput(f"n must be from 1 to 1000, not {limit}")
        async with self._database.connection() as connection:
            target = await collections.find(connection, collection)
            return await ledger.recent(connection, target.id, limit)

    async def chunk_metadata(
        self, collection: str, chunks: Sequence[ChunkId]
    ) -> dict[ChunkId, dict[str, object]]:
        """Every key of the metadata schema, by chunk. Raises UnknownCollection."""
        async with self._database.connection() as connection:
            target = await collections.find(connection, collection)
            return await ledger.chunk_metadata(connection, target.id, chunks)

    async def show(
        self, collection: CollectionId, notice: Callable[[str], None], *, last: bool = False
    ) -> None:
        """Write the ledger's files after a step; that they cannot be written fails nothing else.

        In a very large folder only some of the steps are shown, and always the `last`.
        """
        async with self._alone:
            files = await self._database.retry(partial(self._open, collection))
            if files is None or not (last or files.due):
                return
            try:
                for text in await self._write(collection, files):
                    self._once(text, notice)
            except OSError as error:
                why = error.strerror or str(error)
                self._once(f"the ledger in {files.root} cannot be written: {why}", notice)

    async def _write(self, collection: CollectionId, files: LedgerFiles) -> list[str]:
        lock = files.lock()
        await asyncio.to_thread(lock.__enter__)
        try:
            rows = await self._database.retry(partial(self._read, collection))
            return await asyncio.to_thread(files.write, rows)
        finally:
            lock.__exit__(None, None, None)

    async def _open(self, collection: CollectionId) -> LedgerFiles | None:
        if collection not in self._files:
            async with self._database.connection() as connection:
                root = await ledger.root(connection, collection)
                name = await collections.name_of(connection, collection)
            self._files[collection] = LedgerFiles(name, Path(root)) if root else None
        return self._files[collection]

    async def _read(self, collection: CollectionId) -> list[LedgerRow]:
        async with self._database.connection() as connection:
            return await ledger.rows(connection, collection)

    def _once(self, text: str, notice: Callable[[str], None]) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            notice(text)


def folders(root: Path) -> list[Path]:
    """The folders of a root, each a knowledge base, by name. Raises UnreadableSource."""
    try:
        with os.scandir(root) as entries:
            found = [e.name for e in entries if e.is_dir() and not e.name.startswith((".", "_"))]
    except OSError as error:
        raise UnreadableSource(str(root), reason_of(error)) from None
    return [root / name for name in sorted(found)]
