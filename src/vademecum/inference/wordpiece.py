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
            for word in new:  # one by one: to share them out among threads takes longer
                tokens = self._tokenizer.encode(word, add_special_tokens=False)
                # In this order: another thread takes a word with ids for one that is known.
                known.starts[word] = tuple(start for start, _ in tokens.offsets)
                known.ids[word] = tuple(tokens.ids)
                self._remembered += len(tokens)
            if self._remembered > REMEMBERED:
                # Another thread may still read the old one.
                self._known, self._remembered = _Words({}, {}), 0
        return known


def _wordpiece(vocabulary: dict[str, int]) -> "tokenizers.Tokenizer":
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
