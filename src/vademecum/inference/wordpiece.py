"""The tokenizer of the local model, with the words it has met remembered.

A text is tokenised several times on its way into an index: to find where it may be cut, to see
that its pieces fit, to embed them. What stands between two spaces is tokenised on its own whatever
is around it, and texts mostly repeat what they and others have said before.
"""

import re
from collections.abc import Sequence
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, NamedTuple

from vademecum.inference.weights import WeightFiles, read_vocabulary
from vademecum.inference.words import encodable

if TYPE_CHECKING:
    import tokenizers

REMEMBERED = 200_000
"""Tokens of the words that are remembered, about 30 MB; with more it begins anew."""

# The model drops other control characters, and joins what stands on both sides of them.
_WORD = re.compile(r"[^ \t\n\r]+")
_BLANKS = re.compile(r"([ \t\n\r]+)")
# Of a word in printable ASCII: each mark is a token of its own, and parts what is around it.
_PART = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9]")


class _Words(NamedTuple):
    """The tokens of each word: their ids, and where each begins in it."""

    ids: dict[str, tuple[int, ...]]
    starts: dict[str, tuple[int, ...]]


class LocalTokenizer:
    """WordPiece as the model was trained with; text is never read as a special token."""

    def __init__(self, files: WeightFiles) -> None:
        self._tokenizer = _wordpiece(read_vocabulary(files))
        self._known = _Words({}, {})
        self._remembered = 0

    def starts(self, text: str) -> list[int]:
        pieces = _BLANKS.split(encodable(text))  # words and what stands between, by turns
        places = accumulate(map(len, pieces), initial=0)
        words = pieces[::2]
        within = map(self._learned([words]).starts.__getitem__, words)
        return [
            at + one
            for at, starts in zip(islice(places, 0, None, 2), within, strict=False)
            for one in starts
        ]

    def counts(self, texts: Sequence[str]) -> list[int]:
        words = [_WORD.findall(encodable(text)) for text in texts]
        ids = self._learned(words).ids
        return [sum(map(len, map(ids.__getitem__, each))) for each in words]

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, no special tokens."""
        words = [_WORD.findall(encodable(text)) for text in texts]
        ids = self._learned(words).ids
        return [list(chain.from_iterable(map(ids.__getitem__, each))) for each in words]

    def _learned(self, texts: Sequence[Sequence[str]]) -> _Words:
        """The tokens of all these words, among others."""
        known = self._known
        if new := set(chain.from_iterable(texts)).difference(known.ids):
            for word in new:
                parts = _PART.findall(word) if word.isascii() and word.isprintable() else ()
                if len(parts) < 2:
                    self._encode(word, known)
                else:
                    self._compose(word, parts, known)
            if self._remembered > REMEMBERED:
                # Another thread may still read the old one.
                self._known, self._remembered = _Words({}, {}), 0
        return known

    def _encode(self, word: str, known: _Words) -> None:
        # One by one: to share them out among threads takes longer.
        tokens = self._tokenizer.encode(word, add_special_tokens=False)
        # In this order: another thread takes a word with ids for one that is known.
        known.starts[word] = tuple(start for start, _ in tokens.offsets)
        known.ids[word] = tuple(tokens.ids)
        self._remembered += len(tokens)

    def _compose(self, word: str, parts: Sequence[str], known: _Words) -> None:
        """Paths, addresses and calls are many, and each is met a few times; their parts often."""
        for part in set(parts).difference(known.ids):
            self._encode(part, known)
        places = accumulate(map(len, parts), initial=0)
        known.starts[word] = tuple(
            at + start
            for at, starts in zip(places, map(known.starts.__getitem__, parts), strict=False)
            for start in starts
        )
        known.ids[word] = tuple(chain.from_iterable(map(known.ids.__getitem__, parts)))
        self._remembered += len(known.ids[word])


def _wordpiece(vocabulary: dict[str, int]) -> "tokenizers.Tokenizer":
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
