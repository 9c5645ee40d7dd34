"""The tools of the MCP server for the memory of users. Every call names the user."""

from mcp.server import MCPServer
from mcp_types import CallToolResult

from vademecum.surfaces.mcp_results import SIZED, Opened, problem, result, told

MAX_FACT = 2000
"""Characters of what is remembered at once."""


def add_tools(server: MCPServer, opened: Opened) -> None:
    @server.tool(meta=SIZED)
    @told
    async def recall(
        user: str, query: str | None = None, project: str = "", k: int = 8
    ) -> CallToolResult:
        """What is remembered of a user: all of it, or the sentences that answer a query.

        user: the address of the user you act for. `former` marks what holds no longer.
        """
        app = await opened()
        whole = (await app.memory.show(user, project=project)).content
        if query is None:
            value: dict[str, object] = {"memory": whole}
            if not whole:
                value["next"] = "Nothing is remembered of this user. Go on without."
            return result(value, whole or "Nothing is remembered of this user.")
        found = await app.memory.search(user, query, project=project, limit=k)
        texts = [one.passage.text for one in found]
        memories = [
            {"text": text} | ({} if text.rstrip(".") in whole else {"former": True})
            for text in texts
        ]
        lines = "\n".join(f"- {text}" for text in texts)
        return result({"memories": memories}, lines or "Nothing is remembered of that.")

    @server.tool(meta=SIZED)
    @told
    async def remember(user: str, fact: str, project: str = "") -> CallToolResult:
        """Note a lasting fact about how a user works or what they prefer, in one sentence.

        Names, numbers, dates and places are left out or made general; `left_out` counts them.
        """
        if len(fact) > MAX_FACT:
            return problem(f"A fact may have {MAX_FACT} characters. Say it in one sentence.")
        app = await opened()
        kept = await app.memory.remember(user, fact, project=project)
        value: dict[str, object] = {"remembered": kept.changed}
        if kept.dropped:
            value["left_out"] = kept.dropped
        if not kept.changed:
            value["next"] = "Say it without names, numbers, dates and places, or go on without."
        return result(value, "Remembered." if kept.changed else "Nothing of it may be kept.")
