"""Text to index terms: words stemmed, and identifiers both whole and in parts.

`pg_stat_activity` gives `pg`, `stat`, `activ` and itself, so that it is found by its exact form
and by the words in it; `--no-verify`, `Foo.bar()`, `E0308` and `3.11.2` likewise. Runs of Chinese,
Japanese and Korean characters give their pairs, since nothing separates words there.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain

import Stemmer

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_COMPOUND = re.compile(r"-{0,2}\w+(?:(?:[.\-/:]|::|->)\w+)*")
_PART = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_PAIRED = re.compile(rf"[{_CJK}]")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_JOINED = re.compile(r"[._\-/:]")
MAX_TERM = 100
"""Longer terms are hashes and base64, which nobody types; in characters."""

STOP_WORDS = frozenset(
    """
    a about an and any are as at be been being but by can could did do does for from had has have
    how i if in into is it its me my of on or our shall should so such than that the their them
    then there these they this those to was we were what when where which who whom why will with
    would you your
    """.split()  # noqa: SIM905
)
"""Left out of queries, not of the index: `is not` can still be looked up alone."""


def terms(text: str) -> list[str]:
    """The index terms of a text, in order, with repetitions."""
    words = _COMPOUND.findall(unicodedata.normalize("NFKC", text))
    short = max(map(len, words), default=0) <= MAX_TERM
    return list(chain.from_iterable(map(_remembered if short else _terms_of, words)))


def query_terms(text: str) -> Counter[str]:
    """The terms of a query and how often each occurs."""
    words = [word for word in text.split() if word.strip("?!.,;:'\"").casefold() not in STOP_WORDS]
    return Counter(terms(" ".join(words) or text))


def term_sequence(text: str) -> list[str]:
    """The terms of a text in order, stop words left out: what stands beside what."""
    return sequence(terms(text))


def sequence(found: Iterable[str]) -> list[str]:
    """Those of the terms, in order, that are no stop words."""
    return [term for term in found if term not in STOP_WORDS]


def frequencies(fields: Iterable[tuple[Sequence[str], int]]) -> Mapping[str, int]:
    """Term frequencies over the terms of fields with weights: as if each stood there so many times.

    A simple form of BM25F (Robertson, Zaragoza & Taylor 2004): weights go into the frequency,
    before it saturates.
    """
    return Counter(chain.from_iterable(found for found, times in fields for _ in range(times)))


def _terms_of(word: str) -> tuple[str, ...]:
    return _remembered(word) if len(word) <= MAX_TERM else _made(word)


def _made(word: str) -> tuple[str, ...]:
    if word.isascii() and word.isalpha() and (word.islower() or word[1:].islower()):
        return (_stem(word.lower()),)
    return tuple(_compound(word))


_remembered = lru_cache(maxsize=200_000)(_made)


def _compound(word: str) -> Iterator[str]:
    bare = word.strip("_-")
    humped = not bare.islower() and _HUMP.search(bare)
    exact = {bare, word} if humped or _JOINED.search(bare) else {word} - {bare}
    for form in sorted(exact):
        if len(form) <= MAX_TERM:
            yield form.casefold()
    for part in _PART.findall(_HUMP.sub("-", bare) if humped else bare):
        if not part.isascii() and _PAIRED.match(part):
            yield from _pairs(part)
        elif len(part) <= MAX_TERM:
            yield _stem(part.casefold())


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


_stemmer = Stemmer.Stemmer("english", 0)


def _stem(word: str) -> str:
    return str(_stemmer.stemWord(word))
