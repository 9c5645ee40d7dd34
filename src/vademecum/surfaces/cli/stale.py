"""stale."""

import sys
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.context.stale import Refreshed, Stale


@click.command(
    "stale",
    epilog="""
\b
Examples:
  vade stale
  vade stale -c handbook --check
  vade stale --refresh

Kept answers (`vade answer --keep`), notes whose evidence names passages, summaries, and relations
that agents stated. --refresh asks answers again and makes summaries again.
""",
)
@click.option("-c", "--collection", "--repo", metavar="NAME", help="Only what rests on this one.")
@click.option("--refresh", is_flag=True, help="Make anew what can be made anew.")
@click.option("--check", is_flag=True, help="Exit with 1 where anything is stale.")
@options
def stale_command(
    settings: Settings, as_json: bool, collection: str | None, refresh: bool, check: bool
) -> None:
    """List what may no longer hold, since what it rests on has changed or is gone."""

    async def work(app: "App") -> "Refreshed | list[Stale]":
        if refresh:
            return await app.stale.refresh(collection)
        return await app.stale.list_stale(collection)

    found = run(settings, work)
    if isinstance(found, list):
        left = [(one, "") for one in found]
        if as_json:
            print_json({"stale": found})
    else:
        left = found.left
        if as_json:
            reasons = [{"stale": one, "reason": reason} for one, reason in left]
            print_json({"refreshed": found.refreshed, "left": reasons})
    if not as_json:
        for one in [] if isinstance(found, list) else found.refreshed:
            click.echo(f"refreshed: {one.kind} of {one.project}: {one.title}")
        for one, reason in left:
            _print(one, reason)
        if not left:
            note("Nothing is stale.")
    if check and left:
        sys.exit(1)


def _print(one: "Stale", reason: str) -> None:
    click.secho(one.title, bold=True)
    click.echo(f"  {one.kind} of {one.project or 'all projects'}  {one.id}")
    for text in one.why:
        click.echo(f"    {text}")
    if reason:
        click.echo(f"    left: {reason}")
