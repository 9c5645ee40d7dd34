"""The texts that stand for one chunk before an embedder that reads less than a chunk at once."""

import re
from collections.abc import Iterator

from vademecum.inference.embedder import Tokenizer
from vademecum.ingest.ruler import LINE, SENTENCE, WORD, Ruler, best_cut, breaks

_SEPARATOR = re.compile(r"\s[>▸|]\s")

# What the tokens of a text may differ by from those of its place in a longer one, where the cut
# is between words. Only windows fuller than this, or cut within a word, are counted again.
_SLACK = 8


def windows(
    header: str,
    text: str,
    *,
    tokenizer: Tokenizer,
    limit: int,
    overlap: int,
    tokens: int | None = None,
) -> list[str]:
    """Texts of at most `limit` tokens, each the header above a part of the text.

    Together they hold all of the text, each part beginning up to `overlap` tokens before the end
    of the one before. They are as few as that allows, and of like length. `tokens` is the number
    of tokens of the text, for a caller who knows it: most texts then need no look at all.
    """
    # No tokenizer makes more tokens than bytes: a short text under a short header surely fits.
    size = len(header.encode("utf-8", "surrogatepass"))
    if tokens is not None and tokens + size <= limit - _SLACK:
        return [_under(header, text)]
    if tokens is None and len(text) < limit * 4:
        [tokens] = tokenizer.counts([text])
    [taken] = tokenizer.counts([header]) if header else [0]
    if tokens is not None and tokens + taken <= limit - _SLACK:
        return [_under(header, text)]
    if taken > limit // 2:
        header, taken = _shortened(header, tokenizer, limit // 2)
    room = max(limit - taken, 1)
    ruler = Ruler(tokenizer.starts(text), 0, len(text))
    while True:
        parts = list(_parts(text, ruler, room, overlap))
        full = [
            _under(header, text[start:end])
            for start, end in parts
            if ruler.count(start, end) > room - _SLACK or not _between_words(text, start, end)
        ]
        excess = max(tokenizer.counts(full), default=0) - limit
        if excess <= 0 or room == 1:
            return [_under(header, text[start:end]) for start, end in parts]
        room = max(room - excess, 1)


def _under(header: str, text: str) -> str:
    return f"{header}\n{text.strip()}" if header else text.strip()


def _parts(text: str, ruler: Ruler, room: int, overlap: int) -> Iterator[tuple[int, int]]:
    overlap = min(overlap, room // 2)
    stride = room - overlap
    start = 0
    while (left := ruler.count(start, ruler.end)) > room:
        after = -(-(left - overlap) // stride) - 1
        fair = -(-(left + after * overlap) // (after + 1))
        # No shorter than what the windows after it can make up for.
        least = max(left - after * stride, fair * 3 // 4)
        low, high, target = (ruler.forward(start, tokens) for tokens in (least, room, fair))
        cut = max(best_cut(text, low, high, target), start + 1)
        yield start, cut
        start = max(_repeat_from(text, ruler, cut, overlap), start + 1)
    yield start, ruler.end


def _between_words(text: str, start: int, end: int) -> bool:
    return (start == 0 or text[start - 1].isspace() or text[start].isspace()) and (
        end == len(text) or text[end - 1].isspace() or text[end].isspace()
    )


def _repeat_from(text: str, ruler: Ruler, cut: int, overlap: int) -> int:
    """Where the next part begins: at a good break that repeats at least half of the overlap."""
    if not overlap:
        return cut
    low, high = ruler.backward(cut, overlap), ruler.backward(cut, overlap // 2)
    for pattern in (SENTENCE, LINE, WORD):
        if (start := next(breaks(pattern, text, low - 1, high), None)) is not None:
            return start
    return low


def _shortened(header: str, tokenizer: Tokenizer, limit: int) -> tuple[str, int]:
    """As much of the header's end as fits, and its number of tokens."""
    opening = "[… " if header.startswith("[") else "… "
    ends = [f"{opening}{header[match.end() :]}" for match in _SEPARATOR.finditer(header)]
    # The last heading alone may be too long: then its last words.
    ruler = Ruler(tokenizer.starts(header), 0, len(header))
    words = [match.end() for match in WORD.finditer(header)]
    last = ruler.backward(len(header), max(limit - 4, 0))
    ends += [opening + header[word:] for word in words if word >= last][:1]
    for end, tokens in zip(ends, tokenizer.counts(ends), strict=True):
        if tokens <= limit:
            return end, tokens
    return "", 0
