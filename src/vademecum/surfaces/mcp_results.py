"""What a tool of the MCP server answers: a value for the model, and Markdown for people."""

import functools
import json
from collections.abc import Awaitable, Callable
from typing import ParamSpec

from mcp_types import CallToolResult, TextContent

from vademecum.app import App
from vademecum.errors import CollectionRequired, VadeError

MAX_CHARACTERS = 40_000
"""Of a result: some 10 000 tokens, below what clients hand to the model in one piece."""

# Named at once by clients that otherwise load tools only when searched for.
ALWAYS = {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": MAX_CHARACTERS + 2000}
SIZED = {"anthropic/maxResultSizeChars": MAX_CHARACTERS + 2000}

Arguments = ParamSpec("Arguments")
Opened = Callable[[], Awaitable[App]]


def told(
    tool: Callable[Arguments, Awaitable[CallToolResult]],
) -> Callable[Arguments, Awaitable[CallToolResult]]:
    """An error of ours tells the model what to do next."""

    @functools.wraps(tool)
    async def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> CallToolResult:
        try:
            return await tool(*args, **kwargs)
        except CollectionRequired as error:
            known = ", ".join(error.known)
            return problem(
                f"Say which `repository` is meant: {known}." if known else "Nothing is indexed yet."
            )
        except VadeError as error:
            return problem(f"{error}. {error.hint or ''}".strip())

    return wrapped


def problem(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def result(value: dict[str, object], markdown: str) -> CallToolResult:
    """The value for the model, and the same as Markdown for people."""
    return CallToolResult(
        content=[TextContent(type="text", text=markdown[:MAX_CHARACTERS])],
        structured_content=value,
    )


def within(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The first rows, as many as a result may hold."""
    shown: list[dict[str, object]] = []
    left = MAX_CHARACTERS
    for row in rows:
        left -= size(row) + 2
        if left < 0:
            break
        shown.append(row)
    return shown


def size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))
