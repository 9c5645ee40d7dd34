"""The named queries: each is one that the server understands, and each is used."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import psycopg

import vademecum
from vademecum.store.sql import SQL

_PARAMETER = re.compile(r"%\((\w+)\)[sb]")


def prepared_form(query: str) -> str:
    """The query with parameters as PREPARE wants them, one number for each place."""
    numbers = iter(range(1, 1000))
    return _PARAMETER.sub(lambda _: f"${next(numbers)}", query).replace("%%", "%")


def test_every_query_prepares(database_url: str) -> None:
    refused = {}
    with psycopg.connect(database_url, autocommit=True) as connection:
        for name, query in SQL.items():
            try:
                if query.lstrip().startswith("COPY"):
                    with connection.cursor().copy(query):
                        pass
                else:
                    text = prepared_form(query).rstrip(";")
                    connection.execute(f"PREPARE {name} AS {text}".encode())
            except psycopg.Error as error:
                refused[name] = str(error)

    assert refused == {}


def test_every_query_is_used_and_every_name_that_is_used_exists() -> None:
    package = Path(vademecum.__path__[0])
    used = {
        name
        for path in package.rglob("*.py")
        if path.parent.name != "sql"
        for name in re.findall(r'\bSQL\["(\w+)"\]', path.read_text(encoding="utf-8"))
    }

    assert used == set(SQL)


def test_no_two_queries_share_a_name() -> None:
    names = Counter(
        name
        for file in files("vademecum.store.sql").iterdir()
        if file.name.endswith(".sql")
        for name in re.findall(r"^-- name: (\w+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    )

    assert [name for name, times in names.items() if times > 1] == []
    assert sorted(names) == sorted(SQL)
