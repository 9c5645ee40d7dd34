"""What every reader hands back, and the cleaning that all of them share."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

MAX_TITLE = 200
MAX_METADATA_NODES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Markdown made of a source; an empty title means the source does not name itself."""

    title: str
    text: str
    metadata: Mapping[str, object] = field(default_factory=dict)


_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Controls, soft hyphen, zero-width and direction marks, and the invisible tag letters in which
# instructions to a model can hide.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]+"
)
# Joiners shape Persian, Indic scripts and emoji; beside a Latin letter they only hide.
_STRAY_JOINER = re.compile("(?<=[\x00-\u024f])[\u200c\u200d]+|[\u200c\u200d]+(?=[\x00-\u024f]|$)")
_ASCII_SUSPECT = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def clean_text(text: str) -> str:
    """Line ends become LF and characters nobody can see are removed; all else is verbatim."""
    if text.isascii() and not _ASCII_SUSPECT.search(text):
        return text
    text = _LINE_ENDS.sub("\n", text)
    text = _INVISIBLE.sub("", text)
    if "\u200c" in text or "\u200d" in text:
        text = _STRAY_JOINER.sub("", text)
    return text


_MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]|(`+|\*\*|__)(.+?)\3")


def plain_title(text: str) -> str:
    """A heading without its markdown, on one line, not too long."""
    text = text.strip()[: 5 * MAX_TITLE]
    for _ in range(3):
        shorter = _MARKUP.sub(lambda m: m[1] or m[2] or m[4] or "", text)
        if shorter == text:
            break
        text = shorter
    text = " ".join(text.split())
    if len(text) <= MAX_TITLE:
        return text
    return text[: MAX_TITLE - 1].rsplit(" ", 1)[0] + "…"


def title_from_name(name: str) -> str:
    """A readable title for a source that has none: `docs/getting-started.md` is Getting started."""
    address = urlsplit(name) if "://" in name else None
    path = PurePosixPath(unquote(address.path) if address else name)
    stem = path.stem
    if stem.lower() in {"index", "_index", "readme"} and path.parent.name:
        stem = path.parent.name
    words = " ".join(re.sub(r"[-_]+", " ", clean_text(stem)).split())
    if not words:
        return (address.netloc if address else clean_text(name).strip()) or "Untitled"
    return plain_title(words[0].upper() + words[1:])


def plain_metadata(values: Mapping[object, object]) -> dict[str, object]:
    """The same values as JSON can hold them: dates as ISO text, nothing cyclic, nothing huge.

    Raises ValueError when there is more than a page should declare (aliases can multiply).
    """
    budget = [MAX_METADATA_NODES]
    plain = _plain(values, budget)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object, budget: list[int]) -> object:
    budget[0] -= 1
    if budget[0] < 0:
        raise ValueError("it declares too much")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value) if abs(value) < 10**300 else "huge"
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {clean_text(str(key)): _plain(item, budget) for key, item in value.items()}
    if isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, bytes):
        return [_plain(item, budget) for item in value]
    return clean_text(str(value))


def word_set(words: str) -> frozenset[str]:
    """Many names, written like a text."""
    return frozenset(words.split())
