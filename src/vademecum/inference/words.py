"""Counting tokens where no embedding model is there to do it, and what tokenizers can take."""

import re
from collections.abc import Sequence

_PIECE = re.compile(r"\w{1,6}|[^\w\s]")


class WordTokenizer:
    """Words in pieces of at most six characters, and punctuation marks.

    For collections without vectors: there, length is a matter of reading, not of what a model
    can take.
    """

    def starts(self, text: str) -> list[int]:
        return [match.start() for match in _PIECE.finditer(text)]

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(_PIECE.findall(text)) for text in texts]


_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which no tokenizer takes; all
    else stays where it is."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
