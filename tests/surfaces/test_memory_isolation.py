"""Reading and writing another user's memory, tried through every surface and in every field."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from click.testing import CliRunner
from mcp import Client
from serving import served

from vademecum.app import App
from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.store.memory import user_key
from vademecum.surfaces.cli.memory import memory_command
from vademecum.surfaces.http.api import create_api
from vademecum.surfaces.mcp import build

ALICE, BORIS = "alice.n@forces.example", "boris.k@forces.example"
SECRET = "examples"
"""A word of Boris's memory that no other text of these tests holds."""
TABLES = ("memory", "memory_passages", "memory_versions", "interactions", "users")

FIELDS: dict[str, dict[str, Any]] = {
    "show": {"user": ALICE, "project": ""},
    "inject": {"user": ALICE, "project": "", "prompt": "Be polite."},
    "update": {
        "user": ALICE,
        "project": "",
        "exchange": "1",
        "message": "I prefer concise answers.",
        "reply": "Good.",
        "agent": "policy",
    },
    "remember": {"user": ALICE, "project": "", "fact": "Prefers concise answers."},
    "edit": {"user": ALICE, "project": "", "text": "Prefers concise answers."},
    "search": {"user": ALICE, "project": "", "query": "answers"},
    "versions": {"user": ALICE, "project": ""},
    "diff": {"user": ALICE, "project": "", "old": 0, "new": 1},
    "undo": {"user": ALICE, "project": ""},
    "export": {"user": ALICE},
    "forget": {"user": ALICE},
}
"""Every operation and its fields, each in turn replaced by an attack."""

ATTACKS = (
    "' OR '1'='1",
    "x'; UPDATE memory SET content = 'x'; --",
    "x' UNION SELECT content FROM memory --",
    "'); SELECT set_config('vade.user', (SELECT user_id::text FROM memory LIMIT 1), false); --",
    "%",
    "%(id)s",
    "$1",
    "\\' OR 1=1 --",
)

Call = tuple[str, dict[str, Any]]
Ask = Callable[[str, dict[str, Any]], Awaitable[str]]


@pytest.fixture
def boris(settings: Settings, database_url: str) -> Iterator[list[str]]:
    """Boris has memories; what could name him beside his address. His rows stay as they are."""
    runner, place = (
        CliRunner(),
        {"VADE_HOME": str(settings.home), "VADE_DATABASE_URL": database_url},
    )
    for project in ((), ("--project", "garden")):
        done = runner.invoke(
            memory_command,
            ["remember", "Prefers short answers with examples.", "--user", BORIS, *project],
            env=place,
        )
        assert done.exit_code == 0, done.output
    with psycopg.connect(database_url, autocommit=True) as connection:
        key = user_key(BORIS, None)
        (found,) = connection.execute(
            "SELECT id FROM users WHERE email_hash = %s", (key,)
        ).fetchall()
        before = rows_of(connection, found[0])
        assert SECRET in str(before)
        yield [key, str(found[0])]
        assert rows_of(connection, found[0]) == before


def rows_of(connection: "psycopg.Connection[Any]", user: object) -> list[Any]:
    return [
        connection.execute(
            f"SELECT * FROM {table} WHERE {'id' if table == 'users' else 'user_id'} = %s "
            "ORDER BY 1, 2, 3",
            (user,),
        ).fetchall()
        for table in TABLES
    ]


@asynccontextmanager
async def library(settings: Settings, folder: Path) -> AsyncIterator[Ask]:
    async with App.open(settings) as app:

        async def ask(operation: str, fields: dict[str, Any]) -> str:
            named = dict(fields)
            first = [
                named.pop(key)
                for key in ("user", "prompt", "fact", "text", "query")
                if key in named
            ]
            try:
                return str(await getattr(app.memory, operation)(*first, **named))
            except BadInput as error:
                return f"{error} {error.hint}"

        yield ask


@asynccontextmanager
async def http(settings: Settings, folder: Path) -> AsyncIterator[Ask]:
    (folder / "models").symlink_to(settings.home / "models")
    assert settings.database_url
    with served(folder, settings.database_url, VADE_EMBEDDER="none") as running:
        bearer = running.client().headers
        async with httpx.AsyncClient(base_url=running.address.url, headers=bearer) as client:

            async def ask(operation: str, fields: dict[str, Any]) -> str:
                answer = await client.post(f"/memory/{operation}", json=fields, timeout=30)
                assert answer.status_code in (200, 400, 422), answer.text
                return answer.text

            yield ask
            bare = await client.post(
                "/memory/show", json={"user": ALICE}, headers={"Authorization": ""}
            )
            assert bare.status_code == 401
            assert (await client.post("/memory/show", json={})).status_code == 422
            for user, known in ((ALICE, False), (BORIS, True)):
                asked = {"user": user, "format": "text"}
                text = (await client.post("/memory/export", json=asked)).text
                assert text.startswith("User ")
                assert (SECRET in text) == known


@asynccontextmanager
async def mcp(settings: Settings, folder: Path) -> AsyncIterator[Ask]:
    async with App.open(settings) as app:

        async def opened() -> App:
            return app

        async with Client(build(opened)) as client:
            nobody = await client.call_tool("recall", {"query": "answers"})
            assert nobody.is_error

            async def ask(operation: str, fields: dict[str, Any]) -> str:
                tool = {"show": "recall", "search": "recall", "remember": "remember"}.get(operation)
                if tool is None:  # not offered to agents
                    return ""
                answer = await client.call_tool(tool, fields)
                return f"{answer.content} {answer.structured_content}"

            yield ask


def calls(names_of_boris: list[str], attacks: tuple[str, ...]) -> Iterator[Call]:
    """Each operation as it is meant, then with each attack in each field."""
    for operation, fields in FIELDS.items():
        yield operation, fields
        for field, value in fields.items():
            if isinstance(value, str):
                for attack in (*attacks, *(names_of_boris if field == "user" else ())):
                    yield operation, fields | {field: attack}


@pytest.mark.parametrize("surface", [library, http, mcp])
async def test_nothing_of_another_user_is_read_or_written(
    surface: Any, settings: Settings, boris: list[str], tmp_path: Path
) -> None:
    async with surface(settings, tmp_path) as ask:
        assert SECRET in await ask("show", {"user": BORIS, "project": ""})
        for operation, fields in calls(boris, ATTACKS):
            answer = await ask(operation, fields)
            assert SECRET not in answer, (operation, fields, answer)


def test_nothing_of_another_user_is_read_or_written_by_command(
    settings: Settings, boris: list[str], tmp_path: Path
) -> None:
    place = {"VADE_HOME": str(settings.home), "VADE_DATABASE_URL": str(settings.database_url)}
    runner = CliRunner()
    assert SECRET in runner.invoke(memory_command, ["show", "--user", BORIS], env=place).output
    for operation, fields in calls(boris, ATTACKS[:3]):
        if operation == "inject":  # for programs
            continue
        done = runner.invoke(memory_command, command_line(operation, fields, tmp_path), env=place)
        assert done.exit_code in (0, 2), done.output
        assert SECRET not in done.output, (operation, fields, done.output)
        assert "bug" not in done.output


def command_line(operation: str, fields: dict[str, Any], folder: Path) -> list[str]:
    named = dict(fields)
    plain = [str(named.pop(key)) for key in ("fact", "query", "old", "new") if key in named]
    for key, option in (("message", "message"), ("reply", "reply"), ("text", "file")):
        if key in named:
            path = folder / key
            path.write_text(named.pop(key))
            named[option] = path
    options = [f"--{key}={value}" for key, value in named.items()]
    options += ["--yes"] if operation == "forget" else []
    return [operation, *options, "--", *plain]


def test_every_route_of_the_memory_is_tried_and_names_its_user() -> None:
    described = create_api(None).openapi()
    routes = {path for path in described["paths"] if path.startswith("/memory/")}
    assert routes == {f"/memory/{name}" for name in FIELDS} | {"/memory/receipts"}
    for path in routes - {"/memory/receipts"}:
        body = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        asked = described["components"]["schemas"][body["schema"]["$ref"].rpartition("/")[2]]
        assert "user" in asked["required"], json.dumps(asked)
