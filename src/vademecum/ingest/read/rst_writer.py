"""Writes a doctree of docutils as markdown."""

import re
import textwrap
from collections.abc import Callable
from typing import Any

from docutils import nodes

from vademecum.ingest.read.content import plain_title
from vademecum.ingest.read.html_code import fence, inline_code
from vademecum.ingest.read.lists import is_no_quote, item, items
from vademecum.ingest.read.tables import Cell, table_to_markdown

Blocks = list[str]
_STANDS_ALONE = re.compile(r"[-*] |\d+\. |```|\||>|#")
_DEEPEST = 100
_REFUSED = re.compile(r"\.\.\s+([\w:-]+)::[^\n]*\n(?:[ \t]+:[\w-]+:[^\n]*\n)*(.*)", re.S)


class RstWriter:
    """One use: `write` a document, then read its `title` and `fields`."""

    def __init__(self) -> None:
        self.title = ""
        self.fields: dict[str, object] = {}
        self.depth = 0

    def write(self, document: nodes.document) -> str:
        return "\n\n".join(self.blocks(document, 0))

    def blocks(self, parent: nodes.Element, level: int) -> Blocks:
        self.depth += 1
        try:
            if self.depth > _DEEPEST:
                return [" ".join(parent.astext().split())]
            found: Blocks = []
            for child in parent.children:
                found += self.block(child, level)
            return [block for block in found if block.strip()]
        finally:
            self.depth -= 1

    def block(self, node: nodes.Node, level: int) -> Blocks:
        for kind in type(node).__mro__:
            writer = _BLOCKS.get(kind.__name__)
            if writer is not None:
                return writer(self, node, level)
        if isinstance(node, (nodes.Inline, nodes.Text)):
            return [_tidy(self.inline(node))]
        return self.blocks(node, level) if isinstance(node, nodes.Element) else []

    # Blocks

    def heading(self, node: nodes.Element, level: int) -> Blocks:
        text = plain_title(" ".join(node.astext().split()))
        if isinstance(node.parent, (nodes.topic, nodes.sidebar, nodes.Admonition, nodes.table)):
            return [f"**{text}**"]
        self.title = self.title or text
        return [f"{'#' * max(1, min(6, level))} {text}"]

    def section(self, node: nodes.Element, level: int) -> Blocks:
        return self.blocks(node, level + 1)

    def paragraph(self, node: nodes.Element, level: int) -> Blocks:
        return [_tidy(self.inlines(node))]

    def line_block(self, node: nodes.Element, level: int) -> Blocks:
        return ["\n".join(_tidy(self.inlines(line)) for line in node.findall(nodes.line))]

    def code(self, node: nodes.Element, level: int) -> Blocks:
        declared: list[str] = node.get("classes", [])
        classes = [name for name in declared if name != "code"]
        language = node.get("language") or (classes[0] if classes else "")
        language = language if re.fullmatch(r"[\w+#.-]{1,30}", language) else ""
        text = node.astext().strip("\n").rstrip()
        return [fence(text, "" if language in ("none", "text", "default") else language)]

    def doctest(self, node: nodes.Element, level: int) -> Blocks:
        return [fence(node.astext().rstrip(), "python")]

    def math(self, node: nodes.Element, level: int) -> Blocks:
        return [fence(node.astext().rstrip(), "math")]

    def bullets(self, node: nodes.Element, level: int) -> Blocks:
        return self.items(node, level, ["- "] * len(node.children))

    def numbers(self, node: nodes.Element, level: int) -> Blocks:
        start = int(node.get("start", 1))
        return self.items(node, level, [f"{start + i}. " for i in range(len(node.children))])

    def items(self, node: nodes.Element, level: int, markers: list[str]) -> Blocks:
        listed = []
        for child, marker in zip(node.children, markers, strict=True):
            assert isinstance(child, nodes.Element)
            listed.append(item(self.blocks(child, level), marker))
        return [items(listed)]

    def definitions(self, node: nodes.Element, level: int) -> Blocks:
        listed = []
        for child in node.findall(nodes.definition_list_item):
            if child.parent is node:
                listed.append(self.definition(child, level))
        return [items(listed)]

    def definition(self, node: nodes.Element, level: int) -> str:
        terms: list[str] = []
        blocks: Blocks = []
        for child in node.children:
            assert isinstance(child, nodes.Element)
            if isinstance(child, (nodes.term, nodes.field_name, nodes.option_group)):
                is_option = isinstance(child, nodes.option_group)
                words = child.astext() if is_option else self.inlines(child)
                terms.append(_bold(_tidy(words)))
            elif not isinstance(child, nodes.classifier):
                blocks += self.blocks(child, level)
        return item(_with_term(", ".join(terms), blocks), "- ")

    def field_list(self, node: nodes.Element, level: int) -> Blocks:
        above = node.parent
        opens_page = isinstance(above, nodes.section) and above.index(node) == 1 and level == 1
        if isinstance(above, nodes.document) or isinstance(node, nodes.docinfo) or opens_page:
            for child in node.children:
                self.declare(child)
            return []
        return ["\n".join(self.definition(c, level) for c in _elements(node))]

    def declare(self, node: nodes.Node) -> None:
        if isinstance(node, nodes.field) and len(node.children) == 2:
            self.fields[node.children[0].astext()[:100]] = node.children[1].astext()[:2000]
        elif isinstance(node, nodes.Element):
            self.fields[type(node).__name__] = node.astext()[:2000]

    def options(self, node: nodes.Element, level: int) -> Blocks:
        return ["\n".join(self.definition(c, level) for c in _elements(node))]

    def quote(self, node: nodes.Element, level: int) -> Blocks:
        blocks = self.blocks(node, level)
        if is_no_quote(blocks):
            return blocks
        return ["\n".join(f"> {line}".rstrip() for line in "\n\n".join(blocks).split("\n"))]

    def admonition(self, node: nodes.Element, level: int) -> Blocks:
        blocks = self.blocks(node, level)
        name = type(node).__name__
        if name == "admonition" or not blocks:
            return blocks
        if _STANDS_ALONE.match(blocks[0]):
            return [f"**{name.capitalize()}:**", *blocks]
        return [f"**{name.capitalize()}:** {blocks[0]}", *blocks[1:]]

    def topic(self, node: nodes.Element, level: int) -> Blocks:
        return [] if "contents" in node.get("classes", []) else self.blocks(node, level)

    def container(self, node: nodes.Element, level: int) -> Blocks:
        if "vade-api" not in node.get("classes", []):
            return self.blocks(node, level)
        found: Blocks = []
        nested = level + 1
        for child in node.children:
            if "vade-signature" in getattr(child, "attributes", {}).get("classes", []):
                text = child.astext()
                found.append(f"`{text}`" if found else f"{'#' * min(6, nested)} {text}")
            else:
                found += self.block(child, nested)
        return found

    def table(self, node: nodes.Element, level: int) -> Blocks:
        rows = []
        for row in node.findall(nodes.row):
            header = isinstance(row.parent, nodes.thead)
            rows.append([self.cell(entry, level, header) for entry in row.findall(nodes.entry)])
        title = [
            block for child in node.findall(nodes.title) for block in self.heading(child, level)
        ]
        return title[:1] + table_to_markdown(rows)

    def cell(self, node: nodes.Element, level: int, header: bool) -> Cell:
        return Cell(
            blocks=self.blocks(node, level),
            is_header=header,
            columns=min(50, int(node.get("morecols", 0)) + 1),
            rows=int(node.get("morerows", 0)) + 1,
        )

    def image(self, node: nodes.Element, level: int) -> Blocks:
        return [str(node.get("alt", ""))]

    def footnote(self, node: nodes.Element, level: int) -> Blocks:
        label = next((child.astext() for child in node.findall(nodes.label)), "")
        rest = [
            b for c in node.children if not isinstance(c, nodes.label) for b in self.block(c, 1)
        ]
        return [f"[{label}] " + "\n\n".join(rest)]

    def message(self, node: nodes.Element, level: int) -> Blocks:
        """A directive that docutils refused: its content is still text."""
        for refused in node.findall(nodes.literal_block):
            match = _REFUSED.match(refused.astext())
            if match and match[1] not in ("raw", "include", "literalinclude"):
                paragraphs = re.split(r"\n\s*\n", textwrap.dedent(match[2]))
                return [stripped for text in paragraphs if (stripped := text.strip())]
        return []

    def nothing(self, node: nodes.Element, level: int) -> Blocks:
        return []

    # Inline

    def inlines(self, node: nodes.Element) -> str:
        return "".join(map(self.inline, node.children))

    def inline(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.Text):
            return node.astext()
        if isinstance(node, nodes.literal):
            return inline_code(node.astext())
        if isinstance(node, nodes.math):
            return f"${node.astext()}$"
        if isinstance(node, nodes.problematic):
            return node.astext()
        if isinstance(node, nodes.image):
            return str(node.get("alt", ""))
        if not isinstance(node, nodes.Element) or isinstance(node, nodes.Invisible):
            return ""
        text = self.inlines(node)
        if isinstance(node, nodes.title_reference) and re.fullmatch(r"\S*[\w)][._(]\S*", text):
            return inline_code(text)  # projects choose a role for code as the default
        if isinstance(node, (nodes.strong, nodes.emphasis)):
            marker = "**" if isinstance(node, nodes.strong) else "*"
            return f"{marker}{text}{marker}" if text.strip() and "`" not in text else text
        if isinstance(node, nodes.reference):
            target = str(node.get("refuri", ""))
            return f"[{text}]({target})" if target and target != text else text
        if isinstance(node, (nodes.footnote_reference, nodes.citation_reference)):
            return f"[{text}]"
        return text


_BLOCKS: dict[str, Callable[[RstWriter, Any, int], Blocks]] = {
    "title": RstWriter.heading,
    "subtitle": RstWriter.paragraph,
    "rubric": lambda writer, node, level: [_bold(_tidy(writer.inlines(node)))],
    "section": RstWriter.section,
    "paragraph": RstWriter.paragraph,
    "caption": RstWriter.paragraph,
    "attribution": RstWriter.paragraph,
    "line_block": RstWriter.line_block,
    "literal_block": RstWriter.code,
    "doctest_block": RstWriter.doctest,
    "math_block": RstWriter.math,
    "bullet_list": RstWriter.bullets,
    "enumerated_list": RstWriter.numbers,
    "definition_list": RstWriter.definitions,
    "field_list": RstWriter.field_list,
    "docinfo": RstWriter.field_list,
    "option_list": RstWriter.options,
    "block_quote": RstWriter.quote,
    "Admonition": RstWriter.admonition,
    "topic": RstWriter.topic,
    "container": RstWriter.container,
    "table": RstWriter.table,
    "image": RstWriter.image,
    "footnote": RstWriter.footnote,
    "citation": RstWriter.footnote,
    "system_message": RstWriter.message,
    "comment": RstWriter.nothing,
    "substitution_definition": RstWriter.nothing,
    "target": RstWriter.nothing,
    "pending": RstWriter.nothing,
    "raw": RstWriter.nothing,
    "transition": RstWriter.nothing,
    "meta": RstWriter.nothing,
    "decoration": RstWriter.nothing,
}


def _elements(node: nodes.Element) -> list[nodes.Element]:
    return [child for child in node.children if isinstance(child, nodes.Element)]


def _tidy(text: str) -> str:
    return " ".join(text.split())


def _bold(text: str) -> str:
    return text if not text or "`" in text or "**" in text else f"**{text}**"


def _with_term(term: str, blocks: Blocks) -> Blocks:
    """The term before what explains it, on one line where that is a paragraph."""
    if not term:
        return blocks
    if blocks and not _STANDS_ALONE.match(blocks[0]):
        return [f"{term}: {blocks[0]}", *blocks[1:]]
    return [term, *blocks]
