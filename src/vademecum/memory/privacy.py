"""The gate: between any writer and the store, nothing that breaks the rules gets through.

A sentence passes when every word of it is known to be harmless and no form in it is that of a
number, a date, a unit, a place or an address. What is not known is refused. Where a name stands
where a person would, or a date after a preposition, the sentence is generalised and judged again;
of one that says what the user is and where, the first is left.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from vademecum.memory import lexicon
from vademecum.memory.normal import BROKEN, fold, normalise, sentences
from vademecum.memory.privacy_forms import OPERATION, ROLE, has_number_word, spelled, violations
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
_WHERE = re.compile(
    r"(?i)[, (]+(?:(?:in|at|with|from|for|near|on|to|under|based|posted|stationed|serving|dans|à|"
    r"aux?|avec|chez|pour|en|sur|pr[èe]s|bas[ée]e?|affect[ée]e?|post[ée]e?)\s|(?<=\())"
)
_I = re.compile(r"(?i)(?:i|je|j'|please|my|mon|ma)\b|.*\b(?:hi|hello|bonjour|salut),? (?:i|je)\b")
_AND_I = re.compile(r"(?i)(?:[,;]? (?:and|but|et|mais)|;) (?=(?:i|je|j'|please)\b)")
"""Where a sentence goes on with another thing that the user says of themselves."""


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
        rewritten = _rewritten(
            sentence, found, lambda text: violations(text, names=known, allowed=extra)
        )
        if rewritten:
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


def _rewritten(
    sentence: str, found: list[Violation], judge: Callable[[str], list[Violation]]
) -> str | None:
    """What can be kept of a sentence that breaks the rules, judged again."""
    clauses = _AND_I.split(sentence) if _I.match(sentence) and BROKEN not in sentence else []
    if len(clauses) < 2 or any(v.kind == "injection" for v in found):
        alone = " ".join(filter(None, (_role_alone(sentence), _operation_alone(sentence))))
        forms = (_generalise(sentence, found), alone)
        return next((form for form in forms if form and not judge(form)), None)
    kept = []
    for clause in clauses:
        wrong = judge(clause)
        if passed := _rewritten(clause, wrong, judge) if wrong else clause:
            kept.append(f"{passed[0].upper()}{passed[1:].rstrip(' .,;')}.")
    return " ".join(kept) or None


def _may_be_a_name(word: str, harmless: frozenset[str]) -> bool:
    known = word in lexicon.technical() or word in harmless
    return word in lexicon.ambiguous() and not known


def _generalise(sentence: str, found: list[Violation]) -> str | None:
    """The sentence without its names and dates, or None where little would be left of it."""
    if any(violation.kind not in ("name", "date") for violation in found):
        return None
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
            return None
    text = re.sub(rf"(?:{PERSON}[ ,]*)+(?={PERSON})", "", " ".join(text.split()))
    rest = re.search(rf"{PERSON} ([^\W\d_]+)", text)
    if rest and fold(rest[1]) in lexicon.ambiguous() - lexicon.STARTERS - AFTER_PERSON:
        return None  # it may be the rest of the name
    if re.search(rf"(?i)\b(?:an?|the|my|une?|l[ea]) {PERSON}", text):
        return None  # what was refused is no name
    if any(v.kind == "date" for v in found) and has_number_word(text):
        return None  # it may be the rest of the date
    text = re.sub(r" ([.,!?])", r"\1", text).strip()
    return f"{text[0].upper()}{text[1:]}" if len(text.split()) >= 4 else None


def _operation_alone(sentence: str) -> str | None:
    for match in OPERATION.finditer(sentence):
        if fold(match[1]) in lexicon.OPERATIONS:
            return f"Took part in Op {match[1].upper()}."
    return None


def _role_alone(sentence: str) -> str | None:
    """What the user says to be, without what leads to a place, a unit or a person."""
    opening = ROLE.match(sentence)
    where = _WHERE.search(sentence, opening.end()) if opening else None
    if not opening or not where:
        return None
    role = sentence[opening.end() : where.start()]
    article = opening[0].split()[-1].lower() in {"a", "an", "un", "une"}
    if not article and any(fold(word) in lexicon.ambiguous() for word in role.split()):
        return None  # it may be a name
    if not article and re.match(r"[^\W\d_]+(?:é|ée|i|it|ite|is|ise)\b", role):
        return None  # what has been done with the user: "je suis affecté"
    return f"{sentence[opening.start('role') : where.start()]}."


def _clean(sentence: str) -> str:
    """Without what could be markup of a prompt."""
    return " ".join(re.sub(r"[<>{}\[\]|`\\]", " ", sentence).split())
