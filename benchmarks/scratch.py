"""A database of a benchmark's own: made for it, used by no one else, gone afterwards."""

import asyncio
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from vademecum.app import App
from vademecum.settings import Settings
from vademecum.store.embedded import EmbeddedDatabase

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vademecum-benchmarks"
"""Outlives the benchmark: the embedder's graph, which takes seconds to build."""


@asynccontextmanager
async def scratch_app(
    server: str | None = None, *, embedder: str | None = None, threads: int = 0
) -> AsyncIterator[App]:
    """An open App on an empty database.

    `server` is the connection string of a PostgreSQL where we may create a database; without it
    an embedded one is started, and stopped at the end.
    """
    models = CACHE / "models"
    models.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="vade-bench-"))
    try:
        (home / "models").symlink_to(models)
        async with _database(home, server) as url:
            settings = Settings(home=home, database_url=url, threads=threads)
            if embedder is not None:
                settings = replace(settings, embedder=embedder)
            async with App.open(settings) as app:
                yield app
    finally:
        await remove(home)


async def remove(home: Path) -> None:
    """The server's watcher ends a moment after it, and until then makes its lock files anew."""
    for _ in range(50):
        shutil.rmtree(home, ignore_errors=True)
        if not home.exists():
            return
        await asyncio.sleep(0.1)
    print(f"could not remove {home}")


@asynccontextmanager
async def _database(home: Path, server: str | None) -> AsyncIterator[str]:
    """The connection string of a database that is dropped at the end."""
    if server is None:
        embedded = EmbeddedDatabase(home)
        try:
            yield await embedded.start()
        finally:
            await embedded.stop()
        return
    name = f"vade_bench_{uuid.uuid4().hex[:12]}"
    connection = await psycopg.AsyncConnection.connect(server, autocommit=True)
    async with connection:
        await connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield make_conninfo(server, dbname=name)
        finally:
            await connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )
