"""A mistyped argument of a tool is an error that says what was meant."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, InputRequiredResult

from vademecum.surfaces.mcp_results import problem


class StrictServer(MCPServer):
    """The SDK drops arguments that a tool does not have, unsaid: a search that was to be
    narrowed would answer from everything."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        for tool in await self.list_tools():
            known = tool.input_schema.get("properties", {})
            if tool.name == name and (unknown := arguments.keys() - known):
                return problem(_refusal(name, sorted(unknown), known))
        return await super().call_tool(name, arguments, context)


def _refusal(tool: str, unknown: Iterable[str], known: Collection[str]) -> str:
    lines = []
    for argument in unknown:
        near = get_close_matches(argument, known, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        lines.append(f"{tool} has no argument {argument!r}.{meant}")
    lines.append(f"It takes {', '.join(known)}." if known else "It takes none.")
    return " ".join(lines)
