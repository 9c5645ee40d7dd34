"""Which forms in a sentence speak against keeping it: numbers, places, units, addresses."""

import re

from vademecum.memory import lexicon
from vademecum.memory.normal import fold
from vademecum.memory.privacy_types import Violation
from vademecum.memory.privacy_words import HUMP, TOKEN, judge

MAX_SENTENCE = 400
"""Characters; longer sentences are dropped."""
_ADDRESS = re.compile(r"\S*(?:@|://|\bwww\.)\S*", re.IGNORECASE)
_GLUED = re.compile(r"\w*(?:\d[^\W\d]|[^\W\d_]\d)\w*")
_SHORT_NUMBER = re.compile(
    r"(?<![\w.,/:+#-])\d{1,2}(?:%| (?=(?P<noun>[a-z]{3,})))(?![\w/:-]*\d)",
)
_VERSION = re.compile(r"\b(?P<word>[A-Za-z]{2,}) v?\d{1,2}(?:\.\d{1,2}){0,2}(?![\w./:-]*\d)(?!\w)")
_AGE = re.compile(r"(?i)\b(?:aged?|age of|turned)\s+\d+|\b\d+\s+(?:years?[- ]old|ans)\b")
OPERATION = re.compile(r"\b(?:[Oo]p|OP|[Oo]peration|OPERATION|[Oo]p[ée]ration)\s+([^\W\d_]+)")
_WHERE = re.compile(
    r"(?i)\b(?:posted (?:to|at|in)|stationed|based (?:in|at|out of)|deployed (?:to|in|at)|"
    r"serv(?:e|es|ed|ing) with|moved (?:from|to)|sers (?:avec|au)|located (?:in|at)|"
    r"liv(?:e|es|ing) in|(?:mut|bas)[ée]e?s? (?:à|a|au|en)|"
    r"affect[ée]e?s? (?:à|a|au)|d[ée]ploy[ée]e?s? (?:à|a|au|en)|habite (?:à|a))\s+"
    r"(?!the (?:cluster|server|cloud|database)\b|production|kubernetes|op\b|operation)"
    r"(?!an? |une? )"
)
ROLE = re.compile(
    r"(?i)^(?:(?:hi|hello|bonjour|salut),? )?(?P<role>(?:i am|i'm) (?:currently )?an? |"
    r"i (?:work|serve) as (?:an? )?|je suis (?:une? )?|je travaille comme (?:une? )?)"
)
"""What opens a sentence that says what the user is."""
_ROLE_AT = re.compile(
    r"(?i)\b(?:(?P<place>at|in|from|near|à|aux?|chez)|with|for|under|avec|pour)\s+"
    r"(?!(?:an?|une?|the|my|l[ae])\b)(?P<what>\w+)"
)
_MOVED = re.compile(
    r"(?i)\b(?:(?:settle[ds]?|fl[ye]w?|drove|drive|travell?(?:s|ed)?|arrived?|relocated?|"
    r"born|raised|grew up|resides?|housing|quarters|snow|weather|depot|convoy|posting|family|"
    r"recruits|sandbags|garrison|barracks|wife|husband|kids|school)\b"
    r"[^.]{0,24}? (?:in|to|from|at|near|left)\b|"
    r"(?:send|ship|mail) (?:it|them|this) to|posting,|has no housing|"
    r"(?:vi[st]|vivons|vivre|neige|d[ée]p[ôo]t|men[ée]s?|famille|affectation|camp|mission|"
    r"r[ée]side|n[ée]e?|arriv[ée]e?s?|parti[es]?)\b[^.]{0,16}? (?:à|a|au|aux|de|en|pr[èe]s)\b|"
    r"affectation,)(?!\s*the (?:node|cluster|server|api|pod)s?\b)"
)
"""Verbs and things of life with a preposition: what follows is a place, listed or not."""
_LANDFORM = re.compile(
    r"(?i)\b(?:fort|camp|cape|lac|baie|saint|sainte|mont|lake|rivi[èe]re)[ -][^\W\d_]+|"
    r"\b[^\W\d_]+[ -](?:bay|inlet|creek|falls(?! (?:in|back|under|out|within|short|below))|"
    r"harbou?r|lake|river|island|rivi[èe]res|beach|valley|"
    r"heights|jaw|road|avenue|village)\b"
)
_DAY = re.compile(
    r"(?i)\b(?:twenty|thirty)[ -](?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)\b|"
    r"\ble (?:premier|vingt|trente|dix|onze|douze|treize|quatorze|quinze|seize)\b|"
    r"\b(?:vingt|trente)[ -](?:et[ -])?(?:une?|deux|trois|quatre|cinq|six|sept|huit|neuf)\b"
)
_POSTED = re.compile(
    r"(?i)\b(?:my|our|his|her|their|home) unit (?:is|was)\b|"
    r"\b(?:mon|notre|son) unit[ée] (?:est|[ée]tait)\b|"
    r"\b(?:attached|belong|belongs|seconded) to\b(?= [^.]*\b(?:for a while|unit)\b)|"
    r"\b(?:orderly room|messes?) (?:of|at)\b|\b\d+ [^\W\d_]+ unit\b|\brel[èe]ve (?:de|du|des)\b|"
    r"\b(?:black watch|princess pats|van doos|loyal edd\w+|highlanders|fusiliers|hussars|dragoons|"
    r"lancers|grenadiers|voltigeurs|strathcona\w*|airborne|light infantry|the rifles|the guards|"
    r"rangers|task force|foot guards|life guards|horse guards|signal regiment)\b"
)
"""Words that introduce a unit, and units whose names are ordinary words."""
_DETAIL = re.compile(
    r"(?i)\b(?:grid|convoy|patrol\w*|checkpoint|ambush\w*|casualt\w+|route|commander|commanded|"
    r"squad|platoon|section|headquarters|target\w*|ammunition|radio frequency|call ?sign|"
    r"rotation|roto|mission|objective|gunner|driver|medic|convoi|patrouille|commandant)\b"
)
_INJECTION = re.compile(
    r"(?i)ignore (?:all|any|the|your|previous)|system prompt|disregard|privacy rules|"
    r"(?:store|save|remember|memorize|memorise) (?:this|that|the following|verbatim|exactly)"
    r"(?! (?:in an?|on|to|as an?|object|value|file|data)\b)|"
    r"ignorez|retiens|retenez"
)
_UNIT = re.compile(
    r"(?i)\b(?:\d+(?:st|nd|rd|th|e|er|re|ieme)?|[b-hj-z]|"
    + "|".join(sorted(lexicon.ORDINALS))
    + r")\s+(?:[^\W\d_]+\s+){0,3}(?:"
    + "|".join(sorted(lexicon.UNITS))
    + r")\b"
)
_TITLED = re.compile(
    r"(?<![A-Z]\s)(?:(?<=[a-z,] )|(?=The [A-Z][a-z]+ [A-Z][a-z]+\b))"
    r"((?:[A-Z][a-z]+ )+[A-Z][a-z]+)\b"
)
_STREET = re.compile(
    r"(?i)\b\d+[a-z]?,? (?:rue|av|avenue|boul|boulevard|chemin|route|all[ée]e|impasse|cours|quai|"
    r"rang)\b|\brue (?:des?|du|d'|la|le|l')?\s*[^\W\d_]+|\b\d+ (?:[^\W\d_]+ ){1,3}"
    r"(?:street|st|road|rd|avenue|ave|terrace|lane|drive|crescent|close|court|place|boulevard)\b|"
    r"\b(?:hangar|building|room|barrack|b[âa]timent|chambre|bureau) (?:no )?[a-z]?-?\d+"
)
_MONTH = "|".join(sorted(lexicon.MONTHS | lexicon.MONTHS_TOO))
_RELATIVE = re.compile(
    r"(?i)\b(?:(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|few|couple of) "
    r"(?:day|night|week|month|year)s? ago|"
    r"il y a (?:[^\W_]+ ){1,2}?(?:jours?|semaines?|mois|ans?|ann[ée]es?)|"
    r"(?:the )?day (?:after tomorrow|before yesterday)|apr[èe]s-\s*demain|avant-\s*hier|"
    r"(?:the )?(?:remembrance|canada|victoria|labou?r|boxing|independence|veterans|memorial|anzac|"
    r"armistice|bastille|new year'?s|family|valentine'?s|mother'?s|father'?s|groundhog|"
    r"st patrick'?s) (?:day|eve)|"
    r"(?:le )?jour (?:du souvenir|de l'an|de la bastille)|(?:la )?(?:saint|st)-jean|"
    rf"(?:la )?(?:mid|mi|early|late|d[ée]but|fin)[ -]+(?:{_MONTH}))\b"
)
"""Dates by what they are near to: days counted from today, parts of months, and feasts."""


def violations(
    sentence: str, *, names: frozenset[str] = frozenset(), allowed: frozenset[str] = frozenset()
) -> list[Violation]:
    """What speaks against a normalised sentence, in order of place."""
    whole = (0, len(sentence))
    found = [
        Violation(kind="address", start=m.start(), end=m.end()) for m in _ADDRESS.finditer(sentence)
    ]
    if len(sentence) > MAX_SENTENCE:
        found.append(Violation(kind="length", start=0, end=len(sentence)))
    if _INJECTION.search(sentence):
        found.append(Violation(kind="injection", start=0, end=len(sentence)))
    if match := _WHERE.search(sentence):
        found.append(Violation(kind="place", start=match.start(), end=len(sentence)))
    if role := ROLE.match(sentence):
        for match in _ROLE_AT.finditer(sentence, role.end()):
            word = fold(match["what"])
            if word in lexicon.HARMLESS | allowed:
                continue
            if match["place"] or word in lexicon.ambiguous() - lexicon.STARTERS:
                kind = "place" if match["place"] else "name"
                found.append(Violation(kind=kind, start=match.start("what"), end=match.end()))
    for place in (_MOVED, _LANDFORM):
        if match := place.search(sentence):
            found.append(Violation(kind="place", start=match.start(), end=len(sentence)))
    if match := _STREET.search(sentence):
        found.append(Violation(kind="place", start=match.start(), end=len(sentence)))
    found += [
        Violation(kind="date", start=m.start(), end=m.end()) for m in _RELATIVE.finditer(sentence)
    ]
    if match := _DAY.search(sentence):
        found.append(Violation(kind="number", start=match.start(), end=len(sentence)))
    if _POSTED.search(sentence):
        found.append(Violation(kind="unit", start=0, end=len(sentence)))
    if match := _AGE.search(sentence):
        found.append(Violation(kind="number", start=match.start(), end=match.end()))
    operations = {
        match.start(1)
        for match in OPERATION.finditer(sentence)
        if fold(match[1]) in lexicon.OPERATIONS | allowed
    }
    if operations and (_DETAIL.search(sentence) or re.search(r"\d", sentence)):
        found.append(Violation(kind="operation", start=0, end=len(sentence)))
    apart = HUMP.sub(" ", sentence)
    if match := _UNIT.search(fold(apart)):
        found.append(Violation(kind="unit", start=0, end=len(sentence)))
    if match := _TITLED.search(sentence):
        before = re.findall(r"\b[A-Z]\w*(?= )|\b\w+ (?=$)", sentence[: match.start(1)])[-2:]
        titled = [fold(word) for word in [*before, *match[1].split()] if word[0].isupper()]
        if not any(word in lexicon.technical() | allowed for word in titled):
            found.append(Violation(kind="name", start=match.start(1), end=match.end(1)))
    found += _numbers(sentence, allowed)
    found += judge(sentence, operations, names, allowed | _explained(sentence))
    squashed = re.sub(r"[\W_]+", "", fold(sentence))
    if any(len(name) > 4 and name in squashed and name not in lexicon.words() for name in names):
        found.append(Violation(kind="name", start=whole[0], end=whole[1]))
    return sorted(found, key=lambda violation: (violation.start, violation.end))


def _explained(sentence: str) -> frozenset[str]:
    """Acronyms that the sentence itself spells out before them, and so tell nothing more."""
    found = set()
    for match in re.finditer(r"\(([A-Z]{2,6})s?\)", sentence):
        before = re.findall(r"[^\W\d_]+", sentence[: match.start()])[-len(match[1]) :]
        if "".join(word[0] for word in before).upper() == match[1]:
            found |= {fold(match[1]), fold(match[1] + "s")}
    return frozenset(found)


def _numbers(sentence: str, allowed: frozenset[str]) -> list[Violation]:
    harmless: set[int] = set()
    for match in _SHORT_NUMBER.finditer(sentence):
        noun = fold(match["noun"] or "")
        if noun not in lexicon.MONTHS | lexicon.UNITS and noun not in lexicon.MONTHS_TOO:
            harmless |= set(range(*match.span()))
    for match in _VERSION.finditer(sentence):
        if fold(match["word"]) in lexicon.HARMLESS - lexicon.RANKS - {"op"} | {"version"}:
            harmless |= set(range(*match.span()))
    for match in _GLUED.finditer(sentence):
        if fold(match.group()) in lexicon.HARMLESS | allowed:
            harmless |= set(range(*match.span()))
    found = [
        Violation(kind="number", start=match.start(), end=match.end())
        for match in re.finditer(r"\d[\d\W]*\d|\d", sentence)
        if not all(place in harmless for place in range(*match.span()) if sentence[place].isdigit())
    ]
    if sum(character.isdigit() for character in sentence) > 4:
        found.append(Violation(kind="number", start=0, end=len(sentence)))
    if match_ := spelled(sentence):
        found.append(Violation(kind="number", start=match_[0], end=match_[1]))
    return found


def has_number_word(sentence: str) -> bool:
    return any(fold(token) in lexicon.NUMBERS for token in TOKEN.findall(sentence))


def spelled(sentence: str) -> tuple[int, int] | None:
    """Where three or more number words or letters of the spelling alphabet follow each other."""
    run: list[re.Match[str]] = []
    for match in TOKEN.finditer(sentence):
        word = fold(match.group())
        if word in lexicon.NUMBERS or word in lexicon.PHONETIC:
            run.append(match)
            if len(run) >= 3:
                return run[0].start(), match.end()
        elif word not in {"-", "and", "et", ",", "."}:
            run = []
    return None
