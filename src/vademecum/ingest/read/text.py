"""Plain text, as it is."""

import re

from vademecum.ingest.read.content import Content, plain_title

_RULE = re.compile(r"[\W_]*\Z")
_LONGEST_TITLE = 100


def read_text(text: str) -> Content:
    """The title is the first line that is not a rule, where that line is short."""
    lines = text.split("\n")
    first = next((line.strip() for line in lines if not _RULE.match(line)), "")
    title = plain_title(first.lstrip("#=*-/ ").rstrip("#=* ")) if first else ""
    if len(first) > _LONGEST_TITLE or first.endswith((",", ";")):
        title = ""
    return Content(title=title, text="\n".join(line.rstrip() for line in lines).strip("\n"))
