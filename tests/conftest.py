"""A real PostgreSQL for every test: one server a session, one fresh database a test."""

import asyncio
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from fakes import FakeEmbedder
from vademecum.app import App
from vademecum.inference.open import open_embedder
from vademecum.settings import Settings
from vademecum.store.db import Database
from vademecum.store.embedded import EmbeddedDatabase

Vade = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def no_settings_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in list(os.environ):
        if variable.startswith("VADE_"):
            monkeypatch.delenv(variable)
    for variable in ("PRJ_NEON_DATABASE_URL", "DATABASE__URL"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose model is built once a session."""
    home = tmp_path_factory.mktemp("home")
    embedder = open_embedder("local:all-MiniLM-L6-v2", home=home, threads=1)
    assert embedder is not None
    asyncio.run(embedder.embed_query("build the graph"))
    return home


@pytest.fixture(scope="session")
def server(home: Path) -> Iterator[str]:
    """The connection string of a running server."""
    embedded = EmbeddedDatabase(home)
    yield asyncio.run(embedded.start())
    asyncio.run(embedded.stop())


@pytest.fixture(scope="session")
def template(server: str) -> str:
    """The name of a migrated database without rows."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE vade_template")
    url = psycopg.conninfo.make_conninfo(server, dbname="vade_template")

    async def migrate() -> None:
        async with Database(url):
            pass

    asyncio.run(migrate())
    return "vade_template"


@pytest.fixture
def database_url(server: str, template: str) -> Iterator[str]:
    """A fresh database, gone after the test."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        yield psycopg.conninfo.make_conninfo(server, dbname=name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url) as database:
        yield database


@pytest.fixture
def settings(home: Path, database_url: str) -> Settings:
    return Settings(home=home, database_url=database_url)


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    async with App.open(settings) as app:
        yield app


@pytest.fixture
async def lexical_app(settings: Settings) -> AsyncIterator[App]:
    """Makes collections without vectors, for tests that are not about meaning."""
    async with App.open(replace(settings, embedder="none")) as app:
        yield app


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
async def fake_app(settings: Settings, embedder: FakeEmbedder) -> AsyncIterator[App]:
    """Embeds with the test's own `embedder`, so that a test can see what it is asked for."""
    async with App.open(replace(settings, embedder="fake:words")) as app:
        app.embedders.opened["fake:words"] = embedder
        yield app


@pytest.fixture
def vade(home: Path, database_url: str) -> Vade:
    """Runs the command as a user would; `vade("search", "x")` answers the finished process."""
    command = Path(sys.executable).parent / "vade"
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("VADE_")
    } | {"VADE_HOME": str(home), "VADE_DATABASE_URL": database_url}

    def run(
        *arguments: str | Path, stdout: int = subprocess.PIPE, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [command, *arguments],
            env=environment | variables,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[dict[str, str | bytes]], Path]:
    """Writes a folder of files from their relative paths and contents; the folder is made anew."""

    def write_files(files: dict[str, str | bytes]) -> Path:
        folder = tmp_path / "docs"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    return write_files
