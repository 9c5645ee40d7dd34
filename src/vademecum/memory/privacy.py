"""The gate: between any writer and the store, nothing that breaks the rules gets through.

A sentence passes when every word of it is known to be harmless and no form in it is that of a
number, a date, a unit, a place or an address. What is not known is refused. Where a name stands
where a person would, or a date after a preposition, the sentence is generalised and judged again.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from vademecum.memory import lexicon
from vademecum.memory.normal import BROKEN, fold, normalise, sentences
from vademecum.memory.privacy_forms import OPERATION, has_number_word, spelled, violations
from vademecum.memory.privacy_types import Violation
from vademecum.memory.privacy_words import AFTER_PERSON, BEFORE_DATE, TO_PERSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What may be kept, and how many sentences were not as they came. Holds nothing refused."""

    text: str
    kept: int
    generalised: int
    dropped: dict[str, int]
    """Sentences dropped, by the kind of the first violation."""


PERSON = "a colleague"


def gate(text: str, *, names: Collection[str] = (), allowed: Collection[str] = ()) -> Gated:
    """What of `text` may be kept. Deterministic; raises nothing and logs nothing.

    `names` are folded words that the exchange showed to be names; `allowed` are words that the
    installation calls harmless.
    """
    kept: list[str] = []
    generalised = 0
    dropped: dict[str, int] = {}
    extra = frozenset(fold(word) for word in allowed)
    known = frozenset(names)
    for sentence in sentences(normalise(text)):
        found = violations(sentence, names=known, allowed=extra)
        if BROKEN in sentence:
            found.append(Violation(kind="break", start=0, end=len(sentence)))
        alone = re.findall(r"[^\W\d_]+", sentence)
        if len(alone) == 1 and alone[0][0].isupper() and _may_be_a_name(fold(alone[0]), extra):
            found.append(Violation(kind="name", start=0, end=len(sentence)))
        if not found:
            kept.append(_clean(sentence))
            continue
        rewritten = _generalise(sentence, found)
        if rewritten and not violations(rewritten, names=known, allowed=extra):
            kept.append(_clean(rewritten))
            generalised += 1
        else:
            dropped[found[0].kind] = dropped.get(found[0].kind, 0) + 1
    # Parts that are harmless alone must be so together, too.
    whole = " ".join(kept)
    if sum(character.isdigit() for character in whole) > 6 or spelled(whole):
        kept = [one for one in kept if not re.search(r"\d", one) and not has_number_word(one)]
    return Gated(
        text=" ".join(dict.fromkeys(kept)), kept=len(kept), generalised=generalised, dropped=dropped
    )


def _may_be_a_name(word: str, harmless: frozenset[str]) -> bool:
    known = word in lexicon.technical() or word in harmless
    return word in lexicon.ambiguous() and not known


def _generalise(sentence: str, found: list[Violation]) -> str | None:
    """The sentence without its names and dates, or None where little would be left of it."""
    if any(violation.kind not in ("name", "date", "operation") for violation in found):
        return _operation_alone(sentence)
    if any(violation.kind == "operation" for violation in found):
        return _operation_alone(sentence)
    text = sentence
    for violation in reversed(found):
        before = text[: violation.start].rstrip()
        head = before.rsplit(" ", 1)[-1] if before else ""
        after = text[violation.end :]
        if violation.kind == "date":
            if fold(head) in BEFORE_DATE:
                before = before[: -len(head)].rstrip()
            text = f"{before} {after.lstrip()}"
        elif fold(head) in lexicon.RANKS:
            before = before[: -len(head)].rstrip()
            text = f"{before} {PERSON}{after}"
        elif fold(head) in TO_PERSON or after.startswith(f" {PERSON}"):
            text = f"{before} {PERSON}{after}"
        else:
            return _operation_alone(sentence)
    text = re.sub(rf"(?:{PERSON}[ ,]*)+(?={PERSON})", "", " ".join(text.split()))
    rest = re.search(rf"{PERSON} ([^\W\d_]+)", text)
    if rest and fold(rest[1]) in lexicon.ambiguous() - lexicon.STARTERS - AFTER_PERSON:
        return None  # it may be the rest of the name
    if re.search(rf"(?i)\b(?:an?|the|my|une?|l[ea]) {PERSON}", text):
        return None  # what was refused is no name
    if any(v.kind == "date" for v in found) and has_number_word(text):
        return None  # it may be the rest of the date
    text = re.sub(r" ([.,!?])", r"\1", text).strip()
    return text if len(text.split()) >= 4 else None


def _operation_alone(sentence: str) -> str | None:
    for match in OPERATION.finditer(sentence):
        if fold(match[1]) in lexicon.OPERATIONS:
            return f"Took part in Op {match[1].upper()}."
    return None


def _clean(sentence: str) -> str:
    """Without what could be markup of a prompt."""
    return " ".join(re.sub(r"[<>{}\[\]|`\\]", " ", sentence).split())
