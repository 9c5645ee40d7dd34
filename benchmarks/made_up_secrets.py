"""Made-up exchanges: secrets of every kind, plain and evasive, among facts that may be kept."""

import random
import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

LOOKALIKE = str.maketrans("aeopcxyi", "аеорсхуі")
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
CHIFFRES = ["zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August"]
MONTHS += ["September", "October", "November", "December"]
MOIS = ["janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août"]
MOIS += ["septembre", "octobre", "novembre", "décembre"]
KINDS = ["name", "number", "date", "unit", "place", "operation"]
COMMON_IN_DATES = {
    "the",
    "next",
    "last",
    "two",
    "ago",
    "prochain",
    "dernier",
    "may",
    "march",
    "mars",
}
COMMON_IN_PLACES = {"rue", "des", "the"}
COMMON_IN_DATES |= {"mid", "day", "weeks", "three", "trois", "semaines", "mois"}
COMMON_IN_DATES |= {"week", "semaine", "morning", "matin", "demain", "tomorrow", "eve"}

MIXED = {
    "unit": [
        "I am a corporal| in {s}.", "I work as a supply technician| with {s}.",
        "I'm a sergeant| serving in {s} and I like short answers.", "Je suis caporal| au {s}.",
        "I am a medic and work as an instructor| at {s}.",
        "Je travaille comme technicienne| chez {s}.",
    ],
    "place": [
        "I am a vehicle technician| at {s}.", "I work as a nursing officer| in {s}.",
        "I'm a finance clerk|, posted to {s} for a while.", "Je suis infirmière| à {s}.",
        "I am a warrant officer| from {s} and I need help with a memo.",
    ],
    "name": [
        "I am a captain| and my boss is {s}.", "I work as a logistics officer| for {s}.",
        "I'm an engineer| with {s} as my manager.", "Je suis sergente| et je relève de {s}.",
    ],
    "date": [
        "I am a pilot| since {s}.", "I work as a military police officer| from {s} on.",
        "Je suis capitaine| depuis {s}.",
    ],
    "number": ["I am a master corporal| ({s}).", "I work as an instructor| under {s}."],
    "operation": [
        "I am a signaller| on Op IMPACT at {s}.", "Je suis matelot| sur l'Op NANOOK à {s}.",
    ],
}  # fmt: skip
"""Sentences that say a role, and a secret after the bar."""
Secret = tuple[str, str, str]  # kind, evasion, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A message, its secrets, the facts that may be kept, and the roles in a secret's sentence."""

    text: str
    secrets: list[Secret]
    facts: list[str]
    roles: list[str]


class Phrasings:
    """Names, formats and sentence frames of one file under phrasings/."""

    def __init__(self, path: Path) -> None:
        self.data: dict[str, Any] = tomllib.loads(path.read_text())

    @cached_property
    def unit_words(self) -> set[str]:
        return {bare(word) for word in self.data["unit_words"]}

    def exchange(self, r: random.Random) -> Exchange:
        french = r.random() < 0.35
        frames = self.data["fr" if french else "en"]
        facts = r.sample(self.data["facts"], 2)
        secrets: list[Secret] = []
        lines: list[str] = []
        roles: list[str] = []
        for kind in r.sample(KINDS, r.randrange(1, 4)):
            value = self.secret(r, kind, french)
            way, shown = evade(r, value, kind)
            line = r.choice(frames[kind]).format(s=shown)
            if r.random() < 0.15:
                line = r.choice(self.data["injections"]).format(t=line)
            lines.append(line)
            secrets.append((kind, way, value))
        if r.random() < 0.3:
            kind = r.choice(list(MIXED))
            role, _, rest = r.choice(MIXED[kind]).partition("|")
            value = self.secret(r, kind, role.startswith("Je"))
            way, shown = evade(r, value, kind)
            lines.append(role + rest.format(s=shown))
            secrets.append((kind, f"{way} beside a role", value))
            roles.append(role)
        lines += facts
        r.shuffle(lines)
        text = ("\n" if r.random() < 0.5 else "\n\n").join(lines)
        if r.random() < 0.4:
            first, last = r.choice(self.data["first"]), r.choice(self.data["last"])
            frame = r.choice(self.data["headers"])
            shown = f"{first} {last}"
            if "{l}" not in frame:
                shown = first
            elif "{f}" not in frame:
                shown = last
            secrets.append(("name", "signature", shown))
            text = frame.format(f=first, l=last, fl=first.lower(), ll=last.lower(), t=text)
        return Exchange(text=text, secrets=secrets, facts=facts, roles=roles)

    def secret(self, r: random.Random, kind: str, french: bool) -> str:
        if kind == "name":
            last = r.choice(self.data["last"])
            return r.choice([f"{r.choice(self.data['first'])} {last}", last])
        if kind == "number":
            shape = r.choice(self.data["numbers"])
            shape = re.sub("#", lambda _: str(r.randrange(10)), shape)
            return re.sub("@", lambda _: r.choice("ABCKRZ"), shape)
        if kind == "date":
            return date(r, self.data["dates_fr" if french else "dates_en"], french)
        return str(r.choice(self.data["units" if kind == "unit" else "places"]))

    def leaked(self, value: str, kind: str, passed: str) -> bool:
        """The whole secret run together, or any telling part of it as a word."""
        whole = bare(value)
        if len(whole) > 4 and whole in bare(passed):
            return True
        if re.search(rf"(?<!\w){'[^a-z0-9]*'.join(whole)}(?!\w)", folded(passed)):
            return True
        words = {bare(word) for word in re.findall(r"[\w'’]+", passed)}
        parts = {bare(part) for part in re.split(r"[\s-]+", value)}
        common = {
            "date": COMMON_IN_DATES,
            "unit": self.unit_words,
            "place": COMMON_IN_PLACES,
            "operation": COMMON_IN_PLACES,
        }.get(kind, set())
        return any(part in words for part in parts - common if len(part) >= 3)


def date(r: random.Random, shapes: list[str], french: bool) -> str:
    day, year, m = r.randrange(1, 29), r.randrange(1990, 2027), r.randrange(12)
    month = (MOIS if french else MONTHS)[m]
    return r.choice(shapes).format(
        day=day,
        dd=f"{day:02}",
        mm=f"{m + 1:02}",
        month=month,
        mon=month[:3],
        MON=month[:3].upper(),
        year=year,
        yy=f"{year % 100:02}",
        hh=f"{r.randrange(24):02}",
    )


def evade(r: random.Random, text: str, kind: str) -> tuple[str, str]:
    """The name of an evasion, and the text so written."""
    ways = ["plain", "plain", "spaced", "lookalike", "lower", "upper"]
    ways += ["break", "hidden", "wide", "dotted", "spelled"]
    way = r.choice(ways)
    if way == "spelled" and kind == "number":
        words = r.choice([DIGITS, CHIFFRES])
        return way, " ".join(words[int(c)] if c.isdigit() else c for c in text if c.isalnum())
    changed = {
        "spaced": lambda: " ".join(text.replace(" ", "")),
        "lookalike": lambda: text.translate(LOOKALIKE),
        "lower": text.lower,
        "upper": text.upper,
        "break": lambda: text[: len(text) // 2] + "\n" + text[len(text) // 2 :],
        "hidden": lambda: "\u200b".join(text),
        "wide": lambda: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
        "dotted": lambda: ".".join(text.replace(" ", "")),
    }.get(way)
    return (way, changed()) if changed else ("plain", text)


def folded(text: str) -> str:
    """Lower case without accents, in compatible characters."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(c for c in text if not unicodedata.combining(c))


def bare(text: str) -> str:
    """Letters and digits only, folded."""
    return re.sub(r"[\W_]+", "", folded(text))
