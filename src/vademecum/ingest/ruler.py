"""Measuring any stretch of a text in tokens, having tokenised it once."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

# Best first: where a text may be cut. Each match ends where the next part begins.
SENTENCE = re.compile(
    r"""\n[ \t\r]*+\n\s*+
      | (?<![.!?…])[.!?…]++["'”’»)\]*_`]*+\s++(?=[^a-z\s])
      | (?<![。！？])[。！？]++[”’」』）]*+\s*+""",
    re.VERBOSE,
)
LINE = re.compile(r"\n")
WORD = re.compile(r"\s++")


class Ruler:
    """Token positions of one stretch of text.

    Exact wherever a cut does not change how its neighbours are tokenised; who needs a hard
    limit counts the finished pieces again.
    """

    def __init__(self, starts: Sequence[int], start: int, end: int) -> None:
        """`starts` of tokens count from `start`; the stretch ends at `end`."""
        self.end = end
        self._starts = [start + first for first in starts] if start else starts

    def count(self, start: int, end: int) -> int:
        """Number of tokens that begin in the stretch."""
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)

    def forward(self, start: int, tokens: int) -> int:
        """The furthest end of a stretch of at most so many tokens."""
        index = bisect_left(self._starts, start) + tokens
        return self._starts[index] if index < len(self._starts) else self.end

    def backward(self, end: int, tokens: int) -> int:
        """The earliest token that begins a stretch of at most so many tokens."""
        index = bisect_left(self._starts, end) - tokens
        return self._starts[max(index, 0)] if self._starts and tokens > 0 else end


def breaks(pattern: re.Pattern[str], text: str, low: int, high: int) -> Iterator[int]:
    """Where the text may be cut, low < cut <= high."""
    # A break is wider than its cut: one that begins before `low` may end behind it.
    for match in pattern.finditer(text, max(low - 8, 0), high + 1):
        if low < match.end() <= high:
            yield match.end()


def best_cut(text: str, low: int, high: int, target: int) -> int:
    """The cut nearest `target` at the best kind of break between low and high, else `target`."""
    for pattern in (SENTENCE, LINE, WORD):
        nearest = min(
            breaks(pattern, text, low, high), key=lambda cut: abs(cut - target), default=0
        )
        if nearest:
            return nearest
    return target
