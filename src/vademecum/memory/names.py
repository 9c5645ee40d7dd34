"""Names that an exchange gives away itself: in headers, salutations, signatures, after ranks."""

import re

from vademecum.memory.lexicon import RANKS, STARTERS
from vademecum.memory.normal import fold, normalise

_WORD = r"[^\W\d_][\w'-]*\.?"
_CAPITAL = r"[A-ZÀ-ÞŁ][\w'-]*\.?"
_HEADER = re.compile(r"(?im)^\s*>?\s*(?:from|to|cc|bcc|de|à|reply-to|sent by)\s*:\s*(.+)$")
_SALUTATION = re.compile(
    rf"(?im)^\s*>?\s*(?:hi|hello|dear|hey|good morning|good afternoon|bonjour|salut|cher|chère|"
    rf"bonsoir)\s+((?:{_WORD}\s*){{1,4}})[,!:\n]"
)
_SIGNATURE = re.compile(
    rf"(?im)^\s*>?\s*(?:regards|best regards|kind regards|thanks|cheers|sincerely|v/r|best|merci|"
    rf"cordialement|bien à vous|respectueusement|many thanks)\s*[,.!]?\s*\n+\s*>?\s*"
    rf"((?:{_WORD}[ \t]*){{1,4}})\s*$"
)
_INTRODUCED = re.compile(
    rf"(?i:my name is|name's|i am called|this is|je m'appelle|mon nom est|je me nomme|called|named|"
    rf"nommée?)\s+((?:{_CAPITAL}\s*){{1,4}})"
)
_RANKED = re.compile(
    rf"(?i:\b(?:{'|'.join(sorted(RANKS, key=len, reverse=True))})\b\.?)\s+"
    rf"((?:{_CAPITAL}\s*){{1,3}})"
)
_SIGNED = re.compile(rf"(?im)(?:\(?\bsign(?:ed|é)\b\)?:?|^\s*//)\s+((?:{_WORD}\s*){{1,3}})")
_ADDRESS = re.compile(r"([\w.+-]+)@[\w.-]+")


def learn(text: str) -> frozenset[str]:
    """Folded parts of the names that the exchange shows to be names."""
    text = normalise(text)
    found: list[str] = []
    for pattern in (_SALUTATION, _SIGNATURE, _INTRODUCED, _RANKED, _SIGNED):
        found += pattern.findall(text)
    for header in _HEADER.findall(text):
        found.append(re.sub(r"<[^>]*>|\S+@\S+", " ", header))
    found += _ADDRESS.findall(text)
    parts = {fold(part) for name in found for part in re.findall(r"[^\W\d_]+", name)}
    return frozenset(p for p in parts if len(p) > 2 and p not in RANKS and p not in STARTERS)
