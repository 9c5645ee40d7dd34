"""Deprecations in docstrings: Sphinx's directives, and texts that open with the word."""

import re
from inspect import cleandoc

from vademecum.graph import deprecation
from vademecum.graph.api import Deprecation
from vademecum.graph.notices.texts import VERSION, deprecation_in

_DIRECTIVE = re.compile(
    r"^(?P<indent>[ \t]*)\.\. (?P<name>deprecated|deprecated-removed|versionremoved|versionadded)::"
    r"[ \t]*(?P<rest>.*)$",
    re.MULTILINE,
)
_OWNER = re.compile(
    r"^\s*(?::param(?:eter)?\s+(?:[\w.\[\], |]+\s+)?(\w+)\s*:|\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:)"
)
_OPENS_DEPRECATED = re.compile(r"^\W{0,3}deprecated\b", re.IGNORECASE)


def of_docstring(text: str, line: int, parameters: set[str]) -> list[Deprecation]:
    """The directives of a docstring, and a docstring that begins with "Deprecated"."""
    text = cleandoc(text)
    found = []
    for match in _DIRECTIVE.finditer(text):
        name = match["name"]
        if name == "versionadded":
            continue
        block = _block(text, match)
        version, _, rest = block.partition(" ")
        version = version.rstrip(":.")
        until = None
        if not VERSION.match(version):
            version, rest = deprecation.since_in(block) or "", block
        if name == "deprecated-removed":
            until, _, rest = rest.partition(" ")
        if name == "versionremoved":
            until, version = version, ""
        subject = _directive_subject(text, match, parameters)
        if subject is None:
            subject = _parameter(rest, parameters)
        found.append(
            Deprecation(
                subject=subject,
                since=version or None,
                until=until or deprecation.until_in(rest),
                replacement=deprecation.replacement_in(rest),
                sentence=deprecation.sentence(f".. {name}:: {block}"),
                evidence="directive",
                line=line,
                conditional=subject == "" and bool(match["indent"]),
            )
        )
    if not found and _OPENS_DEPRECATED.match(text):
        opening = text.partition("\n\n")[0]
        found.append(deprecation_in(opening, "docstring", line))
    return found


def version_added(text: str) -> str | None:
    """The version of a docstring's `versionadded`, where it stands for the whole."""
    for match in _DIRECTIVE.finditer(cleandoc(text)):
        if match["name"] == "versionadded" and not match["indent"]:
            version = match["rest"].split(" ")[0].rstrip(":.")
            return version if VERSION.match(version) else None
    return None


def _block(text: str, match: re.Match[str]) -> str:
    """The directive's text: the rest of its line and the lines indented below it."""
    lines = [match["rest"]]
    for line in text[match.end() :].splitlines()[1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= len(match["indent"]):
            break
        if not line.strip() and len(" ".join(lines).split()) > 1:
            break
        lines.append(line)
    return " ".join(" ".join(lines).split())


def _directive_subject(text: str, match: re.Match[str], parameters: set[str]) -> str | None:
    """The parameter under whose description the directive stands; None at the margin."""
    depth = len(match["indent"])
    if not depth:
        return None
    for line in reversed(text[: match.start()].splitlines()):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent < depth:
            owner = _OWNER.match(line)
            name = (owner[1] or owner[2]) if owner else line.split()[0].rstrip(":,")
            return name if name in parameters else ""
    return ""


def _parameter(text: str, parameters: set[str]) -> str:
    name = deprecation.parameter_in(text)
    return name if name in parameters else ""
