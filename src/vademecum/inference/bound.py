"""Counting tokens by an upper bound, for models whose own tokenizer is not on this machine."""

from collections.abc import Sequence


class ByteTokenizer:
    """One token for each UTF-8 byte: no tokenizer makes more of plain text.

    WordPiece and byte pairs never exceed it. Real counts of English are about a quarter of it, so
    a text fills a window sooner than it would have to, and is never cut.
    """

    def starts(self, text: str) -> list[int]:
        return [index for index, letter in enumerate(text) for _ in range(_bytes(letter))]

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [_bytes(text) for text in texts]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
