"""memory show, update, remember, edit, search, versions, diff, undo, export, forget, receipts."""

from pathlib import Path
from typing import Any

import click

from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import options, print_json, run, text_of

_USER = click.option("--user", required=True, metavar="ADDRESS", help="Whose memory it is.")
_PROJECT = click.option("--project", default="", metavar="NAME", help="Instead of the general one.")


@click.group(
    "memory",
    epilog="""
\b
Examples:
  vade memory show --user someone@example.org
  vade memory update --user someone@example.org --exchange ID --agent policy --message mail.txt
  vade memory forget --user someone@example.org
""",
)
def memory_command() -> None:
    """What is remembered of a user; a privacy gate stands before everything that is written."""


@memory_command.command("show")
@_USER
@_PROJECT
@options
def show(settings: Settings, as_json: bool, user: str, project: str) -> None:
    """Show the narrative."""
    found = run(settings, lambda app: app.memory.show(user, project=project))
    if as_json:
        print_json(found)
    else:
        click.echo(found.content or "Nothing is remembered of this user.")


@memory_command.command("update")
@_USER
@_PROJECT
@click.option("--exchange", required=True, metavar="ID", help="Each exchange counts once.")
@click.option("--agent", default="", metavar="NAME", help="The agent that replied.")
@click.option(
    "--message", required=True, type=click.File(), help="What the user wrote; - is stdin."
)
@click.option("--reply", type=click.File(), help="What the agent replied.")
@click.option("--outcome", type=click.Choice(["ok", "failed"]), default="ok", show_default=True)
@options
def update(
    settings: Settings, as_json: bool, user: str, project: str, message: Any, reply: Any, **of: Any
) -> None:
    """Take an exchange into the memory; the exchange itself is not kept."""
    said, replied = text_of(message), text_of(reply) if reply else ""
    _told(
        run(
            settings,
            lambda app: app.memory.update(user, project=project, message=said, reply=replied, **of),
        ),
        as_json,
    )


@memory_command.command("remember")
@click.argument("text")
@_USER
@_PROJECT
@options
def remember(settings: Settings, as_json: bool, text: str, user: str, project: str) -> None:
    """Note a fact about the user."""
    _told(run(settings, lambda app: app.memory.remember(user, text, project=project)), as_json)


@memory_command.command("edit")
@_USER
@_PROJECT
@click.option("--file", "source", required=True, type=click.File(), help="The text; - is stdin.")
@options
def edit(settings: Settings, as_json: bool, user: str, project: str, source: Any) -> None:
    """Replace the narrative by a text; the gate holds for it, too."""
    text = text_of(source)
    _told(run(settings, lambda app: app.memory.edit(user, text, project=project)), as_json)


@memory_command.command("search")
@click.argument("query")
@_USER
@_PROJECT
@click.option("--every-project", is_flag=True, help="In the general memory and all projects.")
@click.option("-k", "limit", default=8, show_default=True, metavar="N", help="How many.")
@options
def search(settings: Settings, as_json: bool, query: str, user: str, **of: Any) -> None:
    """Find in the narrative and its versions."""
    found = run(settings, lambda app: app.memory.search(user, query, **of))
    if as_json:
        print_json({"query": query, "results": found})
        return
    for hit in found:
        where = f"{hit.passage.project}, " if hit.passage.project else ""
        click.echo(f"{hit.score:.3f}  {hit.passage.text}  ({where}version {hit.passage.version})")
    if not found:
        click.echo("Nothing was found.")


@memory_command.command("versions")
@_USER
@_PROJECT
@options
def versions(settings: Settings, as_json: bool, user: str, project: str) -> None:
    """List every change and its reason."""
    found = run(settings, lambda app: app.memory.versions(user, project=project))
    if as_json:
        print_json(found)
        return
    for one in found:
        click.echo(f"{one.version:4}  {one.created_at:%Y-%m-%d %H:%M}  {one.reason}")
    if not found:
        click.echo("Nothing is remembered of this user.")


@memory_command.command("diff")
@click.argument("old", type=int)
@click.argument("new", type=int)
@_USER
@_PROJECT
@options
def diff(settings: Settings, as_json: bool, old: int, new: int, user: str, project: str) -> None:
    """Show what changed between two versions."""
    found = run(settings, lambda app: app.memory.diff(user, old, new, project=project))
    print_json({"old": old, "new": new, "diff": found}) if as_json else click.echo(found)


@memory_command.command("undo")
@_USER
@_PROJECT
@options
def undo(settings: Settings, as_json: bool, user: str, project: str) -> None:
    """Go back to the version before."""
    found = run(settings, lambda app: app.memory.undo(user, project=project))
    print_json(found) if as_json else click.echo(found.content or "The memory is empty.")


@memory_command.command("export")
@_USER
@click.option("--out", type=click.Path(path_type=Path), help="A file instead of the terminal.")
@options
def export(settings: Settings, as_json: bool, user: str, out: Path | None) -> None:
    """All that is held about a user, as text, or with --json as JSON."""
    import json

    from vademecum.memory.exported import as_text

    held = run(settings, lambda app: app.memory.export(user))
    text = json.dumps(held, default=str, ensure_ascii=False, indent=2) if as_json else as_text(held)
    if not out:
        click.echo(text)
        return
    try:
        out.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"cannot write {out}: {error.strerror}", hint="Name another file with --out."
        ) from None


@memory_command.command("forget")
@_USER
@click.option("--yes", is_flag=True, help="Do not ask.")
@options
def forget(settings: Settings, as_json: bool, user: str, yes: bool) -> None:
    """Remove all of a user, prove it, and print the receipt."""
    if not yes:
        click.confirm("Remove all that is held about this user?", abort=True, err=True)
    receipt = run(settings, lambda app: app.memory.forget(user))
    if as_json:
        print_json(receipt)
    elif receipt is None:
        click.echo("Nothing is held about this user.")
    else:
        removed = ", ".join(f"{count} of {table}" for table, count in receipt.removed.items())
        click.echo(f"receipt {receipt.id}: complete at {receipt.completed_at}")
        click.echo(f"removed: {removed}\nprobes:  {receipt.probe_hash}")


@memory_command.command("receipts")
@options
def receipts(settings: Settings, as_json: bool) -> None:
    """List what was forgotten; `forget` run again completes an incomplete receipt."""
    found = run(settings, lambda app: app.memory.receipts())
    if as_json:
        print_json(found)
        return
    for one in found:
        rows = sum(one.removed.values())
        state = f"{one.completed_at:%Y-%m-%d %H:%M}" if one.completed_at else "INCOMPLETE"
        click.echo(f"{one.id}  {state:16}  {rows} rows")
    if not found:
        click.echo("Nobody was forgotten yet.")


def _told(update: Any, as_json: bool) -> None:
    if as_json:
        print_json(update)
        return
    by = f", by {update.by}" if update.by else ""
    click.echo(f"version {update.version}{by}" if update.changed else "unchanged")
    if update.notice:
        click.echo(f"  {update.notice}", err=True)
    for kind, count in update.dropped.items():
        click.echo(f"  left out: {count} ({kind})", err=True)
