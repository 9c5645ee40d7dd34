"""Make the word lists of the privacy gate from dictionaries with licences that permit shipping.

    uv run --no-project --with wordfreq --with faker tools/memory_words.py SOURCES OUT SUMMARIES…

SOURCES holds the unpacked Debian packages `scowl` and `hunspell-fr-classical` under `x/`, and the
unpacked npm packages `@cspell/dict-{software-terms,k8s,docker,people-names}` under `n/`.
SUMMARIES are tables of packages (PyPI, npm), the name first and the summary last, tab-separated.
Frequencies only choose among the dictionaries' words; Faker's names and towns are only left out.
"""

import gzip
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path

from faker.config import AVAILABLE_LOCALES
from faker.factory import Factory
from faker.providers import date_time
from wordfreq import top_n_list

sources, out, *summaries = map(Path, sys.argv[1:])
WORD = re.compile(r"[a-zà-öø-ÿœæ]{2,}")


def fold(word: str) -> str:
    plain = unicodedata.normalize("NFD", word.casefold().replace("œ", "oe").replace("æ", "ae"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def scowl(kinds: tuple[str, ...], most: int) -> set[str]:
    found: set[str] = set()
    for path in (sources / "x/usr/share/dict/scowl").iterdir():
        name, size = path.name.rsplit(".", 1)
        if int(size) <= most and any(name.endswith(kind) for kind in kinds):
            found |= set(path.read_text("latin-1").split())
    return found


def french() -> set[str]:
    """The dictionary's words with their endings, as far as they are in use."""
    folder = sources / "x/usr/share/hunspell"
    rules: dict[str, list[tuple[str, str, re.Pattern[str]]]] = {}
    for line in (folder / "fr.aff").read_text("utf-8").splitlines():
        part = line.split()
        if len(part) >= 5 and part[0] == "SFX":
            strip = "" if part[2] == "0" else part[2]
            add = part[3].split("/")[0]
            rules.setdefault(part[1], []).append(
                (strip, "" if add == "0" else add, re.compile(f"(?:{part[4]})$"))
            )
    used = set(top_n_list("fr", 60_000))
    found: set[str] = set()
    for line in (folder / "fr.dic").read_text("utf-8").splitlines()[1:]:
        entry = line.split()[0]
        stem, _, flags = entry.partition("/")
        if not stem[:1].islower():
            continue
        forms = {stem}
        for flag in re.findall("..", flags):
            for strip, add, condition in rules.get(flag, ()):
                if condition.search(stem) and stem.endswith(strip):
                    forms.add(stem[: len(stem) - len(strip)] + add)
        found |= {form for form in forms if form in used}
    return found


def technical() -> set[str]:
    found: set[str] = set()
    for path in (sources / "n").rglob("dict/*.txt*"):
        if "people" in str(path) or "companies" in str(path):
            continue
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        for line in text.splitlines():
            line = line.split("#")[0].strip(" *~+!")
            found |= {word for word in re.findall(r"[^\W\d_]{2,}", line) if " " not in line}
    return found


# Abbreviations of units and places, which some packages have as well.
REFUSED = set(
    """rcr rbc cer ppcli csor jtf cmbg gbmc rcd rch rcha esr rcaf rcn norad csis dnd cfsme soas para
    cbg cjoc shape bde regt coy sqn bfc cfb ncsm hmcs nyc lax usa uae uk eu dc gta""".split()  # noqa: SIM905
)


def made_up_names() -> set[str]:
    """Names of people, towns and countries that Faker makes up from, in every Latin locale."""
    found: set[str] = set()
    for locale in AVAILABLE_LOCALES:
        for kind in ("person", "address"):
            try:
                provider = Factory._find_provider_class(f"faker.providers.{kind}", locale)[0]
            except (ImportError, AttributeError):
                continue
            for attribute in dir(provider):
                if re.search(
                    "(?:first|last|middle)_names?|cit(?:y|ies)(?!_[ps])|countries|states|provinces",
                    attribute,
                ):
                    values = getattr(provider, attribute)
                    found |= (
                        set(re.findall(r"[^\W\d_]{3,}", str(values)))
                        if isinstance(values, (tuple, list, dict))
                        else set()
                    )
    codes = {country.alpha_3_code for country in date_time.Provider.countries}
    return {fold(name) for name in found} | {fold(code) for code in codes}


def summaries_words() -> tuple[Counter[str], Counter[str], Counter[str]]:
    """In how many summaries a word stands in lower case, otherwise, and as an acronym."""
    lower, upper, loud = Counter[str](), Counter[str](), Counter[str]()
    for path in summaries:
        for line in path.read_text("utf-8").splitlines()[1:]:
            summary = line.rsplit("\t", 1)[-1][:300]
            # Not the first word: there a capital tells nothing.
            found = set(re.findall(r"(?<=[^\w.@/])[A-Za-z][a-z]{3,}(?![\w@/])", summary))
            lower.update(word for word in found if word.islower())
            upper.update(word.lower() for word in found if not word.islower())
            loud.update(word.lower() for word in set(re.findall(r"\b[A-Z]{3,4}\b", summary)))
    return lower, upper, loud


def used_packages(rank: int = 15_000, downloads: int = 300_000, least: int = 3) -> set[str]:
    """Words that some names of the packages which are used most have in common: products."""
    found = Counter[str]()
    for path in summaries:
        for line in path.read_text("utf-8").splitlines()[1:]:
            name, *columns = line.split("\t")
            ranked = columns[2] if len(columns) > 3 else ""
            loads = columns[1] if len(columns) == 3 else ""
            if (ranked.isdigit() and int(ranked) <= rank) or (
                loads.isdigit() and int(loads) >= downloads
            ):
                found.update(set(re.findall(r"[a-z]{4,}", name.rpartition("/")[2])))
    return {word for word, count in found.items() if count >= least}


lower, upper, loud = summaries_words()
packages = {
    word
    for word, count in lower.items()
    if (count >= 5 and count > 2 * upper[word]) or (count >= 20 and 4 * count >= upper[word])
} | {word for word, count in loud.items() if count >= 5}
people = set()
for path in (sources / "n").rglob("people-names.txt"):
    people = {line.strip() for line in path.read_text("utf-8").splitlines() if line[:1].isalpha()}
names = {fold(name) for name in people | scowl(("proper-names",), 80)}
FRENCH_NAMES = set(  # among the most frequent words, and in the dictionary as ordinary ones
    "jean pierre paul marie paris jacques michel louis claude charles".split()  # noqa: SIM905
)
everyday = {fold(w) for w in scowl(("words",), 20) if w.islower()}
everyday |= {fold(w) for w in top_n_list("fr", 500)} & {fold(w) for w in french()}
everyday |= {fold(w) for w, count in lower.items() if count >= 300 and count > 2 * upper[w]}
everyday -= FRENCH_NAMES | REFUSED
words = {fold(w) for w in scowl(("words",), 60) if WORD.fullmatch(w.lower()) and w.islower()}
words |= {fold(w) for w in french() if WORD.fullmatch(w)}
terms = {fold(w) for w in technical()}
proper = names | made_up_names() | REFUSED
rarer = {w for w in scowl(("words",), 70) if lower[w] >= 2 and lower[w] > upper[w]} - proper
lists = {
    "words": words - (names - everyday) | rarer,
    "terms": (terms - names) - words,
    "packages": ({fold(w) for w in packages | used_packages()} - proper) - words - terms,
    "ambiguous": words & names & everyday,
}
for name, content in lists.items():
    kept = sorted(w for w in content if w.isascii() and w.isalpha())
    (out / f"{name}.txt.gz").write_bytes(gzip.compress("\n".join(kept).encode(), 9, mtime=0))
    print(name, len(kept))
