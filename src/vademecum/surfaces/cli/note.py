"""note save, list, search, show, solve, restore, confirm, remove, projects."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from vademecum.notes.types import ANSWER, TYPES
from vademecum.settings import Settings
from vademecum.surfaces.cli.project import PROJECT
from vademecum.surfaces.cli.run import note, options, print_json, run, text_of

if TYPE_CHECKING:
    from vademecum.notes.facade import SavedNote
    from vademecum.store.notes import Note

_NOTE = click.argument("number", metavar="ID", type=click.UUID)
_TYPE = click.option("--type", type=click.Choice([*TYPES, ANSWER]), help="Only of this type.")
_TAGS = click.option("--tag", "tags", multiple=True, metavar="TAG", help="May be repeated.")
_AT_LEAST = click.option(
    "--importance", default=1, show_default=True, metavar="N", help="At least, 1 to 10."
)


@click.group(
    "note",
    epilog="""
\b
Examples:
  vade note save "Migrations are never edited once merged." --type convention --importance 9
  vade note save "The pool has 6 connections." --evidence src/db.py:40
  vade note search "how many connections"
  vade note solve error.txt "Install libpq-dev, then build again."
""",
)
def note_command() -> None:
    """What is known about a project: notes of agents and people."""


@note_command.command("save")
@click.argument("content")
@PROJECT
@click.option("--title", default="", metavar="TEXT", help="Default: the first sentence.")
@click.option(
    "--type",
    type=click.Choice(TYPES),
    default="learning",
    show_default=True,
    help="What it is.",
)
@_TAGS
@click.option(
    "--importance", default=5, show_default=True, metavar="N", help="1 to 10; from 5 on it is told."
)
@click.option(
    "--evidence",
    multiple=True,
    metavar="TEXT",
    help="A file with line, a commit, a URL, a passage: COLLECTION/PATH#SECTION.",
)
@click.option("--agent", default="", metavar="NAME", help="Who says so.")
@click.option(
    "--replaces", multiple=True, type=click.UUID, metavar="ID", help="Notes that hold no longer."
)
@options
def save(settings: Settings, as_json: bool, content: str, project: str, **given: Any) -> None:
    """Keep a note. Older notes of its type that it contradicts hold no longer."""
    _told(run(settings, lambda app: app.notes.save(project, content, **given)), as_json)


@note_command.command("list")
@PROJECT
@_TYPE
@_TAGS
@_AT_LEAST
@click.option("-k", "limit", default=50, show_default=True, metavar="N", help="How many.")
@options
def list_notes(settings: Settings, as_json: bool, project: str, **chosen: Any) -> None:
    """List the notes that hold, the most important first."""
    found = run(settings, lambda app: app.notes.list_notes(project, **chosen))
    if as_json:
        print_json({"project": project, "notes": found})
        return
    for one in found:
        _print(one)
    if not found:
        click.echo(f"There are no notes about {project}.")


@note_command.command("search")
@click.argument("query")
@PROJECT
@_TYPE
@_TAGS
@_AT_LEAST
@click.option("-k", "limit", default=8, show_default=True, metavar="N", help="How many.")
@options
def search(settings: Settings, as_json: bool, query: str, project: str, **chosen: Any) -> None:
    """Find notes by words and meaning."""
    found = run(settings, lambda app: app.notes.search(project, query, **chosen))
    if as_json:
        print_json({"project": project, "query": query, "results": found})
        return
    for one in found:
        _print(one.note, f"  score {one.score:.3f}")
    if not found:
        click.echo("Nothing was found.")


@note_command.command("show")
@_NOTE
@PROJECT
@options
def show(settings: Settings, as_json: bool, number: UUID, project: str) -> None:
    """Show a note, and what it replaced."""
    one, replaced = run(settings, lambda app: app.notes.show(project, number))
    if as_json:
        print_json({"note": one, "replaced": replaced})
        return
    _print(one)
    if one.replaced_by:
        click.echo(f"  replaced by {one.replaced_by}: {one.replaced_why}")
    for old in replaced:
        click.echo(f"  it replaced {old.id} {old.title!r}: {old.replaced_why}")


@note_command.command("solve")
@click.argument("error", type=click.File())
@click.argument("solution")
@PROJECT
@click.option("--agent", default="", metavar="NAME", help="Who says so.")
@click.option("--source", default="", metavar="TEXT", help="Where the solution is from.")
@options
def solve(
    settings: Settings, as_json: bool, error: Any, solution: str, project: str, **by: str
) -> None:
    """Keep what solved an error; ERROR is a file with its traceback, - is stdin."""
    text = text_of(error)
    _told(
        run(settings, lambda app: app.context.solve(text, solution, project=project, **by)), as_json
    )


@note_command.command("restore")
@_NOTE
@PROJECT
@options
def restore(settings: Settings, as_json: bool, number: UUID, project: str) -> None:
    """Let a replaced note hold again."""
    one = run(settings, lambda app: app.notes.restore(project, number))
    print_json(one) if as_json else _print(one)


@note_command.command("confirm")
@_NOTE
@PROJECT
@options
def confirm(settings: Settings, as_json: bool, number: UUID, project: str) -> None:
    """Say that a stale note holds still: it rests on its evidence as that is now."""
    one = run(settings, lambda app: app.notes.confirm(project, number))
    print_json(one) if as_json else _print(one)


@note_command.command("remove")
@_NOTE
@PROJECT
@options
def remove(settings: Settings, as_json: bool, number: UUID, project: str) -> None:
    """Delete the text of a note for good."""
    run(settings, lambda app: app.notes.remove(project, number))
    print_json({"removed": str(number)}) if as_json else click.echo(f"removed {number}")


@note_command.command("projects")
@options
def projects(settings: Settings, as_json: bool) -> None:
    """List the projects that have notes."""
    found = run(settings, lambda app: app.notes.projects())
    if as_json:
        print_json([{"project": name, "notes": count} for name, count in found])
        return
    for name, count in found:
        click.echo(f"{count:6}  {name}")
    if not found:
        click.echo("There are no notes yet.")


def _told(saved: "SavedNote", as_json: bool) -> None:
    if as_json:
        print_json(saved)
        return
    click.echo(f"{'known already' if saved.confirmed else 'saved'}: {saved.note.id}")
    for one in saved.replaced:
        click.echo(f"it replaces {one.id} {one.title!r}: {one.why}")
    if not saved.searchable:
        note("It is found by search once a worker has taken it up (`vade process-queue`).")


def _print(one: "Note", more: str = "") -> None:
    click.secho(one.title, bold=True)
    tags = f"  [{', '.join(one.tags)}]" if one.tags else ""
    click.echo(f"  {one.id}  {one.type}, importance {one.importance}{tags}{more}")
    if one.content.rstrip(".") != one.title:
        for line in one.content.splitlines():
            click.echo(f"    {line}")
    for text in one.evidence:
        click.echo(f"    evidence: {text}")
    for text in one.stale:
        click.secho(f"    stale: {text}", fg="yellow")
