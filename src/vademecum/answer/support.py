"""Whether a passage says what a sentence says: a check by words, which no model can talk round.

It is a necessary condition, not a proof. Numbers, identifiers, names and the first word of what the
sentence is about have to stand in the passage, most of its other words within a few neighbouring
sentences of it, and neither may deny what the other affirms. `benchmarks/support.py` measures what
passes wrongly and what is wrongly refused; the figures are in docs/models.md.
"""

import re
from dataclasses import dataclass

from vademecum.answer.replaced import replaced
from vademecum.answer.sentences import sentence_spans
from vademecum.search.terms import STOP_WORDS, terms

THRESHOLD = 0.8
"""Least share of a sentence's words that stand in that place of the passage which has most."""
WINDOW = 3
"""Sentences of a passage that are looked at together."""
NEARLY = 0.75
"""Share of one's words that another has to hold to be taken to say the same."""
REPEATED, FEW = 0.65, 3
"""Share of the words of a denied clause, and how many it has to have, to be taken as repeated."""
DENIES, DENIED = "it denies what the source does not", "the source denies it"

_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
    )
} | {"once": "1", "twice": "2"}
_UNIT = re.compile(r"(?<=\d)(?=[A-Za-zµ%])")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_TOKEN = re.compile(r"-{0,2}\w+(?:(?:[.\-/:]|::|->)\w+)*")
_COMPOUND_WORD = re.compile(r"[^\W\d_]+(?:[-/][^\W\d_]+)+")
_CODE = re.compile(r"`([^`\n]+)`")
_JOINED = re.compile(r"[._\\:]|->|^--|(?<=[a-z0-9])[A-Z]")
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z]\w+|\b[A-Z]{2,}\b")
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|neither|nor|none|nothing|without|unable)\b|n[’']t\b", re.IGNORECASE
)
_NEGATIVE = re.compile(
    rf"{_NEGATION.pattern}|\b(?:un(?:less|supported|available)|only|except|instead|fail\w*|prevent\w*"
    r"|forbid\w*|forbidden|ignor\w*|disabl\w*|lack\w*|refus\w*|reject\w*|den(?:y|ie[sd])|avoid\w*"
    r"|exclud\w*|impossible|invalid|rather than)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:()]\s|\s(?:but|because|if|when|although|while|whereas|so that|unless|since)\s",
    re.IGNORECASE,
)
# Said of the answer, not of its subject.
_FRAME = frozenset(
    terms(
        "according documentation document passage source section page says said states stated"
        " describes described explains note means also however therefore both either example"
        " following above below mentioned used use uses using make made get given besides unlike"
        " although while once additionally thus whether furthermore instead only each every many"
        " some all several most within through during"
    )
)
_OPPOSITES = {
    stemmed: other_stemmed
    for pair in (
        "enable disable",
        "enabled disabled",
        "before after",
        "above below",
        "increase decrease",
        "minimum maximum",
        "min max",
        "allow deny",
        "true false",
        "more less",
        "first last",
        "always never",
        "required optional",
        "internal external",
        "public private",
        "upper lower",
        "older newer",
        "start stop",
        "mutable immutable",
        "synchronous asynchronous",
        "ascending descending",
        "read write",
        "client server",
        "input output",
        "source destination",
        "higher lower",
        "larger smaller",
        "faster slower",
        "include exclude",
        "add remove",
        "create delete",
        "success failure",
        "incoming outgoing",
        "ingress egress",
    )
    for one, other in [pair.split()]
    for (stemmed,), (other_stemmed,) in [
        (terms(one)[:1], terms(other)[:1]),
        (terms(other)[:1], terms(one)[:1]),
    ]
}


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to check sentences against; headings count as said throughout."""

    text: str
    headings: str = ""


def objection(sentence: str, passage: Passage) -> str | None:
    """Why the passage does not support the sentence; None where it does, as far as words tell."""
    said = _plain(f"{passage.headings}\n{passage.text}")
    if missing := _absent(sentence, said) or _subject_absent(sentence, said):
        return f"the source does not mention {missing}"
    words = _content(sentence)
    if not words:
        return "it says nothing"
    places = _places(passage)
    held = frozenset(terms(_plain(passage.headings)))
    window, share = _best_window(words, places, held)
    if share < THRESHOLD:
        return f"the source has only {share:.0%} of its words in one place"
    here = frozenset(terms(_plain(" ".join(window)))) | held
    if opposite := next((w for w in words - here if _OPPOSITES.get(w) in here), None):
        return f"the source says the opposite of {opposite!r}"
    nearest = max(places, key=lambda one: _likeness(words, one), default="")
    if swap := replaced(sentence, nearest, here):
        return f"the source says {swap[1]!r} where it says {swap[0]!r}"
    return _contradiction(sentence, words, places, window, passage.headings)


def _plain(text: str) -> str:
    text = _THOUSANDS.sub("", text)
    return " ".join(_NUMBER_WORDS.get(word.lower(), word) for word in _UNIT.sub(" ", text).split())


def _content(text: str) -> frozenset[str]:
    found = terms(_plain(text))
    return frozenset(t for t in found if t not in STOP_WORDS and t not in _FRAME and len(t) > 1)


def _absent(sentence: str, said: str) -> str | None:
    """The first number, identifier or name of the sentence that the passage does not have."""
    if missing := _number_absent(sentence, said):
        return missing
    folded, known = said.casefold(), frozenset(terms(said))
    codes = [token for code in _CODE.findall(sentence) for token in code.split()]
    for token in [*codes, *filter(_is_identifier, _TOKEN.findall(_plain(sentence)))]:
        if token.casefold() not in folded and not set(terms(token)) <= known:
            return str(token)
    return next((str(n) for n in _NAME.findall(sentence) if not set(terms(n)) & known), None)


def _number_absent(sentence: str, said: str) -> str | None:
    """The first number or version of the sentence that is not said."""
    tokens = _TOKEN.findall(_plain(sentence))
    for token in (part for whole in tokens for part in re.split(r"[-/:]+", whole)):
        number = token.casefold()
        if not re.fullmatch(r"[a-z]?\d[\w.]*", number):
            continue
        if not re.search(rf"(?<![\w.]){re.escape(number)}(?!\w|\.\d)", said.casefold()):
            return str(token)
    return None


def _subject_absent(sentence: str, said: str) -> str | None:
    """The first word that tells, where the passage does not have it: most often who acts."""
    for token in _TOKEN.findall(_plain(sentence)):
        if words := _content(token):
            return None if words & frozenset(terms(said)) else str(token)
    return None


def _is_identifier(token: str) -> bool:
    return bool(_JOINED.search(token)) and not _COMPOUND_WORD.fullmatch(token)


def _places(passage: Passage) -> list[str]:
    """The sentences of a passage, and its lines where it has no sentences: tables and code."""
    return [
        line[first:last]
        for line in re.split(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+|>#]|\d+[.)]))", passage.text)
        for first, last in sentence_spans(line, 0, len(line))
    ]


def _best_window(
    words: frozenset[str], places: list[str], held: frozenset[str]
) -> tuple[list[str], float]:
    """The neighbouring sentences that hold most of the words, and their share of them."""
    terms_of = [frozenset(terms(_plain(place))) for place in places]
    best, share = places[:WINDOW], 0.0
    for first in range(max(1, len(places) - WINDOW + 1)):
        here = held.union(*terms_of[first : first + WINDOW])
        found = len(words & here) / len(words)
        if found > share:
            best, share = places[first : first + WINDOW], found
    return best, share


def _contradiction(
    sentence: str, words: frozenset[str], places: list[str], window: list[str], headings: str
) -> str | None:
    """Whether one of the two denies what the other affirms.

    Where one sentence of the passage says the same, both have to deny equally often; where it says
    more, or several say it together, what is denied has to be denied there, and a clause that is
    denied there must not be repeated as if it were not.
    """
    words -= _NOTS
    place = max(places, key=lambda one: _likeness(words, one), default="")
    denials = len(_NEGATION.findall(sentence))
    if _covers(_content(place), words):
        if missing := _number_absent(sentence, _plain(f"{headings} {place}")):
            return f"the source does not say it of {missing}"
        if _covers(words, _content(place) - _NOTS):
            if denials == len(_NEGATION.findall(place)):
                return None
            return DENIES if denials else DENIED
        if denials > len(_NEGATIVE.findall(place)):
            return DENIES
    elif denials and not _NEGATIVE.search(" ".join(window)):
        return DENIES
    if not _NEGATIVE.search(sentence) and any(
        _NEGATION.search(clause) and _repeats(words, _content(clause) - _NOTS)
        for clause in _CLAUSE.split(place)
    ):
        return DENIED
    return None


def _repeats(words: frozenset[str], clause: frozenset[str]) -> bool:
    return len(clause) >= FEW and len(words & clause) >= REPEATED * len(clause)


def _likeness(words: frozenset[str], place: str) -> float:
    here = _content(place) - _NOTS
    return len(words & here) / len(words | here) if here else 0.0


def _covers(these: frozenset[str], those: frozenset[str]) -> bool:
    return len(these & those) >= NEARLY * len(those)


_NOTS = frozenset(
    terms("not no never cannot can't don't doesn't isn't neither nor none nothing without unable")
)
