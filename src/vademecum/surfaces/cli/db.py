"""db start, stop, status, migrate."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json

if TYPE_CHECKING:
    from vademecum.store.embedded import EmbeddedDatabase


@click.group(
    "db",
    epilog="""
\b
Examples:
  vade db status
  vade db migrate --database postgresql://user@host/name

The embedded server starts by itself when a command needs it, is shared by all processes of this
home, and stops when nobody has used it for a while.
""",
)
def db_command() -> None:
    """Start, stop and inspect the database."""


@db_command.command("start")
@options
def start(settings: Settings, as_json: bool) -> None:
    """Start the embedded server, if it is not running."""
    embedded = _embedded(settings)
    connection = asyncio.run(embedded.start())
    if as_json:
        print_json({"running": True, "connection": connection})
    else:
        click.echo(f"running: {connection}")


@db_command.command("stop")
@options
def stop(settings: Settings, as_json: bool) -> None:
    """Stop the embedded server, whoever uses it."""
    stopped = asyncio.run(_embedded(settings).stop())
    if as_json:
        print_json({"running": False, "was_running": stopped})
    else:
        click.echo("stopped" if stopped else "it was not running")


@db_command.command("status")
@options
def status(settings: Settings, as_json: bool) -> None:
    """Show the server without waking it."""
    if settings.database_url is not None:
        _external_status(settings.database_url, as_json)
        return
    found = asyncio.run(_embedded(settings).status())
    if as_json:
        print_json({key: _plain(value) for key, value in asdict(found).items()})
        return
    state = "running" if found.running else "stopped"
    state += "" if found.ready or not found.running else ", not ready yet"
    click.echo(f"embedded server: {state}")
    for label, value in (
        ("process", found.pid),
        ("version", found.version),
        ("started", found.started_at),
        ("folder", found.folder),
        ("socket", found.socket_folder),
        ("log", found.log),
        ("size", f"{found.size_bytes / 1e6:.1f} MB"),
    ):
        if value is not None:
            click.echo(f"  {label:8}{value}")


@db_command.command("migrate")
@options
def migrate(settings: Settings, as_json: bool) -> None:
    """Bring the schema up to date; nothing happens where it is."""
    from vademecum.store.db import Database

    async def work() -> tuple[str, list[str]]:
        url = settings.database_url or await _embedded(settings).start()
        async with Database(url) as database:
            return database.shown, database.migrated

    shown, applied = asyncio.run(work())
    if as_json:
        print_json({"database": shown, "applied": applied})
    else:
        click.echo("\n".join(f"applied {name}" for name in applied) or "up to date")


def _external_status(url: str, as_json: bool) -> None:
    from vademecum.store.db import Database

    async def work() -> dict[str, object]:
        async with Database(url) as database:
            return {"running": True, "database": database.shown, **await database.about()}

    about = asyncio.run(work())
    if as_json:
        print_json(about)
    else:
        for label, value in about.items():
            click.echo(f"{label}: {value}")


def _embedded(settings: Settings) -> "EmbeddedDatabase":
    from vademecum.store.embedded import EmbeddedDatabase

    if settings.database_url is not None:
        raise BadInput(
            "a connection string is set, so the embedded server is not used",
            hint="Unset VADE_DATABASE_URL, PRJ_NEON_DATABASE_URL and DATABASE__URL, or leave out"
            " --database.",
        )
    return EmbeddedDatabase(settings.home, settings.idle_minutes, progress=note)


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | bool | None) else str(value)
