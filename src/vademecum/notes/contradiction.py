"""Whether a note says otherwise than another one: by rules, so that each replacement is explained.

Two notes are about the same where their content words are. Of these, one replaces the other where
it denies what that affirms, or gives another value for the same thing.
"""

import re
from collections.abc import Sequence

SAME_WORDS = 0.6
"""Jaccard index of content words from which on two sentences are about the same."""
LEAST_WORDS = 3
"""Content words that must be shared to tell by a value among words."""
_WORD = re.compile(r"\w[\w./:+#'-]*[\w+#]|\w")
_DENIES = frozenset(
    """not no never don't dont doesn't isn't aren't can't cannot won't mustn't shouldn't avoid
    without stop disabled off forbidden""".split()  # noqa: SIM905
)
_EMPTY = frozenset(
    """a an the is are be to of in on for with and or we use uses using used do does it this that
    our all always must should shall will as at by from has have only please now""".split()  # noqa: SIM905
)
_OPPOSITES = (
    ("before", "after"),
    ("sync", "async"),
    ("true", "false"),
    ("required", "optional"),
)
_VALUE = re.compile(r"\d|^v\d")


def contradicts(new: str, old: str) -> str | None:
    """Why the new text says otherwise than the old; None where it does not, or is the same."""
    for sentence in _sentences(new):
        for other in _sentences(old):
            if reason := _otherwise(sentence, other):
                return reason
    return None


def same(new: str, old: str) -> bool:
    """Whether two texts say the same in the same words."""
    return _words(new) == _words(old)


def _otherwise(new: str, old: str) -> str | None:
    words, others = _words(new), _words(old)
    if words == others:
        return None
    denied, denies = _denials(others), _denials(words)
    content, other = _content(words), _content(others)
    shared, either = content & other, content | other
    likeness = len(shared) / len(either) if either else 0.0
    if denies % 2 != denied % 2 and len(shared) >= 2 and likeness >= SAME_WORDS:
        return f"it says {new!r}, the older one {old!r}"
    gone, come = other - content, content - other
    if len(shared) >= LEAST_WORDS - 1:
        for pair in _OPPOSITES:
            for one, opposite in (pair, pair[::-1]):
                if one in come and opposite in gone and likeness >= SAME_WORDS - 0.2:
                    return f"{one!r} instead of {opposite!r}"
    # The same but for one value: "the timeout is 30 s", "the timeout is 60 s".
    values = [word for word in (*come, *gone) if _VALUE.search(word)]
    least = 2 if len(values) == len(come) + len(gone) else LEAST_WORDS
    if any(w in come for w in values) and any(w in gone for w in values):
        few = len(come) <= 2 and len(gone) <= 2
        if few and len(shared) >= least and likeness >= SAME_WORDS - 0.1:
            return f"{' '.join(sorted(come))} instead of {' '.join(sorted(gone))}"
    return None


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?;])\s+|\n+", text) if part.strip()][:50]


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text.replace("’", "'"))]


def _denials(words: Sequence[str]) -> int:
    return sum(word in _DENIES for word in words)


def _content(words: Sequence[str]) -> set[str]:
    return {word for word in words if word not in _EMPTY and word not in _DENIES and word != "t"}
