"""Writes HTML elements as markdown, in one walk without recursion."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from lxml import etree

from vademecum.ingest.read.content import word_set
from vademecum.ingest.read.html_code import code_block, inline_code, is_api_list, signature, text_of
from vademecum.ingest.read.html_text import BREAK, bold, edges, folded, is_permalink, plain_text
from vademecum.ingest.read.lists import is_no_quote, item, items, marked
from vademecum.ingest.read.tables import Cell, table_to_markdown

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_DEEPEST = 30
"""Lists and quotes nested deeper than this are written flat: indenting costs by depth."""

_BLOCKS = word_set(
    """
    address article aside blockquote body caption center dd details dialog dir div dl dt
    fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main
    menu nav ol option p pre section summary table tbody td tfoot th thead tr ul
    """
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_MARKERS = {"strong": "**", "b": "**", "em": "*", "i": "*", "q": '"'}
# Elements that may carry a class which makes them noise; the rest are too many to ask.
_ASKED = word_set(
    """
    a article aside details div dl footer form h1 h2 h3 h4 h5 h6 header li main nav ol p section
    span table td tr ul
    """
)
_CALLOUTS = frozenset(
    ("note", "tip", "warning", "caution", "important", "admonition", "danger", "hint", "seealso")
)
_BOLD_LINES = frozenset(
    ("admonition-title", "title", "topic-title", "sidebar-title", "code-block-caption")
)
_FILE_NAME = re.compile(r"\S+\.(?:png|svg|gif|jpe?g|webp)\Z", re.I)
_UNSAFE = re.compile(r"[\s()<>\x00-\x1f]")
_STRUCTURAL_START = re.compile(r"(#{1,6}\s|```|~~~|={3,}\s*$|[-*+]\s|>\s|\|)")


class _Frame:
    """A container under construction: what it holds is indented when it closes."""

    __slots__ = ("blocks", "element", "header", "kind", "number", "pieces", "rows", "terms")

    def __init__(self, kind: str, element: "Element | None") -> None:
        self.kind, self.element = kind, element
        self.pieces: list[str] = []
        self.blocks: list[str] = []
        self.terms: list[str] = []
        self.rows: list[list[Cell]] = []
        self.number = 1


class HtmlWriter:
    """One use: `write` an element. `drops` says which elements to leave out."""

    def __init__(self, base: str | None, drops: "Callable[[Element], bool]") -> None:
        self.base, self.drops = base, drops
        self.frames = [_Frame("root", None)]
        self.pieces = self.frames[0].pieces
        self.marks: list[tuple[Element, int, int]] = []
        self.flushes = 0
        self.level = 1
        self.label = ""
        self.api_lists: list[bool] = []

    def write(self, root: "Element") -> str:
        """`root` as markdown."""
        walk = etree.iterwalk(root, events=("start", "end"))
        skipped: Element | None = None
        for event, element in walk:
            if event == "start":
                if self.start(element, element is root):
                    if element.text:
                        self.pieces.append(element.text)
                else:
                    walk.skip_subtree()
                    skipped = element
                continue
            if element is skipped:
                skipped = None
            else:
                self.end(element)
            if element.tail and element is not root:
                self.pieces.append(element.tail)
        while len(self.frames) > 1:
            self.pop()
        self.flush()
        return "\n\n".join(self.frames[0].blocks)

    def start(self, element: "Element", is_root: bool) -> bool:
        """False when the element is done with: dropped, or written whole."""
        tag = element.tag
        if tag in _ASKED and not is_root and self.drops(element):
            return False
        if tag in _CODE and next(element.iter("pre", "div", "p"), None) is None:
            self.add_code(inline_code(text_of(element)))
            return False
        if tag in _BLOCKS:
            self.flush()
        if tag == "p" and "admonition-title" in element.get("class", ""):
            self.label = plain_text(element).rstrip(":")
            return False
        if tag in _HEADINGS:
            self.heading(element, _HEADINGS[tag])
            return False
        if tag == "p" and "func_signature" in element.get("class", ""):
            self.block(inline_code(plain_text(element)))
            return False
        opener = _OPENERS.get(tag)
        return opener(self, element) if opener else True

    def end(self, element: "Element") -> None:
        tag = element.tag
        if tag in _BLOCKS:
            self.flush(as_bold=_is_bold_line(element))
        closer = _CLOSERS.get(tag)
        if closer:
            closer(self, element)

    # Blocks

    def flush(self, *, as_bold: bool = False) -> None:
        """The inline text so far becomes a paragraph."""
        if not self.pieces:
            return
        text = folded("".join(self.pieces))
        self.pieces.clear()
        self.flushes += 1
        if text:
            if _STRUCTURAL_START.match(text):
                text = "\\" + text
            self.block(bold(text) if as_bold else self.labelled(text))

    def labelled(self, text: str) -> str:
        """A paragraph after the word of its callout: `**Note:** …`."""
        label, self.label = self.label, ""
        return f"**{label}:** {text}" if label else text

    def block(self, text: str) -> None:
        self.lone_label()
        self.frames[-1].blocks.append(text)

    def lone_label(self) -> None:
        """The word of a callout that begins with something else than a paragraph."""
        if self.label:
            self.frames[-1].blocks.append(self.labelled("").rstrip())

    def push(self, kind: str, element: "Element") -> bool:
        self.lone_label()
        if len(self.frames) < _DEEPEST or kind in ("table", "cell"):
            self.frames.append(_Frame(kind, element))
            self.pieces = self.frames[-1].pieces
        return True

    def pop(self) -> _Frame:
        self.flush()
        frame = self.frames.pop()
        self.pieces = self.frames[-1].pieces
        return frame

    def closes(self, element: "Element") -> _Frame | None:
        """The frame that `element` opened, or None if it did not."""
        return self.pop() if self.frames[-1].element is element else None

    def heading(self, element: "Element", level: int) -> None:
        text = plain_text(element, self.drops)
        if not text:
            return
        parent = element.getparent()
        classes = parent.get("class", "").split() if parent is not None else []
        if len(self.frames) > 1 or not _CALLOUTS.isdisjoint(classes):
            if _CALLOUTS.isdisjoint(classes):
                self.block(f"**{text}**")
            else:
                self.label = text.rstrip(":")
            return
        self.level = level
        self.block("#" * level + " " + text)

    def open_list(self, element: "Element") -> bool:
        self.push("list", element)
        if element.tag == "ol" and self.frames[-1].element is element:
            start = element.get("start", "1")
            self.frames[-1].number = int(start) if start.isdecimal() and len(start) < 6 else 1
        return True

    def close_list(self, element: "Element") -> None:
        frame = self.closes(element)
        if frame and frame.blocks:
            nested = self.frames[-1].kind == "list"
            text = items(frame.blocks)
            self.block(marked(text, "  ") if nested else text)

    def close_item(self, element: "Element") -> None:
        frame = self.closes(element)
        if not frame or not frame.blocks:
            return
        parent = self.frames[-1]
        marker = "- "
        if parent.kind == "list" and parent.element is not None and parent.element.tag == "ol":
            marker = f"{parent.number}. "
            parent.number += 1
        self.block(item(frame.blocks, marker))

    def close_quote(self, element: "Element") -> None:
        frame = self.closes(element)
        if not frame or not frame.blocks:
            return
        text = "\n\n".join(frame.blocks)
        if is_no_quote(frame.blocks):
            self.block(text)
        else:
            self.block("\n".join(f"> {line}" if line else ">" for line in text.split("\n")))

    def pre(self, element: "Element") -> bool:
        code = code_block(element)
        if code:
            self.block(code)
        return False

    # Definitions: signatures of an API become headings, other terms list items

    def open_definitions(self, element: "Element") -> bool:
        is_api = is_api_list(element)
        self.api_lists.append(is_api)
        if not is_api:
            self.push("definitions", element)
        return True

    def close_definitions(self, element: "Element") -> None:
        if self.api_lists:
            self.api_lists.pop()
        frame = self.closes(element)
        if frame:
            frame.blocks.extend(f"- {bold(term)}" for term in frame.terms)
            if frame.blocks:
                self.block(items(frame.blocks))

    def open_term(self, element: "Element") -> bool:
        if not (self.api_lists and self.api_lists[-1]):
            return True
        self.signature(element)
        return False

    def close_term(self, element: "Element") -> None:
        frame = self.frames[-1]
        if frame.kind == "definitions" and frame.blocks and frame.blocks[-1][:2] != "- ":
            term = frame.blocks.pop()
            # Options set word by word in code read better as one piece of it.
            frame.terms.append(
                inline_code(plain_text(element, self.drops)) if term.count("`") > 2 else term
            )

    def signature(self, element: "Element") -> None:
        text = signature(plain_text(element, self.drops))
        if not text:
            return
        if len(self.frames) > 1:
            self.block(f"**{text}**")
            return
        before = element.getprevious()
        name, opened, _ = text.partition("(")
        above = self.frames[0].blocks[-1] if self.frames[0].blocks else ""
        named_above = above.startswith("#") and above.strip("# ()") == name.strip()
        if named_above or (before is not None and before.tag == "dt"):
            self.block(inline_code(text))
            return
        level = min(6, self.level + sum(self.api_lists))
        if len(text) > 100 and opened:
            self.block("#" * level + f" {name}(…)")
            self.block(inline_code(text))
        else:
            self.block("#" * level + " " + text)

    def open_description(self, element: "Element") -> bool:
        if self.frames[-1].kind == "definitions":
            self.push("description", element)
        return True

    def close_description(self, element: "Element") -> None:
        frame = self.closes(element)
        if not frame:
            return
        terms, self.frames[-1].terms = self.frames[-1].terms, []
        term = ", ".join(map(bold, terms))
        if term and frame.blocks and not frame.blocks[0].startswith(("- ", "```", "|", ">")):
            colon = "" if term.rstrip("*").endswith(":") else ":"
            frame.blocks[0] = f"{term}{colon} {frame.blocks[0]}"
        elif term:
            frame.blocks.insert(0, term)
        if frame.blocks:
            self.block(item(frame.blocks, "- "))

    # Tables

    def open_table(self, element: "Element") -> bool:
        nested = element.iter("table", *_HEADINGS)
        next(nested)  # itself
        layout = element.get("role") == "presentation" or next(nested, None) is not None
        if not layout and "admonition" not in _classes(element.getparent()):
            self.push("table", element)
        return True

    def open_row(self, element: "Element") -> bool:
        if self.frames[-1].kind == "table":
            self.frames[-1].rows.append([])
        return True

    def open_cell(self, element: "Element") -> bool:
        if self.frames[-1].kind == "table":
            self.push("cell", element)
        return True

    def close_cell(self, element: "Element") -> None:
        frame = self.closes(element)
        if not frame:
            return
        rows = self.frames[-1].rows or [[]]
        self.frames[-1].rows = rows
        rows[-1].append(
            Cell(
                blocks=frame.blocks,
                is_header=element.tag == "th",
                columns=_span(element.get("colspan")),
                rows=_span(element.get("rowspan")),
            )
        )

    def close_table(self, element: "Element") -> None:
        frame = self.closes(element)
        if frame:
            for block in (*frame.blocks, *table_to_markdown(frame.rows)):
                self.block(block)

    def caption(self, element: "Element") -> bool:
        text = plain_text(element, self.drops)
        if text:
            self.block(bold(text))
        return False

    # Inline

    def add_code(self, code: str) -> None:
        """Code right after code, or one space after it, is one expression."""
        pieces = self.pieces
        gap = ""
        if len(pieces) > 1 and pieces[-1].isspace() and pieces[-2][-1:] == "`":
            gap = " "
        last = pieces[-2] if gap else pieces[-1] if pieces else ""
        if last[-1:] != "`" or code[:2] == "``" or last[-2:] == "``":
            if code:
                pieces.append(code)
        elif self.marks and self.marks[-1][2] > len(pieces) - (2 if gap else 1):
            pieces.append(code)  # a link or emphasis begins between the two
        elif code:
            if gap:
                pieces.pop()
            pieces[-1] = last[:-1] + gap + code[1:]

    def mark(self, element: "Element") -> bool:
        self.marks.append((element, self.flushes, len(self.pieces)))
        return True

    def marked(self, element: "Element") -> str | None:
        """The text since `mark`, taken off; None if a block came between."""
        while self.marks:
            opened, flushes, index = self.marks.pop()
            if opened is element:
                if flushes != self.flushes:
                    return None
                text = "".join(self.pieces[index:])
                del self.pieces[index:]
                return text
        return None

    def open_link(self, element: "Element") -> bool:
        return False if is_permalink(element) else self.mark(element)

    def close_link(self, element: "Element") -> None:
        text = self.marked(element)
        if text is None:
            return
        label = folded(text).replace("\n", " ")
        target = self.target(element.get("href", ""))
        if not target or not label:
            self.pieces.append(text)
            return
        lead, trail = edges(text)
        link = target if label == target else f"[{label}]({target})"
        self.pieces.append(lead + link + trail)

    def target(self, href: str) -> str:
        """Where a link leads from this page, empty if it stays on it."""
        href = href.strip()
        if not href or href.startswith("#"):
            return ""
        try:
            href = urljoin(self.base, href) if self.base else href
        except ValueError:
            return ""
        if href.lower().startswith(("javascript:", "data:", "vbscript:", "about:", "blob:")):
            return ""
        return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", href)

    def close_emphasis(self, element: "Element") -> None:
        text = self.marked(element)
        if text is None:
            return
        marker = _MARKERS[element.tag]
        inner = text.strip()
        before = self.pieces[-1][-1:] if self.pieces else ""
        if not inner or inner[0] in "`*" or BREAK in inner or (before.isalnum() and marker != '"'):
            self.pieces.append(text)
            return
        lead, trail = edges(text)
        self.pieces.append(f"{lead}{marker}{inner}{marker}{trail}")

    def close_superscript(self, element: "Element") -> None:
        text = self.marked(element)
        if text is not None:
            before = self.pieces[-1][-1:] if self.pieces else ""
            power = before.isalnum() and re.fullmatch(r"[-+−]?\w{1,4}", text)
            self.pieces.append(f"^{text}" if power else text)

    def line_break(self, element: "Element") -> bool:
        self.pieces.append(BREAK)
        return True

    def image(self, element: "Element") -> bool:
        alt = element.get("alt", "").strip()
        if alt and not _FILE_NAME.match(alt):
            self.pieces.append(f" {alt} ")
        return True

    def formula(self, element: "Element") -> bool:
        tex = element.get("alttext") or next(
            (a.text for a in element.iter("annotation") if "tex" in a.get("encoding", "")), None
        )
        self.pieces.append(f"${tex.strip()}$" if tex else text_of(element))
        return False


_OPENERS: "dict[str, Callable[[HtmlWriter, Element], bool]]" = {
    "ul": HtmlWriter.open_list,
    "ol": HtmlWriter.open_list,
    "menu": HtmlWriter.open_list,
    "li": lambda writer, element: writer.push("item", element),
    "blockquote": lambda writer, element: writer.push("quote", element),
    "pre": HtmlWriter.pre,
    "dl": HtmlWriter.open_definitions,
    "dt": HtmlWriter.open_term,
    "dd": HtmlWriter.open_description,
    "table": HtmlWriter.open_table,
    "tr": HtmlWriter.open_row,
    "td": HtmlWriter.open_cell,
    "th": HtmlWriter.open_cell,
    "caption": HtmlWriter.caption,
    "a": HtmlWriter.open_link,
    **dict.fromkeys((*_MARKERS, "sup"), HtmlWriter.mark),
    "br": HtmlWriter.line_break,
    "img": HtmlWriter.image,
    "math": HtmlWriter.formula,
    "rt": lambda writer, element: False,
    "rp": lambda writer, element: False,
    "title": lambda writer, element: False,
}
_CLOSERS: "dict[str, Callable[[HtmlWriter, Element], None]]" = {
    "ul": HtmlWriter.close_list,
    "ol": HtmlWriter.close_list,
    "menu": HtmlWriter.close_list,
    "li": HtmlWriter.close_item,
    "blockquote": HtmlWriter.close_quote,
    "dl": HtmlWriter.close_definitions,
    "dt": HtmlWriter.close_term,
    "dd": HtmlWriter.close_description,
    "table": HtmlWriter.close_table,
    "td": HtmlWriter.close_cell,
    "th": HtmlWriter.close_cell,
    "a": HtmlWriter.close_link,
    **dict.fromkeys(_MARKERS, HtmlWriter.close_emphasis),
    "sup": HtmlWriter.close_superscript,
}


def _is_bold_line(element: "Element") -> bool:
    if element.tag in ("summary", "figcaption", "legend"):
        return True
    return element.tag in ("p", "div") and not _BOLD_LINES.isdisjoint(_classes(element))


def _classes(element: "Element | None") -> list[str]:
    return [] if element is None else element.get("class", "").split()


def _span(value: str | None) -> int:
    return min(int(value), 50) if value and value.isdecimal() and len(value) < 6 else 1
