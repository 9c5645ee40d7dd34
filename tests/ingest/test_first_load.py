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
from vademecum.store.db import Database
from vademecum.worker import BULK_JOBS

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


@pytest.mark.parametrize(("documents", "kept"), [(BULK_JOBS, 0), (3, 1)])
async def test_the_index_of_a_new_space(
    settings: Settings, write: Write, documents: int, kept: int
) -> None:
    looking = Looking()
    folder = write({f"{number}.md": f"# Page {number}\n\nText." for number in range(documents)})
    async with App.open(replace(settings, embedder="fake:words")) as app:
        looking.database = app.database
        app.embedders.opened["fake:words"] = looking
        report = await app.ingest.bulk_index(folder)

        assert (report.embedded, report.failed) == (documents, [])
        assert set(looking.seen) == {kept}
        assert await looking.indexes() == 1
