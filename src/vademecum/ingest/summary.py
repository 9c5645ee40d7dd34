"""A document in six bullets of a fixed scaffold, in its own words.

Each bullet is taken from what the document says; where it says nothing on a point, so does the
bullet. The same document always gives the same summary.
"""

import re
from collections.abc import Callable, Sequence

SCAFFOLD = (
    "Purpose & Scope",
    "Key Entities/Objects",
    "Core Commands/Patterns",
    "Constraints & Edge Cases",
    "Examples & Gotchas",
    "Where to Apply / Related Docs",
)
MAX_BULLET = 200
"""Characters of a bullet, its label included."""

_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.M | re.S)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.M)
_CODE = re.compile(r"`([^`\n]{2,60})`")
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)[^)\n]*\)")
_IMAGE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)")
_MARKUP = re.compile(
    r"<[^<>\n]{1,200}>|\{\{[^{}\n]*\}\}|[*_]{2,3}|^[ \t]*(?:[-*+>]|\d{1,3}[.)])[ \t]+", re.M
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'`(\[]?[A-Z0-9À-ÞΑ-Я])|(?<=[。！？])")
_CONSTRAINT = re.compile(
    r"\b(?:must(?: not)?|cannot|can't|only|at (?:most|least)|limit(?:s|ed|ation)?|maximum|minimum"
    r"|never|not supported|unless|requires?|required|restrict\w*|except|deprecated|no longer)\b",
    re.IGNORECASE,
)
_GOTCHA = re.compile(
    r"\b(?:note|caution|warning|important|beware|pitfall|mistake|careful|otherwise|for example"
    r"|for instance|e\.g\.|example)\b",
    re.IGNORECASE,
)
_APPLY = re.compile(r"\b(?:when (?:you|to)|use (?:this|it|these)|if you|suitable|see also)\b", re.I)


def summary6(title: str, text: str, keywords: Sequence[str]) -> tuple[str, ...]:
    """Six bullets, each `label — text` of at most 200 characters, in the scaffold's order."""
    blocks = [match[2] for match in _FENCE.finditer(text)]
    prose = _FENCE.sub("\n\n", text)
    sentences = _sentences(prose)
    unused = list(sentences)
    purpose = _take(unused, lambda sentence: True) or title
    constraint = _take(unused, _CONSTRAINT.search)
    gotcha = _take(unused, _GOTCHA.search)
    apply = _take(unused, _APPLY.search)
    links = list(dict.fromkeys(f"{label} ({target})" for label, target in _LINK.findall(prose)))
    bodies = (
        purpose,
        _listed([*_codes(prose)[:5], *keywords], "no names stand out"),
        _listed(_commands(blocks) or _codes(prose), "no commands or patterns are shown"),
        constraint or "no limits or caveats are stated",
        gotcha or _example(blocks) or "no examples are given",
        " ".join(filter(None, (apply, _listed(links, ""))))
        or f"sections: {_listed(_HEADING.findall(prose), title)}",
    )
    return tuple(bullet(label, body) for label, body in zip(SCAFFOLD, bodies, strict=True))


def bullet(label: str, body: str) -> str:
    """`label — body` on one line, cut between words to the limit."""
    line = f"{label} — {' '.join(body.split())}"
    if len(line) <= MAX_BULLET:
        return line
    cut = line[: MAX_BULLET - 1]
    shorter = cut.rsplit(" ", 1)[0]
    return f"{shorter if len(shorter) > len(label) + 20 else cut}…"


def _sentences(prose: str) -> list[str]:
    """Those of running text, without markup; headings, tables and labels are none."""
    found = []
    for paragraph in re.split(r"\n[ \t]*\n", _HEADING.sub("\n", _IMAGE.sub("", prose))):
        if paragraph.lstrip().startswith("|"):
            continue
        plain = " ".join(_MARKUP.sub("", _LINK.sub(r"\1", paragraph)).split())
        found += [s.strip() for s in _SENTENCE.split(plain) if len(s.split()) >= 4 or len(s) > 40]
    return found


def _take(unused: list[str], wanted: Callable[[str], object]) -> str:
    """The first sentence that is wanted, which then is used."""
    for index, sentence in enumerate(unused):
        if wanted(sentence):
            return unused.pop(index)
    return ""


def _codes(prose: str) -> list[str]:
    return list(dict.fromkeys(code.strip() for code in _CODE.findall(prose) if code.strip()))


def _commands(blocks: Sequence[str]) -> list[str]:
    """The first line that does something of each example."""
    lines = []
    for block in blocks:
        said = (line.strip() for line in block.splitlines())
        if first := next((s for s in said if s and not s.startswith(("#", "//", "--"))), None):
            lines.append(first)
    return list(dict.fromkeys(lines))


def _example(blocks: Sequence[str]) -> str:
    return next((" ".join(block.split()) for block in blocks if block.strip()), "")


def _listed(parts: Sequence[str], otherwise: str) -> str:
    """As many parts as fit a bullet."""
    line = ""
    for part in dict.fromkeys(" ".join(part.split()) for part in parts):
        longer = f"{line}; {part}" if line else part
        if line and len(longer) > MAX_BULLET - 40:
            break
        line = longer
    return line or otherwise
