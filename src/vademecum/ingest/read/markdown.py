"""Markdown, cleaned of what only its site generator understands; the prose stays verbatim."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from vademecum.ingest.read.content import Content, plain_metadata, plain_title
from vademecum.ingest.read.markup import clean_prose, drop_comments, shortcode_fences

if TYPE_CHECKING:
    import yaml

_FENCE = re.compile(r"^([ \t]*(?:>[ \t]?|[-*+][ \t]+|\d+[.)][ \t]+)*[ \t]*)(`{3,}|~{3,})(.*)$")
_SETEXT = re.compile(r" {0,3}(={2,}|-{2,})[ \t]*$")
_NOT_SETEXT = re.compile(
    r"\s*(?:[-*+][ \t]|\d+[.)][ \t]|#{1,6}[ \t]|>|\||```|~~~|:::|</?\w)|    |\t"
)
_ATX = re.compile(r"^(#{1,6})[ \t]+(.*)$")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_ATTRIBUTES = re.compile(
    r"[ \t]*(?:\{:?[ \t]*[#.][^{}\n]*\}|\{#[^{}\n]*\}|\\?\[\[[\w-]+\]\])[ \t]*$"
)
_ADMONITION = re.compile(
    r"^( *)(?:!!!|\?\?\?\+?|===!?\+?)[ \t]+(?:([\w-]+)[^\"\n]*)?(?:\"([^\"]*)\")?\s*$"
)
_MDX_STATEMENT = re.compile(
    r"^(?:import\s+(?:[\w*{\"']).*|export\s+(?:const|let|default|function)\b.*)$"
)

_GAP = re.compile(r"\n(?:[ \t]*\n){2,}")
_CALLOUT = re.compile(
    r"^([ \t]*\*\*[A-Z][^*\n]*:\*\*)[ \t]*\n\s*(?=[A-Za-z`*\[\ue000](?![ \t]))", re.M
)

Block = tuple[bool, list[str]]
"""Whether these lines are code, and the lines."""


def read_markdown(text: str, *, mdx: bool = False) -> Content:
    """The title is that of the front matter, or the first heading of the first level."""
    metadata, body = split_front_matter(text)
    body = shortcode_fences(drop_comments(body, mdx=mdx))
    lines = body.split("\n")
    blocks = list(_blocks(_without_admonition_marks(lines) if _MARKED.search(body) else lines))
    if mdx:
        blocks = _without_statements(blocks)
    parts = []
    for is_code, lines in blocks:
        parts.append("\n".join(lines) if is_code else _prose(lines, mdx))
    markdown = re.sub(r"\A\s*\n", "", "\n".join(parts)).rstrip()
    declared = metadata.get("title")
    title = plain_title(declared) if isinstance(declared, str) else ""
    # The landing page of a section is often its title and nothing else.
    if title and not markdown:
        markdown = f"# {title}\n\n{_text_of(metadata, 'description')}".rstrip()
    return Content(title=title or _first_heading(blocks), text=markdown, metadata=metadata)


def _text_of(metadata: dict[str, object], key: str) -> str:
    value = metadata.get(key)
    return value.strip() if isinstance(value, str) else ""


_YAML = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S | re.M)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.S | re.M)
_YAML_KEY = re.compile(r"^[\w\"'.-]+[ \t]*:(?:\s|$)", re.M)
_SIMPLE = re.compile(r"^([A-Za-z][\w.-]*)[ \t]*[:=][ \t]+[\"']?([^\n]*?)[\"']?[ \t]*$", re.M)
_MAX_FRONT_MATTER = 64 * 1024
_MAX_DEPTH = 50


def split_front_matter(text: str) -> tuple[dict[str, object], str]:
    """What the page declares, and the rest of it.

    Of front matter that is broken the plain lines are read, and `front_matter_error` says why;
    if it has none, it stays in the text.
    """
    for pattern, parse in ((_YAML, _parse_yaml), (_TOML, _parse_toml)):
        match = pattern.match(text)
        if match is None:
            continue
        declared = match[1]
        if not declared.strip():
            return {}, text[match.end() :]
        if len(declared) > _MAX_FRONT_MATTER or (
            pattern is _YAML and not _looks_declared(declared)
        ):
            return {}, text
        try:
            return parse(declared), text[match.end() :]
        except (ValueError, TypeError, RecursionError, OverflowError, KeyError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            simple = {match[1]: match[2] for match in _SIMPLE.finditer(declared)}
            rest = text[match.end() :] if simple else text
            return {**simple, "front_matter_error": reason}, rest
    return {}, text


def _looks_declared(text: str) -> bool:
    """Two rules with prose between them are not front matter."""
    return _YAML_KEY.search(text) is not None or text.lstrip().startswith(("{", "#"))


def _parse_yaml(text: str) -> dict[str, object]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_deep_yaml(yaml.parse(text, Loader=loader))
        values = yaml.load(text, Loader=loader)  # noqa: S506 - the safe loader, in C
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return _mapping(values)


def _refuse_deep_yaml(events: "Iterable[yaml.Event]") -> None:
    """The loader in C recurses without a limit, and ends the process on deep nesting."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")


def _parse_toml(text: str) -> dict[str, object]:
    import tomllib

    return _mapping(tomllib.loads(text))


def _mapping(values: object) -> dict[str, object]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise TypeError("front matter is not a list of keys and values")
    return plain_metadata(values)


def _blocks(lines: list[str]) -> Iterator[Block]:
    """Runs of prose and of code, in order."""
    prose: list[str] = []
    i = 0
    while i < len(lines):
        end = _code_end(lines, i)
        if end is None:
            prose.append(lines[i])
            i += 1
            continue
        if prose:
            yield False, prose
            prose = []
        yield True, lines[i:end]
        i = end
    if prose:
        yield False, prose


def _code_end(lines: list[str], start: int) -> int | None:
    """The line after the code that begins here, None if this is no code."""
    line = lines[start]
    if "```" in line or "~~~" in line:
        match = _FENCE.match(line)
        if match is None or (match[2][0] == "`" and "`" in match[3]):
            return None
        closing = re.compile(rf"^[ \t>]*{re.escape(match[2][0])}{{{len(match[2])},}}[ \t]*$")
        for i in range(start + 1, len(lines)):
            if closing.match(lines[i]):
                return i + 1
        return len(lines)
    if line.startswith(("    ", "\t")) and line.strip() and _is_indented_code(lines, start):
        end = start
        while end < len(lines) and (
            lines[end].startswith(("    ", "\t")) or not lines[end].strip()
        ):
            end += 1
        while not lines[end - 1].strip():
            end -= 1
        return end
    return None


_LIST = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_LOOK_BACK = 300


def _is_indented_code(lines: list[str], start: int) -> bool:
    """Indented lines are code after a blank line, unless they go on with a list."""
    if start and lines[start - 1].strip():
        return False
    unindented = False
    for line in reversed(lines[max(0, start - _LOOK_BACK) : start]):
        if _LIST.match(line):
            return False
        if unindented and not line.strip():
            return True
        # Not yet the answer: a list item may go on without indentation.
        unindented = unindented or (bool(line) and not line.startswith((" ", "\t")))
    return True


_MARKED = re.compile(r"^[^\S\n]*(?:!!!|\?\?\?\+?|===) ", re.M)


def _without_admonition_marks(lines: list[str]) -> list[str]:
    """`!!! note "Title"` and its indented block become a bold line and plain paragraphs."""
    out: list[str] = []
    dedents: list[int] = []
    in_fence = False
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        while dedents and line.strip() and indent < dedents[-1]:
            dedents.pop()
        width = 4 * len(dedents)
        line = line[min(width, indent) :]
        if line.lstrip().startswith(("```", "~~~")):
            in_fence = not in_fence
        match = None if in_fence else _ADMONITION.match(line)
        if match is None:
            out.append(line)
            continue
        label = match[3] if match[3] is not None else (match[2] or "").capitalize()
        out += [f"{match[1]}**{label}**" if label else "", ""]
        dedents.append(width + len(match[1]) + 4)
    return out


def _without_statements(blocks: list[Block]) -> list[Block]:
    """MDX without its imports and exports; each runs to the next blank line."""
    cleaned: list[Block] = []
    for is_code, lines in blocks:
        if is_code:
            cleaned.append((True, lines))
            continue
        kept: list[str] = []
        inside = False
        for line in lines:
            inside = bool(line.strip()) and (inside or bool(_MDX_STATEMENT.match(line)))
            if not inside:
                kept.append(line)
        cleaned.append((False, kept))
    return cleaned


def _prose(lines: list[str], mdx: bool) -> str:
    text = "\n".join(lines)
    cleaned = clean_prose(text, mdx=mdx)
    if cleaned != text:
        cleaned = _CALLOUT.sub(r"\1 ", _GAP.sub("\n\n", cleaned))
    return "\n".join(_with_atx_headings(cleaned.split("\n")))


def _with_atx_headings(lines: list[str]) -> Iterator[str]:
    pending: str | None = None
    above = ""
    for line in lines:
        if pending is not None and not above.strip():
            match = _SETEXT.match(line)
            if match and pending.strip() and not _NOT_SETEXT.match(pending):
                level = 1 if match[1][0] == "=" else 2
                pending = f"{'#' * level} {_ATTRIBUTES.sub('', pending.strip())}"
                continue
        if pending is not None:
            yield pending
            above = pending
        pending = _atx(line) if line.startswith("#") else line
    if pending is not None:
        yield pending


def _atx(line: str) -> str:
    match = _ATX.match(line)
    if match is None:
        return line
    text = _CLOSING_HASHES.sub("", _ATTRIBUTES.sub("", match[2]))
    return f"{match[1]} {text.strip()}".rstrip()


def _first_heading(blocks: list[Block]) -> str:
    for is_code, lines in blocks:
        if not is_code:
            for line in _with_atx_headings(lines):
                if line.startswith("# "):
                    return plain_title(line[2:])
    return ""
