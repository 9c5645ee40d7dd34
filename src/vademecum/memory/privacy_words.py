"""Which words of a sentence speak against keeping it: the names, dates and units among them."""

import re

from vademecum.memory import lexicon
from vademecum.memory.normal import fold
from vademecum.memory.privacy_types import Violation

TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|\d+|\S")
HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
BEFORE_DATE = frozenset(
    """on in by until till since from before after of le en du depuis""".split()  # noqa: SIM905
)
TO_PERSON = frozenset(
    """with told asked met by named called name is am from for and avec chez pour rencontre
    supervisor ask tell copy contact colleague friend boss partner
    wife husband son daughter""".split()  # noqa: SIM905
)
AFTER_PERSON = frozenset(
    """about on and who at before after today yesterday said is was has""".split()  # noqa: SIM905
)
_AFTER_NAME = frozenset(
    """said says asked asks is was has had wrote told began thinks wants called works likes prefers
    gave flew and dit a est""".split()  # noqa: SIM905
)
_QUIET_FORMS = re.compile(r"(?i)'(?:s|re|ve|ll|d|m|t)$|^(?:l|d|j|n|s|c|m|t|qu|jusqu|lorsqu)'")
_LATE_ORDINALS = lexicon.ORDINALS - {"first", "second", "third", "premier", "premiere", "deuxieme"}
_PREFIX = re.compile(r"^(?:re|un|sub|multi|auto|non|pre|de|dis|mis|micro|hyper|meta|inter|co|ex)")
_ENDING = re.compile(r"(?:e?rs?|ors?|able|ability|ed|ing|s|ness|less|ly|ation|ations)$")
_NEGATED = re.compile(r"(?i)n't$")


_RELATED = (
    r"(?:superviseure?|supervisor|boss|chef|coll[èe]gue|colleague|conjointe?|partner|mari|femme|"
    r"wife|husband|spouse|ami|amie|friend|buddy|son|daughter|fils|fille|p[èe]re|m[èe]re|mother|"
    r"father|brother|sister|fr[èe]re|s[oœ]eur|commandante?|manager)"
)
_INTRODUCED = re.compile(
    rf"(?i)\b(?:{_RELATED}(?: est| is| was| s'appelle|,)|"
    rf"(?:my|our|his|her|their|mon|ma|notre|son|sa|leur) {_RELATED}|"
    r"according to|selon|d'apr[èe]s|m'appelle|name(?:'s| is)|tell|told|ask|asked|"
    r"(?:demande[rz]?|dis|dites|dire|parle[rz]?|[ée]cri(?:s|re|vez)|r[ée]pond(?:s|re|ez)|"
    r"envoie|envoyez|envoyer) [àa]|\w+ ?\((?:n|rn|r|ret|retd|ret'd)\))\s+$"
)
"""What stands before a name of an ordinary word, in whatever case."""
_MYSELF = re.compile(r"(?i)\b(?:i'm|i am|je suis|this is|c'est)\s+$")
_SPEAKS = re.compile(r"\s*(?:,|(?:from|writing|speaking|calling|here|again|qui [ée]cri[st])\b)")
_CALLED = re.compile(r"(?i)\b(?:called|named|nomm[ée]e?|appel[ée]e?|met|rencontr[ée]e?)\s+$")
_RANKED = re.compile(rf"(?i)\b(?:{'|'.join(sorted(lexicon.RANKS))})\.?\s+$")
_OPENS = re.compile(r"(?:^|[,;:.!?>(])\s*$")
_DID = re.compile(r"(?i)(?:'s)?\s+(?:and|et|is|was|has|had|a|est|[a-z]+(?:[^s]s|ed|t))\b")
"""What a name that opens a sentence does; after `will` as a verb stands its bare form."""
_ENDS = re.compile(r"\s*(?:$|[.,;:!?)])")
_MAY = re.compile(
    r"(?i)(?:(?:^|[,;:.!?]\s+)(?:could|can|would|will|should|shall|may|might|did|does)|"
    r"\b(?:est-ce que|let|have|ask that|laisse[rz]?))\s+$"
)
_DOES = re.compile(
    r"(?i)\s+(?:(?:please|also|still|maybe) )?(?:review|check|look|sign|approve|call|send|ask|help|"
    r"join|read|confirm|handle|see|take|write|draft|edit|correct|proofread|answer|reply|come|bring|"
    r"give|tell|explain|attend|cover|meet|validate|verify|forward|phone|email|talk|speak|know|"
    r"think|want|peut|pourrait|veut|voudrait|doit|va)\b"
)
_THAT = re.compile(
    r"(?i)\b(?:if|that|because|when|since|whether|what|but|as|si|que|quand|parce que|car)\s+$"
)
_SAID = re.compile(
    r"(?i)\s+(?:said|says|asked|asks|wrote|writes|told|tells|wants|wanted|thinks|thought|likes|"
    r"prefers|dit|disait|demande|veut|pense|pr[ée]f[èe]re)\b"
)
_PERSONS = ((_MYSELF, _SPEAKS), (_CALLED, _ENDS), (_MAY, _DOES), (_THAT, _SAID))
"""Between what and what a bare word is a person, whatever else it may mean."""


def _introduced(before: str, text: str, rest: str) -> bool:
    word = fold(text)
    surname = re.match(r"\s+([^\W\d_]+)", rest)
    whole = word in lexicon.ambiguous() and surname and _may_be_of_a_name(fold(surname[1]))
    if whole and (
        _RANKED.search(before)
        or (_OPENS.search(before) and _DID.match(rest, surname.end() if surname else 0))
    ):
        return True
    if not _may_be_of_a_name(word) and not whole:
        return False
    while (more := re.match(r"\s+([^\W\d_]+)", rest)) and _may_be_of_a_name(fold(more[1])):
        if _SPEAKS.match(rest) or _DOES.match(rest) or _SAID.match(rest):
            break
        rest = rest[more.end() :]
    return bool(
        _INTRODUCED.search(before)
        or any(left.search(before) and right.match(rest) for left, right in _PERSONS)
    )


def _may_be_of_a_name(word: str) -> bool:
    return word in lexicon.ambiguous() and word not in lexicon.STARTERS and word not in {"me", "i"}


_IN_FRENCH = frozenset({"à", "au", "aux"})
_DOES_AS = re.compile(
    r"\b(?:[Aa]m|[Ii]'m|as|[Ii]s|was) an? (?:(?!of\b|friend|colleague|boss)([a-z]+) )?([a-z]+)\b"
)
"""What stands here in lower case is what somebody does."""
_ARTICLES = frozenset(
    {"a", "an", "the", "this", "that", "each", "every", "one", "my", "our", "your"}
)
_KIN = frozenset(
    """wife husband spouse son daughter supervisor boss buddy friend colleague partner conjointe
    conjoint signed""".split()  # noqa: SIM905
)


def judge(
    sentence: str, operations: set[int], names: frozenset[str], allowed: frozenset[str]
) -> list[Violation]:
    tokens = list(TOKEN.finditer(sentence))
    letters = [t.group() for t in tokens if t.group()[0].isalpha() and len(t.group()) > 1]
    shouted = len(letters) > 3 and all(word.isupper() for word in letters)
    titled = len(letters) > 3 and all(word[0].isupper() for word in letters)
    trades = {
        match.start(group)
        for match in _DOES_AS.finditer(sentence)
        for group, beside in ((1, 2), (2, 1))
        if match[group] in lexicon.TRADES - names and match[beside] not in lexicon.ambiguous()
    }
    found = []
    first = True
    for number, token in enumerate(tokens):
        text = token.group()
        if not text[0].isalpha():
            if ord(text[0]) > 0x2FF and text[0].isalnum():
                found.append(Violation(kind="name", start=token.start(), end=token.end()))
            continue
        before = fold(_QUIET_FORMS.sub("", tokens[number - 1].group())) if number else ""
        first = first or before == ":"
        if before == "a" and tokens[number - 1].group() in "àÀ":
            before = "à"  # the French word, which comes before places
        after = fold(tokens[number + 1].group()) if number + 1 < len(tokens) else ""
        kind = _kind(
            text,
            before=before,
            after=after,
            first=first,
            capital=text[0].isupper() and not shouted and not titled,
            loud=shouted or titled,
            names=names,
            allowed=allowed,
        )
        if token.start() in operations | trades:
            kind = None
        first = False
        if kind is None and _introduced(sentence[: token.start()], text, sentence[token.end() :]):
            kind = "name"
        if kind is None and fold(text) in lexicon.MONTHS_TOO and _torn_number(tokens[:number]):
            kind = "date"
        if kind:
            found.append(Violation(kind=kind, start=token.start(), end=token.end()))
    return found


def _torn_number(before: list[re.Match[str]]) -> bool:
    """Whether what stands before is a number in words that a break tore: `vingt-tr ois`."""
    words = [fold(token.group()) for token in before[-4:]]
    if "-" not in words[1:]:
        return False
    dash = words.index("-", 1)
    return words[dash - 1] in lexicon.NUMBERS and "".join(words[dash + 1 :]) in (
        lexicon.NUMBERS | lexicon.ORDINALS
    )


def _kind(
    text: str,
    *,
    before: str,
    after: str,
    first: bool,
    capital: bool,
    loud: bool,
    names: frozenset[str],
    allowed: frozenset[str],
) -> str | None:
    """What is wrong with a word where it stands, or None."""
    bare = _QUIET_FORMS.sub("", _NEGATED.sub("", text))
    word = fold(bare)
    if word in allowed or (word == "aime" and fold(text) in {"j'aime", "n'aime"}):
        return None
    if word in names and not (word in lexicon.STARTERS and not capital):
        return "name"
    if (
        word in _LATE_ORDINALS
        or word in lexicon.DAYS
        or word in lexicon.MONTHS - lexicon.MONTHS_TOO
    ):
        return "date"
    if word in lexicon.MONTHS_TOO and (
        before in BEFORE_DATE
        or before.isdigit()
        or after.isdigit()
        or after in lexicon.ORDINALS | {"the", "le"}
        or before in lexicon.ORDINALS | lexicon.NUMBERS
        or (capital and not first)
    ):
        return "date"
    if word in lexicon.UNITS and (
        before in lexicon.ORDINALS | lexicon.PHONETIC
        or before.isdigit()
        or after.isdigit()
        or after in lexicon.PHONETIC
        or (len(before) == 1 and before.isalpha() and before not in {"a", "à"})
    ):
        return "unit"
    if word not in lexicon.words() and bare[:-1].isupper() and bare.endswith("s"):
        word = word[:-1]
    if len(word) <= 1 or (
        text.lower().endswith("n't") and word in {"wo", "ca", "is", "are", "did"}
    ):
        initial = capital and after == "." and before != "+"  # as in Ctrl+C.
        return "name" if initial and word not in {"i", "a"} else None
    humps = HUMP.split(bare)
    if len(humps) > 1 and word not in lexicon.words():
        parts = [fold(part) for part in humps]
        ambiguous = lexicon.ambiguous() - lexicon.technical() - lexicon.STARTERS
        if all((p in lexicon.words() and p not in ambiguous) or len(p) == 1 for p in parts):
            return None
        return "name"
    if word not in lexicon.words():
        return None if (first or not capital) and _derived(word) else "name"
    if word in lexicon.HARMLESS:
        return None
    if capital and not first and before in _IN_FRENCH and word not in lexicon.technical():
        return "place"
    if word in lexicon.ambiguous() and word not in {"me", "i"}:
        if text.endswith("'s") and before not in _ARTICLES:
            return "name"
        if before in _KIN and word not in lexicon.STARTERS:
            return "name"
        if before in lexicon.RANKS and word not in lexicon.STARTERS:
            return "name"
        if (capital and not first) and word not in lexicon.CAPITAL:
            return "name"
        if first and ((capital and word in lexicon.PERSONAL) or _acts(word, after)):
            return "name"
        if word in lexicon.PERSONAL and (after in lexicon.PERSONAL or _surname(word, after)):
            return "name"
        if loud and word not in lexicon.STARTERS | lexicon.CAPITAL:
            return "name"
        person = after in AFTER_PERSON or not after or not (after[0].isalnum() or after == "-")
        product = capital and word in lexicon.CAPITAL
        if before in TO_PERSON and person and not product and word not in lexicon.STARTERS:
            return "name"
    elif capital and before in lexicon.RANKS and not first:
        return "name"
    return None


def _surname(word: str, after: str) -> bool:
    """Whether the word after a first name may be the rest of the name."""
    product = {word, after} & lexicon.CAPITAL
    return after in lexicon.ambiguous() and after not in lexicon.STARTERS and not product


def _derived(word: str) -> bool:
    """Whether a word is an ordinary one with a prefix or an ending that make no names of it."""
    rest = _PREFIX.sub("", word)
    if rest != word and len(rest) >= 5 and _ordinary(rest):
        return True
    stem = _ENDING.sub("", word)
    return stem != word and len(stem) >= 6 and (_ordinary(stem) or _ordinary(f"{stem}e"))


def _ordinary(word: str) -> bool:
    return word in lexicon.words() and word not in lexicon.ambiguous()


def _acts(word: str, after: str) -> bool:
    """Whether what follows a first word makes it a person: a verb of the third person, a comma."""
    if word in lexicon.STARTERS | lexicon.CAPITAL or (len(word) > 6 and word.endswith("ing")):
        return False
    return after in _AFTER_NAME or after in {",", "'", "&"} or after.endswith(("s", "ed"))
