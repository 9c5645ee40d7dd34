"""mcp."""

from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import options, run

if TYPE_CHECKING:
    from vademecum.app import App


@click.command(
    "mcp",
    epilog="""
\b
Example, for Claude Code:
  claude mcp add vademecum -- vade mcp

Speaks the Model Context Protocol on stdin and stdout until stdin ends. For other clients see
docs/mcp.md.
""",
)
@options
def mcp_command(settings: Settings, as_json: bool) -> None:
    """Serve the knowledge bases to an agent over MCP (stdio)."""

    async def work(app: "App") -> None:
        from vademecum.surfaces.mcp import build

        async def opened() -> "App":
            return app

        await build(opened).run_stdio_async()

    run(settings, work)
