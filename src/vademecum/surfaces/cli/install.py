"""install, uninstall."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json

if TYPE_CHECKING:
    from vademecum.surfaces.claude_code.install import FileChange, Scope, Transport


def _choices(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Show the change and make none."),
        click.option("--project", "scope", flag_value="project", help="This folder's .claude."),
        click.option("--user", "scope", flag_value="user", default=True, help="The default."),
        click.argument("client", type=click.Choice(["claude-code"])),
    ):
        command = option(command)
    return command


@click.command(
    "install",
    epilog="""
\b
Examples:
  vade install claude-code --dry-run
  vade install claude-code --user --yes
  vade install claude-code --project
  vade install claude-code --context
""",
)
@_choices
@click.option(
    "--transport",
    type=click.Choice(["auto", "http", "command"]),
    default="auto",
    show_default=True,
    help="How the client asks: http where it can, else the command vade-hook.",
)
@click.option(
    "--context/--no-context",
    default=None,
    help="Tell the agent with each prompt what is known of it; off unless it was installed.",
)
@options
def install_command(
    settings: Settings,
    as_json: bool,
    client: str,
    scope: "Scope",
    dry_run: bool,
    yes: bool,
    transport: "Transport",
    context: bool | None,
) -> None:
    """Let an agent's client ask the cache before it fetches a page of the web.

    Adds hooks to the client's settings and the agent `vademecum`; whatever else is there stays.
    """
    from vademecum.surfaces.claude_code.install import installation

    changes = installation(settings, scope, transport, context=context)
    _change(changes, as_json=as_json, dry_run=dry_run, yes=yes)
    if not as_json:
        _say_what_is_missing(settings, scope)


@click.command(
    "uninstall",
    epilog="""
\b
Example:
  vade uninstall claude-code --user
""",
)
@_choices
@options
def uninstall_command(
    settings: Settings, as_json: bool, client: str, scope: "Scope", dry_run: bool, yes: bool
) -> None:
    """Take our hooks and our agent out of a client's settings, and nothing else."""
    from vademecum.surfaces.claude_code.install import removal

    _change(removal(scope), as_json=as_json, dry_run=dry_run, yes=yes)


def _say_what_is_missing(settings: Settings, scope: "Scope") -> None:
    """A hook that reaches nobody lets the agent carry on, and says nothing."""
    import shutil

    from vademecum.surfaces.http.instance import find

    if find(settings.home) is None:
        note("No server is running: until `vade serve` does, the agent fetches as ever.")
    if scope == "project" and shutil.which("vade-hook") is None:
        note("`vade-hook` is not on the PATH, where the agent's client will look for it.")


def _change(changes: "list[FileChange]", *, as_json: bool, dry_run: bool, yes: bool) -> None:
    if not as_json:
        for change in changes:
            click.echo(change.diff(), nl=False)
    if changes and not dry_run:
        if not yes:
            if as_json:
                raise BadInput("nothing was changed", hint="Add --yes, or --dry-run to look.")
            click.confirm("Make this change?", abort=True, err=True)
        for change in changes:
            try:
                change.apply()
            except OSError as error:
                raise BadInput(f"{change.path} cannot be written: {error.strerror}") from None
    if as_json:
        files = [{"path": str(change.path), "diff": change.diff()} for change in changes]
        print_json({"changed": bool(changes) and not dry_run, "files": files})
    elif not changes:
        note("Nothing is to be changed.")
    else:
        note("Nothing was changed." if dry_run else "Done; it holds for sessions from here on.")
