"""The MCP server: what an agent may ask, as tools and resources.

The model reads the structured results, so these are written as prompt text: short keys, no ids or
scores it does not need, never more than a stated size. People get the same as Markdown.
"""

from typing import Any
from urllib.parse import unquote

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp_types import CallToolResult

from vademecum import __version__
from vademecum.errors import VadeError
from vademecum.surfaces import mcp_code, mcp_context, mcp_knowledge, mcp_memory
from vademecum.surfaces.mcp_arguments import StrictServer
from vademecum.surfaces.mcp_results import Opened, result, told

INSTRUCTIONS = """\
Vademecum holds knowledge bases: documentation that was indexed for you. Before you fetch a page \
or answer from memory about anything they may cover, call search_knowledge (passages) or \
answer_knowledge (quoted sentences with citations). list_knowledge_bases tells what there is. \
Read on in a passage with read_page(url=ref). Cite what you use by its `ref`."""


def build(opened: Opened, **options: Any) -> MCPServer:
    """A server whose calls are answered by the App that `opened` returns.

    `options` go to MCPServer: a lifespan, a token verifier.
    """
    server = StrictServer(
        "vademecum", version=__version__, instructions=INSTRUCTIONS, **options, log_level="WARNING"
    )

    mcp_knowledge.add_tools(server, opened)

    @server.tool()
    @told
    async def health_check() -> CallToolResult:
        """Whether the store answers, and how much is still to be done."""
        app = await opened()
        left = await app.open_jobs()
        value = {
            "status": "ok",
            "version": __version__,
            "waiting": left.pending + left.processing,
            "failed": left.failed,
        }
        return result(value, f"Vademecum {__version__} answers; {value['waiting']} jobs wait.")

    mcp_memory.add_tools(server, opened)
    mcp_context.add_tools(server, opened)
    mcp_code.add_tools(server, opened)

    @server.resource("vade://{collection}/{+path}", mime_type="text/markdown")
    async def document(collection: str, path: str) -> str:
        """A document as Markdown; with `#section` after its path, one section of it."""
        app = await opened()
        whole, _, section = unquote(path).partition("#")
        try:
            return await app.shelf.read(collection, whole, section=section or None)
        except VadeError as error:
            raise ResourceNotFoundError(f"{error}. {error.hint or ''}".strip()) from None

    return server
