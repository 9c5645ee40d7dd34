"""The command `vade`. Nothing of a command is imported before it is the one to run."""

import importlib
from typing import Any

import click

from vademecum import __version__

# Module and one-line help of each command: `vade --help` shows them without an import.
COMMANDS = {
    "bulk-index": ("ingest", "Index a folder, or bring its index up to date."),
    "store": ("ingest", "Store one file or one page of the web."),
    "search": ("find", "Find the passages that answer a query."),
    "answer": ("find", "Answer a question from the sources, with citations."),
    "list": ("state", "List the collections."),
    "status": ("state", "Show what a collection holds and what is still to do."),
    "process-queue": ("ingest", "Work off jobs that wait."),
    "rebuild": ("ingest", "Make the chunks of a collection again."),
    "delete": ("state", "Delete a collection and all that is in it."),
    "eval": ("evaluate", "Measure search with questions whose answers are known."),
    "doctor": ("doctor", "Prove that everything works on this machine."),
    "db": ("db", "Start, stop and inspect the database."),
}

EPILOG = """
\b
Examples:
  vade bulk-index ~/project/docs
  vade search "how do I rotate the keys" -k 5
  vade answer "Which ports must be open?"

\b
Exit codes: 0 done, 1 failed, 2 wrong usage.
Settings are environment variables, VADE_HOME and others: see `vade doctor`.
"""


class Commands(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"vademecum.surfaces.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_") + "_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(
    cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--database", metavar="URL", help="PostgreSQL to use instead of the embedded one.")
@click.version_option(__version__, prog_name="vade")
@click.pass_context
def main(ctx: click.Context, /, **options: Any) -> None:
    """The knowledge and memory that AI agents carry, on PostgreSQL."""
    ctx.obj = options["database"]
