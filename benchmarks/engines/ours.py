"""Vademecum itself: the database is there already, made by `App.bulk_index`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from engines.engine import LIMIT, Found
from engines.handover import COLLECTION, Handover
from engines.memory import server_now
from vademecum.app import App
from vademecum.inference.embedder import Embedder
from vademecum.settings import Settings
from vademecum.types import Mode, Query


async def build(handover: Handover, folder: Path) -> None:
    """Nothing is left to do."""


class Vademecum:
    modes: tuple[Mode, ...] = ("lexical", "dense", "hybrid")

    def __init__(self, app: App, embedder: Embedder) -> None:
        self._app, self.embedder = app, embedder

    async def search(self, text: str, mode: Mode) -> Found:
        query = Query(text=text, collection=COLLECTION, mode=mode, limit=LIMIT)
        result = await self._app.search(query)
        if result.mode != mode:
            raise RuntimeError(f"{mode} search is not to be had: {' '.join(result.notices)}")
        return [(str(hit.chunk_id), hit.text) for hit in result.results]

    async def server_memory(self) -> int | None:
        return await server_now(self._app.database.conninfo)


@asynccontextmanager
async def connect(handover: Handover, folder: Path) -> AsyncIterator[Vademecum]:
    about = handover.about
    settings = Settings(home=Path(about["home"]), database_url=about["database"])
    async with App.open(settings) as app:
        embedder = app.embedders.named(about["embedder"])
        assert embedder is not None
        yield Vademecum(app, embedder)
