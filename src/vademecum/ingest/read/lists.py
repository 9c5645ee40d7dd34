"""Lists of markdown: all writers lay them out alike."""

import re
from collections.abc import Sequence

_NEXT_LINE = re.compile(r"\n(?=[^\n])")


def marked(text: str, marker: str) -> str:
    """Text behind a marker, its other lines indented below it."""
    return marker + _NEXT_LINE.sub("\n" + " " * len(marker), text)


def item(blocks: Sequence[str], marker: str) -> str:
    """Blocks behind a marker; a list hugs the line above it."""
    parts = list(blocks[:1])
    for block in blocks[1:]:
        parts += ["\n" if block.startswith(("- ", "1. ")) else "\n\n", block]
    return marked("".join(parts), marker)


def is_no_quote(blocks: Sequence[str]) -> bool:
    """Whether what came as a quote is none: indented lists and code do, and nobody is quoted."""
    return all(block.startswith(("- ", "1. ", "```", "|")) for block in blocks)


def items(listed: Sequence[str]) -> str:
    """Items as one list, loose where one of them is of several paragraphs."""
    return ("\n\n" if any("\n\n" in one for one in listed) else "\n").join(listed)
