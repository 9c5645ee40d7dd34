"""A large first load builds the vector index once, after it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fakes import FakeEmbedder
from vademecum.app import App
from vademecum.settings import Settings
from vademecum.store import embeddings
from vademecum.store.db import Database

Write = Callable[[dict[str, str | bytes]], Path]

INDEXES = "SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'embeddings_%_hnsw'"


class Looking(FakeEmbedder):
    """Looks each time whether there is a vector index."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    async def indexes(self) -> int:
        async with self.database.connection() as connection:
            row = await (await connection.execute(INDEXES)).fetchone()
        return int(row[0]) if row else 0

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.seen.append(await self.indexes())
        return await super().embed(texts)


async def test_the_index_of_a_new_space(
    settings: Settings, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = Looking()
    monkeypatch.setattr(embeddings, "WHOLE", 50)

    def pages(count: int) -> dict[str, str | bytes]:
        return {f"{number}.md": f"# Page {number}\n\nText." for number in range(count)}

    async with App.open(replace(settings, embedder="fake:words")) as app:
        looking.database = app.database
        app.embedders.opened["fake:words"] = looking
        # Few windows are all compared, and have none.
        await app.ingest.bulk_index(write(pages(49)))
        assert await looking.indexes() == 0
        # Of more it is made after them, and stays where few more come.
        report = await app.ingest.bulk_index(write(pages(52)))
        assert (report.embedded, report.failed) == (3, [])
        assert set(looking.seen) == {0}
        assert await looking.indexes() == 1
        looking.seen.clear()
        await app.ingest.bulk_index(write(pages(54)))
        assert (set(looking.seen), await looking.indexes()) == ({1}, 1)
        # As many again as there are: it is dropped before, and made anew.
        looking.seen.clear()
        await app.ingest.bulk_index(write(pages(114)))
        assert (set(looking.seen), await looking.indexes()) == ({0}, 1)
