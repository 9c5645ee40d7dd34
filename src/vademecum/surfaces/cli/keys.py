"""keys create, list, revoke."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from vademecum.access import SCOPES
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App


@click.group(
    "keys",
    epilog="""
\b
Examples:
  vade keys create --name reader --scope read -c handbook
  vade keys create --name assistant --scope read --scope memory --days 90
  vade keys create --name hers --scope memory --user anna@example.org
  vade keys create --name writer --scope read --scope spend
  vade keys list
  vade keys revoke reader
""",
)
def keys_command() -> None:
    """API keys: who may do what over HTTP and MCP.

    read searches and reads; write also stores pages and starts runs; admin also deletes, and with
    all collections does everything of these; memory names users, and spend has language models
    asked, which may cost money: these two go with no other scope.
    """


@keys_command.command("create")
@click.option("--name", required=True, metavar="NAME", help="What to call it.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    default=["read"],
    show_default=True,
    help="May be given several times.",
)
@click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME",
    help="Only for this one; may be given several times. Default: all.",
)
@click.option("--rate", type=float, metavar="N", help="Requests a second; default VADE_KEY_RATE.")
@click.option("--days", type=int, metavar="N", help="Days until it ends; default never.")
@click.option("--user", metavar="ADDRESS", help="With scope memory: of this user only.")
@options
def create(
    settings: Settings,
    as_json: bool,
    name: str,
    scopes: tuple[str, ...],
    collections: tuple[str, ...],
    rate: float | None,
    days: int | None,
    user: str | None,
) -> None:
    """Make a key. It is shown this once; only a hash of it is kept."""

    async def work(app: "App") -> "tuple[str, set[str]]":
        secret = await app.keys.create(
            name,
            scopes=scopes,  # type: ignore[arg-type]
            collections=collections or None,
            rate=rate,
            days=days,
            user=user,
        )
        there = await app.list_collections() if collections else []
        return secret, {one.name for one in there}

    secret, known = run(settings, work)
    for one in sorted(set(collections) - known):
        note(f"There is no collection {one} yet: the key opens it once there is.")
    if as_json:
        print_json({"name": name, "key": secret})
    else:
        click.echo(secret)
        note("It is not shown again: keep it where secrets are kept.")


@keys_command.command("list")
@options
def list_keys(settings: Settings, as_json: bool) -> None:
    """List the keys, revoked ones too."""
    found = run(settings, lambda app: app.keys.listed())
    if as_json:
        print_json({"keys": found})
        return
    for key in found:
        where = ", ".join(key.collections) if key.collections is not None else "all collections"
        state = (
            f"revoked {_day(key.revoked_at)}"
            if key.revoked_at
            else f"until {_day(key.expires_at)}"
            if key.expires_at
            else "in force"
        )
        if key.one_user:
            where += ", one user's memory"
        used = f"used {_day(key.last_used_at)}" if key.last_used_at else "never used"
        click.echo(f"{key.name}  {', '.join(key.scopes)}  {where}  {state}, {used}")
    if not found:
        note("There is no key yet: `vade keys create --name NAME` makes one.")


@keys_command.command("revoke")
@click.argument("name")
@options
def revoke(settings: Settings, as_json: bool, name: str) -> None:
    """Let a key open nothing any more, within five seconds."""
    run(settings, lambda app: app.keys.revoke(name))
    if as_json:
        print_json({"revoked": name})
    else:
        click.echo(f"revoked: {name}")


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
