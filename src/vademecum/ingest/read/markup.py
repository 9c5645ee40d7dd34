"""Template and HTML markup inside markdown: what readers see of it stays, the rest goes."""

import re
from collections.abc import Callable, Iterator

from vademecum.ingest.read.content import word_set

_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:[^\n]|\n(?!\s*\n))+?(?<!`)\1(?!`)")
_FENCE_LINE = re.compile(r"^[ \t>]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?(`{3,}|~{3,})", re.M)


_PUT_ASIDE = re.compile("\ue000([0-9]{1,9})\ue001")  # characters that no text has


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """`text` with `change` made to all that is not between backticks.

    Code spans are put aside, so that markup around them is still seen in one piece.
    """
    if "`" not in text:
        return change(text)
    spans: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        spans.append(match[0])
        return f"\ue000{len(spans) - 1}\ue001"

    changed = change(_CODE_SPAN.sub(put_aside, text))
    return _PUT_ASIDE.sub(lambda match: "".join(spans[int(match[1]) :][:1]) or match[0], changed)


def drop_comments(text: str, *, mdx: bool = False) -> str:
    """Without HTML comments, also those around whole code blocks; those inside code stay."""
    openers = [("<!--", "-->"), ("{{< comment >}}", "{{< /comment >}}")]
    openers.append(("{% comment %}", "{% endcomment %}"))
    if mdx:
        openers.append(("{/*", "*/}"))
    openers = [(opening, closing) for opening, closing in openers if opening in text]
    if not openers:
        return text
    return "".join(_uncommented(text, openers))


def _uncommented(text: str, pairs: list[tuple[str, str]]) -> Iterator[str]:
    closings = dict(pairs)
    pattern = re.compile(
        rf"{_FENCE_LINE.pattern}|{_CODE_SPAN.pattern.replace(chr(92) + '1', chr(92) + '2')}|"
        + "|".join(re.escape(opening) for opening in closings),
        re.M,
    )
    position = start = 0
    missing: set[str] = set()  # else many openings would each search to the end
    while match := pattern.search(text, position):
        if match[0] in closings:
            closing = closings[match[0]]
            end = -1 if closing in missing else text.find(closing, match.end())
            if end < 0:
                missing.add(closing)
                position = match.end()
                continue
            yield text[start : match.start()]
            start = position = end + len(closings[match[0]])
        elif match[1]:
            position = _fence_end(text, match)
        else:
            position = match.end()
    yield text[start:]


def _fence_end(text: str, opening: re.Match[str]) -> int:
    ticks = opening[1]
    rest_of_line = text[opening.end() : (text.find("\n", opening.end()) + 1) or len(text)]
    if ticks[0] == "`" and "`" in rest_of_line:
        return opening.end()
    closing = re.compile(rf"^[ \t>]*{re.escape(ticks[0])}{{{len(ticks)},}}[ \t]*$", re.M)
    end = closing.search(text, opening.end())
    return end.end() if end else len(text)


# Shortcodes that hold code

_CODE_SHORTCODES = (
    (
        re.compile(r"\{\{[<%]\s*(?:highlight|code)\s+([\w+-]+)[^{}]*[>%]\}\}"),
        re.compile(r"\{\{[<%]\s*/\s*(?:highlight|code)\s*[>%]\}\}"),
    ),
    (
        re.compile(r"\{\{[<%]\s*(mermaid)\s*[>%]\}\}"),
        re.compile(r"\{\{[<%]\s*/\s*mermaid\s*[>%]\}\}"),
    ),
    (
        re.compile(r"\{%-?\s*highlight\s+([\w+-]+)[^{}]*%\}"),
        re.compile(r"\{%-?\s*endhighlight\s*-?%\}"),
    ),
)


def shortcode_fences(text: str) -> str:
    """Shortcodes around code become fences, or code spans where they stand in a line."""
    if "{{" not in text and "{%" not in text:
        return text
    for opening, closing in _CODE_SHORTCODES:
        text = replace_spans(text, opening, closing, _as_fence)
    return text


def replace_spans(
    text: str,
    opening: re.Pattern[str],
    closing: re.Pattern[str],
    change: Callable[[re.Match[str], str], str],
) -> str:
    """Every `opening … closing` as `change` makes it of the opening and what is between.

    In linear time: after the last closing nothing is searched.
    """
    parts: list[str] = []
    position = 0
    while (start := opening.search(text, position)) is not None:
        end = closing.search(text, start.end())
        if end is None:
            break
        parts += text[position : start.start()], change(start, text[start.end() : end.start()])
        position = end.end()
    return "".join([*parts, text[position:]])


def _as_fence(match: re.Match[str], code: str) -> str:
    before = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    if before.strip() or "inline" in match[0] or "\n" not in code.strip():
        return f"`{' '.join(code.split())}`"
    ticks = "````" if "```" in code else "```"
    return f"{ticks}{match[1]}\n{code.strip(chr(10))}\n{ticks}\n"


# Prose


def clean_prose(text: str, *, mdx: bool = False) -> str:
    """Prose without template tags, HTML tags and marks of site generators."""
    if "<" in text:
        text = outside_code(text, _convert_html_blocks)
    return outside_code(text, lambda prose: _clean(prose, mdx))


def _clean(text: str, mdx: bool) -> str:
    if "{{" in text or "{%" in text:
        text = _without_templates(text)
    if ":::" in text or "[!" in text:
        text = _without_directives(text)
    if "{:" in text or "[TOC]" in text or "[[toc]]" in text or "[[_TOC_]]" in text:
        text = _GENERATOR_MARKS.sub("", text)
    if "<" in text:
        text = _without_tags(text, mdx)
    return text


_GENERATOR_MARKS = re.compile(
    r"^[ \t]*(?:\[TOC\]|\[\[_?toc_?\]\])[ \t]*$|\{:[ \t]*[^{}\n]*\}", re.M | re.I
)
_DIRECTIVE_LINE = re.compile(r"^([ \t]*):{3,}[ \t]*([\w-]*)[ \t]*(.*)$", re.M)
_ALERT = re.compile(
    r"^([ \t]*>[ \t]?)\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*\n[ \t]*>[ \t]?", re.M | re.I
)
_DOCFX_INCLUDE = re.compile(r"\[!INCLUDE\w*[ \t]*\[[^\]\n]{0,300}\]\([^)\n]{0,300}\)\]", re.I)
_DOCFX_CODE = re.compile(r"\[!code(?:-\w+)?[ \t]*\[[^\]\n]{0,300}\]\(([^)\n]{0,300})\)\]", re.I)
_CALLOUTS = {
    "note",
    "tip",
    "info",
    "warning",
    "caution",
    "danger",
    "important",
    "details",
    "success",
}


def _without_directives(text: str) -> str:
    text = _ALERT.sub(lambda match: f"{match[1]}**{match[2].capitalize()}:** ", text)
    text = _DOCFX_INCLUDE.sub("", text)
    text = _DOCFX_CODE.sub(lambda match: match[1], text)
    return _DIRECTIVE_LINE.sub(_directive_words, text)


def _directive_words(match: re.Match[str]) -> str:
    """`:::note Title` is a callout, `:::image … alt-text="words":::` a picture."""
    indent, name, rest = match[1], match[2].lower(), match[3].rstrip(": ").strip()
    if name in _CALLOUTS:
        title = re.sub(r"\{[^}]*\}", "", rest).strip("[] ") or name.capitalize()
        return f"{indent}**{title}**\n"
    alt = _attribute(rest, "alt-text")
    return indent + alt if alt else ""


_SHORTCODE = re.compile(r"\{\{[<%]-?\s*(/?)\s*([\w./-]*)((?:\s[^{}]*?)?)/?\s*-?[>%]\}\}")
_LIQUID = re.compile(r"\{%-?\s*(\w*)(.{0,500}?)-?%\}")
_SITE_VALUE = re.compile(r"\{\{-?\s*(?:site|page|include|layout)\.[^{}]*\}\}")
_PARAMETER = re.compile(
    r"([\w-]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|`([^`]*)`|([^\s\"']+))"
)
_POSITIONAL = re.compile(r"(?<![=\w])(?:\"([^\"]*)\"|([^\s\"'=]+)(?=\s|$))")
_HEADINGS = {
    "whatsnext": "What's next",
    "prerequisites": "Before you begin",
    "objectives": "Objectives",
    "cleanup": "Cleaning up",
    "seealso": "See also",
}
_BOLD = {"tab", "details", "expand", "collapse", "accordion", "card", "step", "tab-item"}
_READ = ("text", "title", "name", "summary", "caption", "alt", "label", "heading")
_SILENT = {"tabs", "tabpane", "figure", "img", "image", "cards"}


def _without_templates(text: str) -> str:
    text = _SHORTCODE.sub(_shortcode_words, text)
    text = _LIQUID.sub(_liquid_words, text)
    return _SITE_VALUE.sub("", text)


def _shortcode_words(match: re.Match[str]) -> str:
    """What a page shows where a Hugo shortcode stands."""
    closing, name, rest = match[1], match[2].lower(), match[3]
    if closing:
        return ""
    first = _POSITIONAL.search(rest)
    word = (first[1] or first[2] or "") if first else ""
    if name == "heading":
        return _HEADINGS.get(word.lower(), word.replace("-", " ").capitalize())
    if name in _CALLOUTS or name in ("alert", "admonition", "callout", "hint"):
        title = _attribute(rest, "title") or (name if name in _CALLOUTS else "note").capitalize()
        return f"**{title}:** "
    if name in ("ref", "relref"):
        return word
    if name == "feature-state":
        state, since = _attribute(rest, "state"), _attribute(rest, "for_k8s_version")
        return (
            f"Feature state: {state} {f'since {since}' if since else ''}".strip() if state else ""
        )
    if name in ("code_sample", "codenew", "code", "example") and (file := _attribute(rest, "file")):
        return f"`{file}`"
    shown = next((value for key in _READ if (value := _attribute(rest, key))), "")
    if name in _SILENT:
        return _attribute(rest, "caption") or _attribute(rest, "alt") or ""
    if name in _BOLD:
        return f"**{shown or word}**" if shown or word else ""
    if name.startswith("glossary"):
        return shown or _attribute(rest, "term_id").replace("-", " ")
    return shown


def _liquid_words(match: re.Match[str]) -> str:
    name, rest = match[1], match[2].strip()
    if name in ("link", "post_url", "ref"):
        return rest.strip("\"'")
    if name == "include":
        return _attribute(rest, "content") or _attribute(rest, "text")
    return ""


def _attribute(text: str, name: str) -> str:
    for match in _PARAMETER.finditer(text):
        if match[1].lower() == name:
            return next((value for value in match.groups()[1:] if value is not None), "").strip()
    return ""


# HTML inside markdown


def _opening(tag: str) -> re.Pattern[str]:
    return re.compile(rf"<{tag}(?:\s[^<>]*)?>", re.I)


def _closing(tag: str) -> re.Pattern[str]:
    return re.compile(rf"</{tag}\s*>", re.I)


_BLOCKS = [(_opening(name), _closing(name)) for name in ("pre", "table", "dl")]
_UNSHOWN = [(_opening(name), _closing(name)) for name in ("script", "style", "svg")]
# Other names in angle brackets are placeholders in prose.
_KNOWN_TAGS = word_set(
    """
    a abbr address article aside b big blockquote body br button caption center cite code col
    colgroup dd del details dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header
    hr html i iframe img input ins kbd label li main mark nav nobr ol p picture q s samp script
    section small source span strike strong style sub summary sup svg table tbody td tfoot th
    thead time tr tt u ul var video wbr
    """
)
_TAG = re.compile(rf"</?({'|'.join(_KNOWN_TAGS)})(?:\s[^<>]*)?/?>", re.I)
_COMPONENT = re.compile(r"</?([A-Z][\w.]*)((?:[^<>{}]|\{(?:[^{}]|\{[^{}]*\})*\})*?)/?>|</?>")
_ANCHOR = re.compile(
    r"<a\s[^<>]*?href\s*=\s*[\"']?([^\"'\s<>]*)[\"']?[^<>]*>(.{0,500}?)</a\s*>", re.S | re.I
)
_SUMMARY = re.compile(r"<summary[^<>]*>(.{0,500}?)</summary\s*>", re.S | re.I)
_HTML_HEADING = re.compile(r"<h([1-6])(?:\s[^<>]*)?>(.{0,500}?)</h\1\s*>", re.S | re.I)
_PAIRED = re.compile(r"<(code|kbd|samp|tt|b|strong|em|i)(?:\s[^<>]*)?>([^<>\n]*)</\1\s*>", re.I)
_MARKERS = {"b": "**", "strong": "**", "em": "*", "i": "*"}


def _convert_html_blocks(text: str) -> str:
    for opening, closing in _BLOCKS:
        text = replace_spans(text, opening, closing, _html_block)
    return text


def _html_block(opening: re.Match[str], inner: str) -> str:
    from vademecum.ingest.read.html import fragment_to_markdown

    tag = opening[0][1:4].lower()
    name = {"pre": "pre", "tab": "table"}.get(tag, "dl")
    return f"\n\n{fragment_to_markdown(f'{opening[0]}{inner}</{name}>')}\n\n"


def _without_tags(text: str, mdx: bool) -> str:
    for opening, closing in _UNSHOWN:
        text = replace_spans(text, opening, closing, lambda _opening, _inner: "")
    text = _SUMMARY.sub(lambda m: f"\n**{' '.join(m[1].split())}**\n", text)
    text = _HTML_HEADING.sub(_heading_words, text)
    text = _ANCHOR.sub(_link_words, text)
    text = _PAIRED.sub(_marked_words, text)
    if mdx:
        text = _COMPONENT.sub(_component_words, text)
    return _TAG.sub(_tag_words, text)


def _heading_words(match: re.Match[str]) -> str:
    words = " ".join(_TAG.sub("", match[2]).split())
    return f"\n{'#' * int(match[1])} {words}\n" if words else ""


def _link_words(match: re.Match[str]) -> str:
    words = " ".join(_TAG.sub(_tag_words, match[2]).split())
    target = match[1]
    if not words or not target or target.startswith(("#", "javascript:")):
        return words
    return f"[{words}]({target})"


def _marked_words(match: re.Match[str]) -> str:
    words = match[2].strip()
    marker = _MARKERS.get(match[1].lower(), "`")
    return f"{marker}{words}{marker}" if words else ""


def _component_words(match: re.Match[str]) -> str:
    if match[0].startswith("</") or match[1] is None:
        return ""
    words = next((value for key in _READ if (value := _attribute(match[2], key))), "")
    return f"**{words}**" if words else ""


def _tag_words(match: re.Match[str]) -> str:
    name, tag = match[1].lower(), match[0]
    if name == "br":
        start = match.string.rfind("\n", 0, match.start()) + 1
        in_table = match.string[start : match.start()].lstrip().startswith("|")
        return " " if in_table else "\n"
    if name == "img":
        return _attribute(tag, "alt")
    if name in ("p", "div", "li", "section") and not tag.startswith("</"):
        return "- " if name == "li" else ""
    return ""
