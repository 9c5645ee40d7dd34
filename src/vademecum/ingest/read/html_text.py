"""The words of HTML elements, before they are markdown."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lxml import etree

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

BREAK = "\x01"
"""A line break inside a paragraph, until its white space is folded."""

_PERMALINK_TEXT = frozenset(("¶", "#", "§", "🔗", "\uf0c1", "†", ""))
_PERMALINK_CLASSES = frozenset(
    ("headerlink", "permalink", "anchor", "anchor-link", "header-anchor", "hash-link", "id_link")
)


def plain_text(element: "Element", drops: "Callable[[Element], bool] | None" = None) -> str:
    """The words of an element on one line, without markup or permalinks."""
    if len(element) == 0:
        return " ".join((element.text or "").split())
    parts: list[str] = []
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, inner in walk:
        if event == "end":
            if inner.tail and inner is not element:
                parts.append(inner.tail)
        elif inner is not element and (
            (inner.tag == "a" and is_permalink(inner))
            or (drops and inner.tag in ("a", "span", "div") and drops(inner))
        ):
            walk.skip_subtree()
        else:
            parts.append(" " if inner.tag == "br" else inner.text or "")
    return " ".join("".join(parts).split())


def is_permalink(link: "Element") -> bool:
    classes = link.get("class")
    if classes and not _PERMALINK_CLASSES.isdisjoint(classes.split()):
        return True
    if len(link) or (link.text and len(link.text) > 3):
        return False
    # Elsewhere a lone sign is a permalink only if it leads to its own page.
    return (link.text or "").strip() in _PERMALINK_TEXT and (
        not link.text or link.get("href", "").startswith("#")
    )


def folded(text: str) -> str:
    if BREAK not in text:
        return " ".join(text.split())
    return "\n".join(" ".join(line.split()) for line in text.split(BREAK)).strip()


def edges(text: str) -> tuple[str, str]:
    return (" " if text[:1].isspace() else ""), (" " if text[-1:].isspace() else "")


def bold(text: str) -> str:
    text = text.replace("\n", " ")
    return text if "`" in text or "**" in text else f"**{text}**"
