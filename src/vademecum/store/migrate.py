"""Migrations: numbered SQL files, each applied once and recorded, in one transaction each."""

from dataclasses import dataclass
from importlib.resources import files

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from vademecum.errors import DatabaseTooOld

LOCK = 0x76616465  # "vade"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    name: str
    text: str


def migrations() -> list[Migration]:
    """All migrations of this version, in order."""
    found = [
        Migration(number=int(file.name[:4]), name=file.name, text=file.read_text(encoding="utf-8"))
        for file in files("vademecum.store.migrations").iterdir()
        if file.name.endswith(".sql")
    ]
    return sorted(found, key=lambda migration: migration.number)


async def migrate(connection: AsyncConnection[TupleRow]) -> list[str]:
    """Apply what is missing and answer the names applied.

    Safe when several processes start at once: one applies while the others wait. The lock
    belongs to a transaction, so it also works through a transaction pooler. Raises
    DatabaseTooOld when the database was made by a newer Vademecum.
    """
    wanted = migrations()
    if await _applied(connection) == [migration.number for migration in wanted]:
        return []
    done = []
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations ("
            " number integer PRIMARY KEY, name text NOT NULL,"
            " applied_at timestamptz NOT NULL DEFAULT now())"
        )
        applied = await _applied(connection)
        if applied and applied[-1] > wanted[-1].number:
            raise DatabaseTooOld(
                f"the database has migration {applied[-1]}, this version knows {wanted[-1].number}",
                hint="Update Vademecum, or use another database.",
            )
        for migration in wanted:
            if migration.number not in applied:
                await connection.execute(migration.text)
                await connection.execute(
                    "INSERT INTO schema_migrations (number, name) VALUES (%s, %s)",
                    [migration.number, migration.name],
                )
                done.append(migration.name)
    return done


async def _applied(connection: AsyncConnection[TupleRow]) -> list[int]:
    cursor = await connection.execute("SELECT to_regclass('schema_migrations')")
    row = await cursor.fetchone()
    if row is None or row[0] is None:
        return []
    cursor = await connection.execute("SELECT number FROM schema_migrations ORDER BY number")
    return [number for (number,) in await cursor.fetchall()]
