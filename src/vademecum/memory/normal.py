"""One plain form of a text before it is judged, so that evasions look like what they hide."""

import re
import unicodedata

from vademecum.memory import lexicon

_CONFUSABLE = str.maketrans(
    "абвгдеёзийклмнопрстуфхьыіјѕԁһⅼɡαβεηικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕКМНОРСТУХІЈЅŁłøØđĐıß’‘ʼ‐‑‒–—−",
    "abvrdeezuuknmhonpctyfxbbijsdhlgabenikvoptuxwABEZHIKMNOPTYXABEKMHOPCTYXIJSLloOdDis'''------",
)
"""Letters of other alphabets to the Latin ones that they look like, and marks to plain ones."""
BROKEN = "\u2424"
"""Stands where a short line breaks off or letters stand apart, as they do to hide a word."""
_SPACED = re.compile(r"(?<!\w)(?:[^\W_][ .\-_*·|/,]{1,2}){2,}[^\W_](?!\w)")
_SENTENCE = re.compile(r"(?<=[.!?;])[\"')\]]*\s+|\n\s*\n|\n(?=\s*(?:[-*] |>|\w+:))")
_ABBREVIATION = re.compile(
    r"\b(mr|mrs|ms|dr|st|mme|mlle|cpl|mcpl|sgt|wo|mwo|cwo|lt|capt|maj|col|gen|pte|op|no|e\.g|i\.e)\.",
    re.IGNORECASE,
)


def normalise(text: str) -> str:
    """The text in compatible characters, without hidden ones, look-alikes and spaced-out words."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(
        character
        for character in text
        if character in "\n\t" or unicodedata.category(character) not in ("Cf", "Cc", "Cs", "Co")
    ).translate(_CONFUSABLE)
    return _SPACED.sub(
        lambda match: f"{re.sub(r'[^a-zA-Z0-9]+', '', match.group())} {BROKEN}", text
    )


def fold(word: str) -> str:
    """Lower case without accents: the form of the word lists."""
    if word.isascii():
        return word.lower()
    word = word.casefold().replace("œ", "oe").replace("æ", "ae").translate(_CONFUSABLE)
    plain = unicodedata.normalize("NFD", word)
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


_BREAK = re.compile(r"(?m)^(.{1,44}[^\s.!?:;,])\n(?=[^\W\d_A-ZÀ-Þ]|\d)")


_TORN = re.compile(r"(?<=[A-Z])\n(?=[A-Z]{2})|(?<=[A-Z]{2})\n(?=[A-Z](?:\W|$))")
"""A line that ends and goes on in capitals."""


_LINE_END = re.compile(r"(?P<begun>[^\W\d_]+)\n(?P<rest>[^\W\d_A-ZÀ-Þ]+)")


def _joined(match: re.Match[str]) -> str:
    """A line end, marked where it may stand within a name rather than between two words."""
    begun = match["begun"]
    mid = match.string[: match.start()].endswith((" ", "'"))
    whole = fold(begun + match["rest"])
    name = whole in lexicon.ambiguous() and whole not in lexicon.STARTERS
    capital = begun[0].isupper() and mid and fold(begun) not in lexicon.technical()
    return f"{begun} {BROKEN} {match['rest']}" if name or capital else match.group()


def sentences(text: str) -> list[str]:
    """The sentences of a normalised text, each on one line."""
    text = _BREAK.sub(rf"\1 {BROKEN} ", text)
    text = _TORN.sub(f" {BROKEN} ", text)
    text = _LINE_END.sub(_joined, text)
    text = _ABBREVIATION.sub(r"\1", text)
    return [" ".join(part.split()) for part in _SENTENCE.split(text) if part and part.strip()]
