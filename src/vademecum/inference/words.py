"""Counting tokens where no embedding model is there to do it."""

import re
from collections.abc import Sequence

_PIECE = re.compile(r"\w{1,6}|[^\w\s]")


class WordTokenizer:
    """Words in pieces of at most six characters, and punctuation marks.

    For collections without vectors: there, length is a matter of reading, not of what a model
    can take.
    """

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _PIECE.finditer(text)]

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(_PIECE.findall(text)) for text in texts]
