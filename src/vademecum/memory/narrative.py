# ruff: noqa: E501
"""The deterministic narrator: what is known of a user, to four sections of prose.

Facts are counted and dated. "Top of mind" is what is recent; what recurs or was replaced is
"History". Whatever comes in has passed the gate.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from vademecum.memory.normal import fold, sentences

Facts = dict[str, Any]
"""Kind (role, preference, operation, note, topic, agent, formerly) to text to {count, last};
`turn` counts the exchanges."""

KINDS = ("role", "preference", "operation", "note", "topic", "agent", "formerly")
KEPT = 40
"""Facts of a kind that are kept, the most recent."""
RECENT = 5
"""Exchanges within which a topic is top of mind."""
MAX_CHARACTERS = 4000
EMPTY = {
    "Work context": "Nothing is known yet of the user's work.",
    "Interaction patterns": "No pattern has shown yet.",
    "Top of mind": "Nothing in particular at present.",
    "History": "There is no longer history yet.",
}
"""The titles of the sections, and what a section says that has nothing to say."""
BETWEEN = re.compile(r"(?<=[.!?])\s+|\n+")
"""What stands between two sentences of a narrative."""

_ROLE = re.compile(
    r"(?i)^(?:hi|hello|bonjour)?[, ]*(?:i am|i'm|i work as|i serve as|je suis|je travaille comme|the user is)\s+"
    r"((?:an?|une?)\s+)?([^.!?;]{3,90})"
)
_AND_WORK = re.compile(r"(?i)\b(and|et) (?:i |je )?(?:work|serve|travaille) (?:as|comme) ")
_ROLE_ENDS = re.compile(
    r"(?i),? (?:and|but|so|who|et|mais|qui) (?:i|we|need|want|would|have|had|am|was|can|could|"
    r"like|use|write|often|usually|je|j'\w+|ai|veux|voudrais|dois)\b.*|, (?!an? ).*"
)
"""Where a sentence goes on with something else than the role."""
_NOT_ROLE = re.compile(
    r"(?i)^(?:going|looking|trying|not|very|happy|sorry|sure|writing|working|asking|wondering|"
    r"having|using|getting|interested|glad|new|in|at|on|from|back|away|here|a colleague|en train)\b"
)
_PREFERENCE = re.compile(
    r"(?i)^(?:please,? )?(?:i(?: would|'d)? (?:prefer|like)|(?:the user )?prefers|je préfère|"
    r"(?:j'aimerais|je (?:voudrais|veux)) (?:des|une|un) réponses?|"
    r"please (?:keep|use|write|answer)|keep (?:it|your)|always|s'il vous plaît)\b"
)
_PREFERS = re.compile(
    r"(?i)^(?:i prefer|i(?: would|'d)? (?:prefer|like)|je préfère|prefers|"
    r"(?:j'aimerais|je (?:voudrais|veux)) (?:des|une|un))\s+"
)
_TOPIC = re.compile(
    r"(?i)\b(?:about|regarding|concerning|question on|help with|au sujet (?:de |du |des |d')|"
    r"concernant|à propos (?:de |du |des |d'))\s*(?:the |my |our |le |la |les |l')?"
    r"([a-zà-ÿ][\w' -]{2,50}?)(?=[.,;?!]| (?:and|but|because|for|in|to|that|which|when|is|et|pour)\b|$)"
)
_OPERATION = re.compile(r"\b[Oo]p(?:eration|ération)? ([A-Z]{4,})")
_NOW = re.compile(r"(?i)(?:^| )(?:now|currently|again|still|actuellement|maintenant)$")
_HABIT = re.compile(
    r"(?i)^i (?:(?P<how>often|usually|mostly|mainly|frequently|regularly|sometimes|always) "
    r"(?P<does>(?!ask\b|have\b|am\b)[a-z]+)|(?P<plain>use|write|read|maintain|manage|teach|review|translate|draft|"
    r"prepare|program|supervise|train)|am (?P<is>learning|studying|training)) (?P<what>.{3,120})$"
)
_AND_HABIT = re.compile(
    r"(?i)(?<=\w),? and (?:i )?"
    r"(?=(?:often|usually|mostly|mainly|frequently|regularly|sometimes|always) [a-z]+ \w)"
)
_STATED = re.compile(r"(?i)^(?:frequently|primarily|often|usually|mostly|the user)\b")
_DIMENSIONS = {
    "length": re.compile(
        r"(?i)\b(?:concise|short|brief|detailed|long|thorough|court\w*|détaillé\w*)"
    ),
    "language": re.compile(r"(?i)\b(?:english|french|anglais|français)\b"),
    "form": re.compile(r"(?i)\b(?:bullet\w*|prose|tables?|lists?|paragraphs?|puces)\b"),
    "tone": re.compile(r"(?i)\b(?:formal|informal|casual|direct|formel\w*)\b"),
}


def learn(facts: Mapping[str, Any], text: str, *, agent: str) -> tuple[Facts, bool]:
    """The facts with what a gated text adds, and whether it added anything worth keeping."""
    learnt: Facts = {kind: dict(facts.get(kind, {})) for kind in KINDS}
    turn = int(facts.get("turn", 0)) + 1
    learnt["turn"] = turn
    worth = False
    for sentence in sentences(text):
        for clause in _clauses(sentence):
            kind, fact = _fact(clause)
            if kind and fact:
                _note(learnt, kind, fact, turn)
                worth = True
        for topic in _TOPIC.findall(sentence):
            _note(learnt, "topic", topic.strip().lower(), turn)
            worth = True
    if worth and agent:
        _note(learnt, "agent", agent, turn)
    for kind in KINDS:
        newest = sorted(learnt[kind].items(), key=lambda pair: (-pair[1]["last"], pair[0]))
        learnt[kind] = dict(newest[:KEPT])
    return (learnt, True) if worth else (dict(facts), False)


def _clauses(sentence: str) -> list[str]:
    """`I prefer Python and usually write tests` are two facts."""
    first, *habits = _AND_HABIT.split(sentence.strip())
    return [first, *(f"I {habit}" for habit in habits)]


def _fact(sentence: str) -> tuple[str | None, str]:
    plain = sentence.strip().rstrip(".!?; ")
    if match := _OPERATION.search(plain):
        return "operation", f"Op {match[1]}"
    if match := _HABIT.match(plain):
        return "note", _habit(match)
    if (match := _ROLE.match(plain)) and not _NOT_ROLE.match(match[2]):
        role = _NOW.sub("", _ROLE_ENDS.sub("", _AND_WORK.sub(r"\1 ", match[2])))
        return "role", f"{match[1] or _article(role)}{role}".strip()
    if _PREFERENCE.match(plain) and len(plain) < 160:
        return "preference", _PREFERS.sub("", plain)
    if _STATED.match(plain):
        return "note", plain
    return None, ""


def _habit(said: re.Match[str]) -> str:
    """What the user says to do, said of the user: `I often write memos` is `Often writes memos`."""
    if said["is"]:
        return f"is {said['is']} {said['what']}"
    does = _of_a_third(said["does"] or said["plain"])
    what = re.sub(r"(?i)\b(?:my|our)\b", "their", said["what"])
    return " ".join(filter(None, ((said["how"] or "").lower(), does, what)))


def _of_a_third(verb: str) -> str:
    """`write` as in `writes`."""
    if re.search(r"(?:s|sh|ch|x|z|o)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"


def _article(noun: str) -> str:
    return "an " if fold(noun[0]) in "aeiou" else "a "


def _note(facts: Facts, kind: str, text: str, turn: int) -> None:
    """Count a fact; what it contradicts goes."""
    same = next((known for known in facts[kind] if fold(known) == fold(text)), text)
    if kind == "role":
        for known in [known for known in facts[kind] if known != same]:
            facts["formerly"][known] = facts[kind].pop(known)
    if kind == "preference":
        about = _dimension(text)
        for known in [k for k in facts[kind] if about and _dimension(k) == about and k != same]:
            del facts[kind][known]
    before = facts[kind].get(same, {"count": 0})
    facts[kind][same] = {"count": before["count"] + 1, "last": turn}


def _dimension(text: str) -> str | None:
    return next((name for name, pattern in _DIMENSIONS.items() if pattern.search(text)), None)


def narrate(facts: Mapping[str, Any]) -> str:
    """Four sections of prose, the same for the same facts, at most MAX_CHARACTERS."""
    turn = int(facts.get("turn", 0))

    def of(kind: str, *, by: str = "last", most: int = 6) -> list[str]:
        pairs = facts.get(kind, {}).items()
        return [t for t, f in sorted(pairs, key=lambda p: (-p[1][by], -p[1]["count"], p[0]))][:most]

    work = [f"The user is {role}." for role in of("role", most=1)]
    work += [f"Took part in {_join(of('operation'))}."] if of("operation") else []
    ways = []
    if agents := of("agent", by="count", most=3):
        ways.append(f"Primarily uses the {_join(agents)} agent{'s' * (len(agents) > 1)}.")
    if topics := of("topic", by="count"):
        ways.append(f"Asks about {_join(topics)}.")
    ways += [f"{note[0].upper()}{note[1:]}." for note in of("note")]
    for wish in of("preference"):
        ways.append(
            f"{wish[0].upper()}{wish[1:]}."
            if _PREFERENCE.match(wish)
            else f"Prefers {wish[0].lower()}{wish[1:]}."
        )
    recent = [t for t in of("topic") if turn - facts["topic"][t]["last"] < RECENT]
    mind = [f"Recently concerned with {_join(recent)}."] if recent else []
    past = [f"Was {role} before." for role in of("formerly", most=3)]
    if often := [t for t in of("topic", by="count") if facts["topic"][t]["count"] > 1]:
        past.append(f"Returned several times to {_join(often)}.")
    older = [t for t in of("topic", most=KEPT) if t not in recent and t not in often][:6]
    past += [f"Earlier asked about {_join(older)}."] if older else []
    return compose([work, ways, mind, past])


def compose(sections: Sequence[Sequence[str]]) -> str:
    """The four sections, each of its sentences, at most MAX_CHARACTERS."""
    text = "\n\n".join(
        f"{title}\n{_bounded(lines or [nothing])}"
        for (title, nothing), lines in zip(EMPTY.items(), sections, strict=True)
    )
    return text[:MAX_CHARACTERS]


def merge(content: str, more: str) -> str:
    """A narrative with the sentences of another one that it lacks, the newer first."""
    return compose(
        [
            list(dict.fromkeys([*new, *old]))
            for new, old in zip(sections_of(more), sections_of(content), strict=True)
        ]
    )


def sections_of(content: str) -> list[list[str]]:
    """The sentences of the four sections that say something."""
    found: dict[str, list[str]] = {title: [] for title in EMPTY}
    for block in content.split("\n\n"):
        title, _, body = block.partition("\n")
        texts = [text for text in BETWEEN.split(body) if text.strip()]
        if title not in found:  # a text that somebody wrote by hand
            title, texts = next(iter(EMPTY)), [t for t in BETWEEN.split(block) if t.strip()]
        found[title] += [text for text in texts if text != EMPTY[title]]
    return list(found.values())


def _bounded(lines: Sequence[str]) -> str:
    kept: list[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(line) < MAX_CHARACTERS // 4 - 60:
            kept.append(line)
    return " ".join(kept)


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
