"""The APIs that a page of a Sphinx site documents, read from its definitions."""

import re
from dataclasses import dataclass, field
from typing import Any

import lxml.html

from vademecum.errors import UnreadableSource
from vademecum.graph import deprecation

_MOST_TEXT = 2_000
_PARAMETER = re.compile(
    r"^(?P<stars>\*{0,2})(?P<name>[\w.]+)\s*(?::\s*(?P<annotation>.+?))?(?:\s*=\s*(?P<default>.+))?$",
    re.DOTALL,
)
_LINKS = "//a[@class='headerlink'] | //*[contains(@class, 'viewcode')]"
"""The signs beside a signature that lead to it and to its source."""
_CAUTION = ("warning", "caution", "danger", "important", "attention")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a page says of one object."""

    name: str
    """Its anchor, which is its qualified name."""
    signature: str
    parameters: tuple[dict[str, str], ...]
    returns: str
    description: str
    example: str
    added: str
    deprecated_in: str | None
    removed_in: str | None
    replacement: str | None
    notice: str
    """The sentence that deprecates it."""
    cautions: tuple[str, ...] = field(default=())


def definitions(html: bytes, url: str) -> list[Definition]:
    """All definitions of a page, in its order. Raises UnreadableSource."""
    try:
        root = lxml.html.document_fromstring(html, parser=lxml.html.HTMLParser(encoding="utf-8"))
    except (ValueError, lxml.etree.LxmlError) as error:
        raise UnreadableSource(url, "it is no HTML that can be read") from error
    for link in _all(root, _LINKS):
        link.drop_tree()
    found = []
    for term in _all(root, "//dt[@id and contains(concat(' ', @class, ' '), ' sig ')]"):
        found.append(_definition(term))
    if not found:  # Sphinx before version 4 has no class on them
        terms = _all(root, "//dl[contains(@class, 'function') or contains(@class, 'method') or"
                           " contains(@class, 'class')]/dt[@id]")  # fmt: skip
        found = [_definition(term) for term in terms]
    return found


def _definition(term: lxml.html.HtmlElement) -> Definition:
    body, also = None, []
    for beside in term.itersiblings():
        if beside.tag == "dt" and not beside.get("id"):
            also.append(beside)  # another way to call the same
        elif beside.tag == "dd":
            body = beside
            break
    said = _said(body) if body is not None else {}
    notice = said.get("notice", "")
    returned = _all(term, ".//span[@class='sig-return-typehint']")
    return Definition(
        name=str(term.get("id")),
        signature="\n".join(_text(one) for one in (term, *also)),
        parameters=_parameters(term),
        returns=_text(returned[0]) if returned else said.get("returns", ""),
        description=said.get("description", ""),
        example=said.get("example", ""),
        added=said.get("added", ""),
        deprecated_in=deprecation.since_in(notice) if notice else None,
        removed_in=deprecation.until_in(notice) if notice else None,
        replacement=deprecation.replacement_in(notice) if notice else None,
        notice=deprecation.sentence(notice) if notice else "",
        cautions=tuple(said["cautions"].split("\n")) if said.get("cautions") else (),
    )


def _parameters(term: lxml.html.HtmlElement) -> tuple[dict[str, str], ...]:
    found: list[dict[str, str]] = []
    kind = "positional or keyword"
    for part in _all(term, ".//em[contains(@class, 'sig-param')]"):
        text = _text(part)
        if text == "/":
            for one in found:
                one["kind"] = "positional-only"
            continue
        if text == "*":
            kind = "keyword-only"
            continue
        match = _PARAMETER.match(text)
        if match is None:
            continue
        if match["stars"]:
            own = "variadic keyword" if match["stars"] == "**" else "variadic positional"
        else:
            own = kind
        if own == "variadic positional":
            kind = "keyword-only"
        one = {"name": match["name"], "kind": own}
        for name in ("annotation", "default"):
            if match[name]:
                one[name] = match[name]
        found.append(one)
    return tuple(found)


def _said(body: lxml.html.HtmlElement) -> dict[str, str]:
    """What stands below a definition, without the definitions within it."""
    said: dict[str, str] = {}
    prose: list[str] = []
    cautions: list[str] = []
    for part in body:
        classes = set((part.get("class") or "").split()) if isinstance(part.tag, str) else set()
        if part.tag == "p":
            prose.append(_text(part))
        elif part.tag in ("ul", "ol"):
            prose += [f"- {_text(one)}" for one in part.iterchildren("li")]
        elif part.tag == "dl" and "field-list" in classes:
            _fields(part, said)
        elif part.tag == "div" and any("highlight" in one for one in classes):
            said.setdefault("example", part.text_content().strip("\n"))
        elif classes & {"versionadded", "added"}:
            said.setdefault("added", _version(_text(part)))
        elif classes & {"deprecated", "deprecated-removed", "versionremoved"}:
            said.setdefault("notice", _text(part))
        elif classes & set(_CAUTION):
            cautions.append(re.sub(rf"^({'|'.join(_CAUTION)})\s+", "", _text(part), flags=re.I))
    said["description"] = "\n\n".join(one for one in prose if one)[:_MOST_TEXT]
    said["cautions"] = "\n".join(cautions)
    return said


def _fields(part: lxml.html.HtmlElement, said: dict[str, str]) -> None:
    for name in part.iterchildren("dt"):
        if _text(name).rstrip(":").strip().lower() == "return type":
            value = name.getnext()
            if value is not None:
                said["returns"] = _text(value)


def _version(text: str) -> str:
    match = re.search(r"version\s+v?(\d[\w.]*\d|\d)", text)
    return match[1] if match else ""


def _all(element: lxml.html.HtmlElement, path: str) -> list[Any]:
    found: Any = element.xpath(path)
    return list(found)


def _text(element: lxml.html.HtmlElement) -> str:
    return " ".join(element.text_content().replace("¶", " ").split())
