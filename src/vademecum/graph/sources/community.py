"""What sources of a community have in common: the filter, and the form of what they say."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from vademecum.graph.nodes import CodeExample, ErrorPattern
from vademecum.graph.relations import Relation
from vademecum.graph.sources.adapter import FoundDocument, Subject

RECENT = timedelta(days=2 * 365)
"""What is older must be version-agnostic."""
_VERSION = re.compile(
    r"\b(?:v|version|release|python|django|flask|node(?:\.js)?|npm|react|angular|java|pandas|numpy|"
    r"java ?script|typescript|php|ruby|rails|go|rust|ubuntu|windows|macos|os x|ios|android)"
    r"\s*(?:>=?|<=?|==)?\s*\d+(?:\.\d+)*\b|(?<![\w.])\d+\.\d+(?:\.\d+|\.x)?(?![\w.]*\d)",
    re.IGNORECASE,
)
_CODE = re.compile(r"```.*?```|~~~.*?~~~", re.DOTALL)
_PLACEHOLDER = re.compile(r"<(?:n|id|path|url)>")


def recent_or_agnostic(text: str, changed: datetime, now: datetime) -> bool:
    """Whether it is at most two years old, or its words name no version of anything."""
    return now - changed <= RECENT or not _VERSION.search(_CODE.sub(" ", text))


def has_code(text: str) -> bool:
    return _CODE.search(text) is not None


def terms(subject: Subject) -> str:
    """What a search engine is asked: the pattern without what stands for what differs."""
    words = re.sub(r"[^\w\s.'`-]", " ", _PLACEHOLDER.sub(" ", subject.name))
    return " ".join(words.split())[:200]


def prose(text: str, most: int = 600) -> str:
    """The words of a text, without its code."""
    flat = " ".join(_CODE.sub(" ", text).split())
    return flat if len(flat) <= most else f"{flat[: most - 1].rsplit(' ', 1)[0]}…"


def solving(found: FoundDocument, subject: Subject) -> FoundDocument:
    """The document as what solves an error: its first example, else itself."""
    if subject.kind != "error":
        return found
    pattern = ErrorPattern(pattern=subject.name, language=subject.language)
    examples = [node for node in found.nodes if isinstance(node, CodeExample)]
    start = examples[0] if examples else found.document
    solves = Relation(
        kind="SOLVES", start=start, end=pattern, properties={"evidence": found.document.title}
    )
    return replace(found, relations=[*found.relations, solves])


def left_out(title: str, reasons: Sequence[str]) -> str:
    return f"left out {title!r}: {', '.join(reasons)}"
