"""Code on HTML pages: blocks with their language, inline code, signatures of an API."""

import re
from typing import TYPE_CHECKING, cast

from lxml import etree

from vademecum.ingest.read.content import word_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.etree import _Element as Element

_LANGUAGE_CLASS = re.compile(
    r"(?:^|\s)(?:highlight-source-|highlight-|language-|lang-|brush:\s?|sourceCode\s|src-)([\w+#-]+)"
)
_NO_LANGUAGE = {
    "default",
    "none",
    "text",
    "plaintext",
    "plain",
    "notranslate",
    "source",
    "nohighlight",
}
_SAME = {"python3": "python", "py": "python", "ipython3": "python", "py3": "python",
         "sh": "bash", "shell-session": "console", "js": "javascript", "ts": "typescript",
         "psql": "sql", "postgresql": "sql", "c++": "cpp", "yml": "yaml"}  # fmt: skip
_LINE_NUMBERS = {"linenos", "lineno", "line-number", "line-numbers", "gutter"}


def code_block(pre: "Element") -> str:
    """A `pre` element as a fence, empty if there is nothing in it."""
    text = _code_text(pre).replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    lines = [line.rstrip() for line in text.expandtabs(8).split("\n")]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        return ""
    return fence("\n".join(lines), _language(pre) or _guessed(lines))


def fence(code: str, language: str = "") -> str:
    """`code` between fences longer than any inside it."""
    ticks = "`" * max(3, _longest_run(code) + 1)
    return f"{ticks}{language}\n{code}\n{ticks}"


def inline_code(text: str) -> str:
    """`text` between backticks, empty if there is none."""
    text = " ".join(text.split())
    if not text:
        return ""
    if "`" not in text:
        return f"`{text}`"
    ticks = "`" * (_longest_run(text) + 1)
    return f"{ticks} {text} {ticks}"


def text_of(element: "Element") -> str:
    """All text of an element, as it is."""
    return "".join(cast("Iterator[str]", element.itertext()))


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _code_text(pre: "Element") -> str:
    variants = list(pre.iterchildren("code"))
    if len(variants) > 1:  # the same in several languages, of which a page shows one
        return "\n\n".join(map(_code_text, variants))
    if next(pre.iter("br", "span", "td", "div", "p"), None) is None:
        return text_of(pre)
    parts: list[str] = []
    skip: Element | None = None
    for event, element in etree.iterwalk(pre, events=("start", "end")):
        if event == "start":
            classes = element.get("class")
            if skip is None and classes and not _LINE_NUMBERS.isdisjoint(classes.split()):
                skip = element
            if skip is None:
                parts.append("\n" if element.tag == "br" else element.text or "")
            continue
        if element is skip:
            skip = None
        if skip is None and element is not pre:
            if element.tag in ("div", "p") and parts and not parts[-1].endswith("\n"):
                parts.append("\n")
            parts.append(element.tail or "")
    return "".join(parts)


def _language(pre: "Element") -> str:
    """The language that the block, its code or a box around it declares."""
    places = [pre, *pre.iterchildren("code")]
    parent = pre.getparent()
    for _ in range(3):
        if parent is None or parent.tag not in ("div", "figure", "td"):
            break
        places.append(parent)
        parent = parent.getparent()
    for place in places:
        declared = place.get("data-lang") or place.get("data-language") or place.get("lang")
        if declared is None:
            match = _LANGUAGE_CLASS.search(place.get("class", ""))
            declared = match[1] if match else None
        if declared:
            name = declared.lower()
            if re.fullmatch(r"[\w+#.-]{1,30}", name):
                return "" if name in _NO_LANGUAGE else _SAME.get(name, name)
    return ""


def _guessed(lines: list[str]) -> str:
    return "python" if lines[0].startswith(">>> ") else ""


_API_CLASSES = word_set(
    """
    py c cpp js rst std function method class exception data attribute module classmethod
    staticmethod describe option cmdoption envvar macro type var setting templatetag
    templatefilter fieldlookup django-admin django-admin-option property decorator struct enum
    member enumerator
    """
)
_NOT_API = frozenset(("field-list", "simple", "footnote", "citation", "glossary", "docutils"))


def is_api_list(definitions: "Element") -> bool:
    """Whether a `dl` describes functions and the like, and not words."""
    classes = set(definitions.get("class", "").split())
    term = next(definitions.iterchildren("dt"), None)
    if term is None or classes & _NOT_API:
        return False
    if classes & _API_CLASSES:
        return True
    return "sig" in term.get("class", "").split()


def signature(text: str) -> str:
    """A signature as one would write it."""
    text = re.sub(r"\s*\[(?:source|src)\]\s*$", "", text)
    text = re.sub(r"\(\s+", "(", re.sub(r",?\s+\)", ")", text))
    return re.sub(r"\s+,", ",", text).strip().rstrip("¶#").strip()
