"""What a document is about, in its own first words."""

import re

SUMMARY = 500
"""Characters of a summary, at most."""


def beginning(text: str) -> str:
    """The first words of running text, up to 500 characters."""
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    prose = " ".join(
        part for part in paragraphs if part and not part.startswith(("#", "```", "|", "!", "<"))
    )
    return prose if len(prose) <= SUMMARY else prose[: SUMMARY - 1].rsplit(" ", 1)[0] + "…"
