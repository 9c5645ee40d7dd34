"""The command `vade`. Nothing of a command is imported before it is the one to run."""

import importlib
from typing import Any

import click

from vademecum import __version__
from vademecum.garbage import look_rarely

# Module and one-line help of each command: `vade --help` shows them without an import.
COMMANDS = {
    "bulk-index": ("ingest", "Index a folder, or bring its index up to date."),
    "store": ("ingest", "Store one file or one page of the web."),
    "check-url": ("web", "Look for a page in the cache before fetching it."),
    "read-page": ("web", "Read on in a stored page."),
    "store-page": ("web", "Fetch a page and store it in the cache."),
    "refresh": ("web", "Look again at stored pages, and update those that differ."),
    "report": ("report", "Show how the cache does, against its targets."),
    "search": ("find", "Find the passages that answer a query."),
    "documents": ("documents", "List documents; read lessons and chunks in order."),
    "answer": ("find", "Answer a question from the sources, with citations."),
    "read": ("find", "Read a document, or a section of it, by its reference."),
    "list": ("state", "List the collections."),
    "status": ("state", "Show what a collection holds and what is still to do."),
    "process-queue": ("ingest", "Work off jobs that wait."),
    "runs": ("runs", "Ingestion runs: list, show, start, cancel, resume."),
    "rebuild": ("rebuild", "Make the chunks of a collection again."),
    "reindex": ("rebuild", "Purge and embed everything again while searches go on."),
    "move": (
        "move",
        "A collection on its way to another embedder: show, accept, abandon.",
    ),
    "promote": ("mirror", "Search a collection in another vector store."),
    "index": ("mirror", "Verify, rebuild and drop vector indexes."),
    "delete": ("state", "Delete a collection and all that is in it."),
    "memory": ("memory", "What is remembered of a user."),
    "spend": ("spend", "Show what language models were used for, and what it cost."),
    "graph": ("graph", "Documents, APIs, code, and how they relate."),
    "fetch": ("fetch", "Fetch what sources outside know, into the graph."),
    "link": ("link", "Tie a project's code to the documentation of what it uses."),
    "note": ("note", "What is known about a project: notes of agents and people."),
    "context": ("context", "What an agent should know for a task."),
    "stale": ("stale", "List what may no longer hold, since what it rests on has changed."),
    "radar": ("radar", "Show which lines use what their libraries deprecate or have removed."),
    "eval": ("evaluate", "Measure search with questions whose answers are known."),
    "mcp": ("mcp", "Serve the knowledge bases to an agent over MCP."),
    "serve": ("serve", "Serve the HTTP API and the hooks of agents, and work off jobs."),
    "worker": ("serve", "Work off jobs as they come, here or on another machine."),
    "openapi": ("serve", "Print the description of the HTTP API."),
    "keys": ("keys", "API keys: create, list, revoke."),
    "token": ("serve", "Print the token that opens the HTTP API."),
    "install": ("install", "Let an agent use the cache of the web: Claude Code."),
    "uninstall": ("install", "Take back what install did."),
    "profile": ("profile", "List, show and check profiles."),
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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

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
    look_rarely()
    ctx.obj = options["database"]
