"""Whether a sentence is one of the source with a word of its own put in.

A sentence that says what the source says in other words is built otherwise. One that goes along
with a sentence of the source, word for word, and has another word in one place, says something
else there.
"""

import difflib
import re
from collections.abc import Sequence

from vademecum.search.terms import STOP_WORDS, terms

ALONG = 0.6
"""Share of the sentence's words that stand in the source's sentence, in its order."""
BESIDE = 4
"""Words on the two sides of a place that the sentences have in common, at least; an end is one."""
ALIKE = 4
"""First letters of two words that are forms of one."""
_WORD = re.compile(r"\w+(?:[-'’]\w+)*")


def replaced(sentence: str, place: str, said: frozenset[str]) -> tuple[str, str] | None:
    """The first word that stands in place of another one, with that; None where there is none.

    `place` is the source's sentence that is most like it, `said` the terms of what is around it.
    """
    own, theirs = _words(sentence), _words(place)
    blocks = difflib.SequenceMatcher(None, own, theirs, autojunk=False).get_opcodes()
    same = sum(last - first for kind, first, last, _, _ in blocks if kind == "equal")
    if same < ALONG * len(own):
        return None
    for number, (kind, first, last, their_first, their_last) in enumerate(blocks):
        if kind != "replace" or last - first != their_last - their_first:
            continue
        if _equal(blocks, number - 1) + _equal(blocks, number + 1) < BESIDE:
            continue
        for word, other in zip(own[first:last], theirs[their_first:their_last], strict=True):
            if (
                _tells(word, said)
                and _tells(other, frozenset(terms(sentence)))
                and word[:ALIKE] != other[:ALIKE]
            ):
                return word, other
    return None


def _equal(blocks: Sequence[tuple[str, int, int, int, int]], number: int) -> int:
    """How many words are the same on that side; an end of the sentence is one."""
    if not 0 <= number < len(blocks):
        return 1
    kind, first, last, _, _ = blocks[number]
    return last - first if kind == "equal" else 0


def _tells(word: str, elsewhere: frozenset[str]) -> bool:
    """Whether a word says something that is not said elsewhere."""
    own = set(terms(word)) - STOP_WORDS
    return bool(own) and not own <= elsewhere


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
