"""context."""

from pathlib import Path
from typing import Any

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.project import PROJECT
from vademecum.surfaces.cli.run import note, options, print_json, run, text_of


@click.command(
    "context",
    epilog="""
\b
Examples:
  vade context "add retries to the client" --path src/client.py
  vade context "fix the failing test" --error traceback.txt
  vade context "send prices by `requests.Session.post`" --fetch
  vade context "write the release notes" --user someone@example.org --budget 500

Notes of importance 5 and more come first, at most three; then the narrative of --user; then, where
the rules say that it would help, at most two references from outside, marked as advisory.
""",
)
@click.argument("task")
@PROJECT
@click.option(
    "--path", metavar="P", type=click.Path(path_type=Path), help="A file of code at hand."
)
@click.option("--error", type=click.File(), metavar="FILE", help="A traceback; - is stdin.")
@click.option("--user", default="", metavar="ADDRESS", help="Whose narrative to add.")
@click.option(
    "--fetch", is_flag=True, help="Look up what the task names and is not known (`vade fetch`)."
)
@click.option("--budget", default=1500, show_default=True, metavar="N", help="Tokens, at most.")
@options
def context_command(
    settings: Settings,
    as_json: bool,
    task: str,
    project: str,
    path: Path | None,
    error: Any,
    user: str,
    budget: int,
    fetch: bool,
) -> None:
    """What an agent should know for a task: notes first, then the user, then the outside."""
    text = text_of(error) if error else ""
    found = run(
        settings,
        lambda app: app.context.build(
            task, project=project, path=path, error=text, user=user, budget=budget, fetch=fetch
        ),
    )
    for notice in found.notices:
        note(notice)
    if as_json:
        print_json(found)
        return
    click.echo(found.markdown or "Nothing is known of this.")
    looked = "looked outside" if found.decision.look_outside else "did not look outside"
    note(f"\n{looked}: {found.decision.reason} ({found.tokens} tokens)")
    if found.left_out:
        note(f"no room for: {', '.join(found.left_out)}")
