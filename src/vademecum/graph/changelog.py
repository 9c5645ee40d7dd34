"""What a changelog says of a package's APIs: that one is deprecated or was removed, and when.

text --sections with their version--> sentences --names in code--> notices --known names--> APIs

Precision comes before recall: a name counts where it is written as code, is what the sentence is
about, and means one known API of the package. A parameter, an option or a setting is none.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vademecum.graph import deprecation
from vademecum.graph.versions import Ecosystem, order

_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_UNDERLINE = re.compile(r"^(=+|-+)\s*$")
_VERSION = re.compile(
    r"(?<![\w.])v?(\d+(?:\.\d+)+(?:\.?(?:a|b|rc|dev|post|alpha|beta)\.?\d*)?)(?![\w])"
)
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")

_NAME = r"`{1,2}[~.@]?[A-Za-z_][\w.]*(?:\(\))?`{1,2}"
_ROLE = re.compile(
    r"(?:\{(?:py:)?(?:func|meth|class|attr|exc|mod|data|obj|const)\}|"
    r":(?:py:)?(?:func|meth|class|attr|exc|mod|data|obj|const):)(?=`)"
)
"""Of Sphinx and MyST, before the name of an API; other roles are no APIs."""
_THING = (
    r"(?:function|method|class|classe|decorator|property|propertie|attribute|module|exception|"
    r"helper|object|alias|aliase|constant|type|enum|validator|field|API|flag)s?"
)
_ONE = rf"{_NAME}(?:\s+{_THING})?"
_NAMES = rf"{_ONE}(?:(?:,\s+and|,\s+or|,|\s+and|\s+or)\s+(?:the\s+)?{_ONE})*"
_NOW = r"(?:now|also|all|both|hereby|officially|fully|finally|completely|formally|soft-)"
_SAYS = re.compile(
    rf"(?P<names>{_NAMES}),?\s+(?:is|are|was|were|(?:has|have|had)(?: previously)? been)\s+"
    rf"(?:{_NOW}\s*)*(?P<what>deprecated|removed|dropped|deleted)\b"
    rf"|(?P<coming>{_NAMES}),?\s+will\s+be\s+(?P<will>removed|dropped)\s+in\b",
    re.IGNORECASE,
)
_DID = re.compile(
    r"^(?P<what>deprecate[sd]?|remove[sd]?|drop(?:s|ped)?|delete[sd]?)\s+"
    r"(?:(?:the|old|obsolete|unused|legacy|previously|now|long|already|deprecated|public|"
    r"undocumented|function|class|method|module|alias|property|decorator|exception|attribute)s?\s+)*"
    rf"(?P<names>{_NAMES})(?=\s*$|\s*[.;:(\[]|,?\s+(?:in favou?r|use|instead|as|since|because|"
    r"which|it|they|replaced|and use)\b)",
    re.IGNORECASE,
)
_LISTED = re.compile(
    rf"^(?P<names>{_NAMES})(?=\s*$|\s*[.;:(\[—–]|\s+-|,?\s+(?:in favou?r|use|instead)\b)"
)
_CLAUSE = re.compile(
    r"(?:^|[.;:,]|\band|\bthat|\bbut)\s*(?:(?:the|both|old|deprecated|corresponding|legacy|previous|"
    rf"undocumented|public|{_THING})\s+)*$",
    re.IGNORECASE,
)
"""What may stand before the names that a sentence is about."""
_AGAIN = re.compile(
    r"un-?deprecat|no longer deprecated|not deprecated (?:any|now)|\bre-?add|\brestor|\breinstat|"
    r"\brevert|\bbring back|\badded back|\bbrought back",
    re.IGNORECASE,
)
_SAME = re.compile(
    r"^(?:It|They|This|These)\s+(?:is|are|was|were|has|have)\s+(?:been\s+)?(?:now\s+)?(?:been\s+)?(?:fully\s+)?removed",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(r"^(?:Use|Please use|Import|Instead|Call|Switch|Prefer|It|They)\b")
_MEMBER = re.compile(r"\b(?:method|propert(?:y|ies)|field)s?\b", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMBERS = re.compile(r"\s+(?:#?\d{2,6},?\s*)+$")
"""Of issues, at the end of an item."""
_SENTENCES = re.compile(r"(?<=[.!])\s+(?=[A-Z`*])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One name that a changelog calls deprecated or removed, in its words."""

    name: str
    """As it is written: `json.JSONEncoder`."""
    member: bool
    """Whether it is said to be of a class."""
    since: str | None
    until: str | None
    """The first version without it."""
    replacement: str | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changelog:
    """A changelog that was fetched: which document, of which package, and what it says."""

    url: str
    title: str
    digest: str
    text: str


@dataclass(frozen=True, slots=True)
class _Section:
    version: str
    about: str
    """`deprecated` or `removed` where its heading says so."""


def notices(text: str, ecosystem: Ecosystem = "pypi") -> list[Notice]:
    """One notice a name, in the order of the text; what was taken back later is left out."""
    found: dict[str, Notice] = {}
    again: dict[str, str] = {}
    for section, item in _items(text):
        if not section.version:
            continue
        if _AGAIN.search(item):
            for name in _plain(item):
                key = order(section.version, ecosystem) or ""
                again[name] = max(again.get(name, ""), key)
            continue
        for notice in _of_item(item, section):
            known = found.get(notice.name)
            found[notice.name] = notice if known is None else _joined(known, notice)
    return [
        one
        for one in found.values()
        if (order(one.until or one.since or "", ecosystem) or "") > again.get(one.name, "")
    ]


def _items(text: str) -> Iterator[tuple[_Section, str]]:
    """Paragraphs and items of lists, each on one line, with the section they stand in."""
    version, about, lines = "", "", list[str]()

    def whole() -> Iterator[tuple[_Section, str]]:
        item = _ROLE.sub("", " ".join(" ".join(lines).split()))
        lines.clear()
        if item:
            yield _Section(version, about), item

    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if fenced:
            continue
        heading = _HEADING.match(line)
        title = heading[2] if heading else None
        if title is None and _UNDERLINE.match(line) and len(lines) == 1:
            title = lines.pop()
        if title is None and re.fullmatch(r"\s*\*\*[^*]+\*\*:?\s*", line):
            title = line.strip("* :\t")
        if title is not None:
            yield from whole()
            if named := _VERSION.search(title):
                version, about = named[1], ""
            elif heading and re.search(r"unreleased|next|upcoming", title, re.IGNORECASE):
                version, about = "", ""
            else:
                about = _about(title)
            continue
        if not line.strip() or _ITEM.match(line):
            yield from whole()
        if line.strip():
            lines.append(_ITEM.sub("", line).strip())
    yield from whole()


def _about(title: str) -> str:
    if re.fullmatch(r"\W*(?:new\s+)?deprecat(?:ed|ions?)\b.{0,20}", title, re.IGNORECASE):
        return "deprecated"
    if re.fullmatch(r"\W*(?:removed|removals?)\b.{0,20}", title, re.IGNORECASE):
        return "removed"
    return ""


def _of_item(item: str, section: _Section) -> Iterator[Notice]:
    sentences = _SENTENCES.split(_NUMBERS.sub("", item))
    for number, sentence in enumerate(sentences):
        following = sentences[number + 1] if number + 1 < len(sentences) else ""
        said = sentence
        if _FOLLOWS.match(following):
            said = f"{sentence} {following}"
        gone = bool(_SAME.match(following))
        for names, what in _said(sentence, section.about if number == 0 else ""):
            removed = gone or not what.lower().startswith("deprecat")
            since = deprecation.since_in(sentence)
            until = deprecation.until_in(sentence)
            until = None if until and _YEAR.fullmatch(until) else until
            coming = what == "will be"
            for name in _plain(names):
                yield Notice(
                    name=name,
                    member=bool(_MEMBER.search(names)),
                    since=since if removed else (since or section.version),
                    until=(until or (None if coming else section.version)) if removed else until,
                    replacement=deprecation.replacement_in(said),
                    sentence=deprecation.sentence(said),
                )


def _said(sentence: str, about: str) -> Iterator[tuple[str, str]]:
    """The names that a sentence is about, with what it says of them."""
    if did := _DID.search(sentence):
        yield did["names"], did["what"]
        return
    for match in _SAYS.finditer(sentence):
        names = match["names"] or match["coming"]
        if _CLAUSE.search(sentence[: match.start()]):
            yield names, match["what"] or "will be"
    if about and (listed := _LISTED.match(sentence)):
        yield listed["names"], about


def _plain(text: str) -> list[str]:
    """Names in code, without what marks them."""
    found = re.findall(_NAME, text)
    return [name.strip("`").lstrip("~.@").removesuffix("()") for name in found]


def _joined(one: Notice, other: Notice) -> Notice:
    """What two places say of a name: the older word, the earlier dates."""
    first = one if one.replacement or not other.replacement else other
    return replace(
        first,
        since=one.since or other.since,
        until=one.until or other.until,
        replacement=one.replacement or other.replacement,
    )


@dataclass(slots=True)
class KnownNames:
    """The public names of a package's APIs, to find what a changelog means."""

    members: Mapping[str, bool]
    """Each name, and whether it is of a class."""
    _ends: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.members:
            self._ends.setdefault(name.rpartition(".")[2], []).append(name)

    def find(self, notice: Notice) -> str | None:
        """The one name that is meant; None where there is none, or more than one could be."""
        written = notice.name
        if written in self.members:
            return written if "." in written else None
        near = self._ends.get(written.rpartition(".")[2], [])
        near = [name for name in near if name.endswith(f".{written}")]
        if "." not in written:
            # Without its class a method could be any; a short word could be anything.
            if notice.member or len(written) < 3:
                return None
            near = [name for name in near if not self.members[name]]
            near = [name for name in near if name.count(".") == 1] or near
        return near[0] if len(near) == 1 else None


def resolved(found: Sequence[Notice], names: Mapping[str, bool]) -> dict[str, Notice]:
    """By API, what is said of it; `names` tells of each whether it is of a class."""
    known = KnownNames(names)
    by_name: dict[str, Notice] = {}
    for notice in found:
        name = known.find(notice)
        if name is not None:
            by_name.setdefault(name, notice)
    return by_name


def is_back(notice: Notice, version: str, ecosystem: Ecosystem) -> bool:
    """Whether a version that has the API is one that it had been removed from: it was brought
    back, or another is meant."""
    if not (notice.until and version):
        return False
    return (order(version, ecosystem) or "") >= (order(notice.until, ecosystem) or "~")
