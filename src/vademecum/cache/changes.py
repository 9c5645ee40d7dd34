"""What changed on a page since a project last read it, paragraph by paragraph."""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass

_BREAK = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    added: list[str]
    """Paragraphs that were not there, verbatim, in page order."""
    removed: int
    """Paragraphs that are gone."""


def fingerprints(text: str) -> list[int]:
    """One number a paragraph: 64 bits, equal for equal words."""
    return [_fingerprint(paragraph) for paragraph in paragraphs(text)]


def paragraphs(text: str) -> list[str]:
    return [paragraph.strip("\n") for paragraph in _BREAK.split(text) if paragraph.strip()]


def changes(text: str, before: Collection[int]) -> Changes:
    known = set(before)
    here = paragraphs(text)
    return Changes(
        added=[paragraph for paragraph in here if _fingerprint(paragraph) not in known],
        removed=len(known - {_fingerprint(paragraph) for paragraph in here}),
    )


def _fingerprint(paragraph: str) -> int:
    words = " ".join(paragraph.split())
    digest = hashlib.blake2b(words.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
