"""Text to index terms: words stemmed, and identifiers both whole and in parts.

`pg_stat_activity` gives `pg`, `stat`, `activ` and itself, so that it is found by its exact form
and by the words in it; `--no-verify`, `Foo.bar()`, `E0308` and `3.11.2` likewise. Runs of Chinese,
Japanese and Korean characters give their pairs, since nothing separates words there.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

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
    return list(_terms(unicodedata.normalize("NFKC", text)))


def query_terms(text: str) -> Counter[str]:
    """The terms of a query and how often each occurs."""
    words = [word for word in text.split() if word.strip("?!.,;:'\"").casefold() not in STOP_WORDS]
    return Counter(terms(" ".join(words) or text))


def term_sequence(text: str) -> list[str]:
    """The terms of a text in order, stop words left out: what stands beside what."""
    return [term for term in terms(text) if term not in STOP_WORDS]


def frequencies(fields: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    """Term frequencies over texts with weights: as if each text stood there so many times.

    A simple form of BM25F (Robertson, Zaragoza & Taylor 2004): weights go into the frequency,
    before it saturates.
    """
    counts: Counter[str] = Counter()
    for text, weight in fields:
        for term in terms(text):
            counts[term] += weight
    return counts


def _terms(text: str) -> Iterator[str]:
    for match in _COMPOUND.finditer(text):
        word = match.group()
        if word.isascii() and word.isalpha() and (word.islower() or word[1:].islower()):
            yield _stem(word.lower())
        elif len(word) <= MAX_TERM:
            yield from _parts_of(word)
        else:
            yield from _compound(word)


@lru_cache(maxsize=100_000)
def _parts_of(word: str) -> tuple[str, ...]:
    return tuple(_compound(word))


def _compound(word: str) -> Iterator[str]:
    bare = word.strip("_-")
    exact = {bare, word} if _JOINED.search(bare) or _HUMP.search(bare) else {word} - {bare}
    for form in sorted(exact):
        if len(form) <= MAX_TERM:
            yield form.casefold()
    for part in _PART.findall(_HUMP.sub("-", bare)):
        if _PAIRED.match(part):
            yield from _pairs(part)
        elif len(part) <= MAX_TERM:
            yield _stem(part.casefold())


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


_stemmer = Stemmer.Stemmer("english", 0)


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    return str(_stemmer.stemWord(word))
