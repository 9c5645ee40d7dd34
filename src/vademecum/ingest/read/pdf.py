"""PDF: the text of each page under a heading with its number, so that a citation finds it."""

import re
import threading
from collections import Counter
from collections.abc import Sequence

from vademecum.errors import UnreadableSource
from vademecum.ingest.read.content import Content, clean_text, plain_title

_LOCK = threading.Lock()  # PDFium is not safe to call from two threads
_HYPHENATED = re.compile(r"(?<=[^\W\d_]{2})[-\u2010\ufffe\x02]\n(?=[^\W\d_A-Z]{2})")
_SENTENCE_END = re.compile(r"[.!?:;…][\"'”’)\]]*$")
_ITEM = re.compile(r"(?:[•◦▪–*-]|\(?\d{1,3}[.)]|\d+(?:\.\d+)+)\s")
_LEADER = re.compile(r"\s?(?:\. ?){5,}\s?")  # between a heading and its page number
_EDGE_LINES = 2
_REPEATED_SHARE = 0.6
_FEWEST_PAGES = 3


def read_pdf(data: bytes, *, name: str) -> Content:
    """Raises UnreadableSource for a PDF that is locked, broken or only pictures."""
    with _LOCK:
        declared, metadata, pages = _extract(data, name)
    lines = _without_running_lines([clean_text(page).split("\n") for page in pages])
    texts = [_page_text(page) for page in lines]
    if not any(texts):
        raise UnreadableSource(name, "it holds pictures only, no text (it needs OCR)")
    sections = [f"## Page {i}\n\n{text}" for i, text in enumerate(texts, 1) if text]
    return Content(
        title=_title(declared, next(text for text in texts if text)),
        text="\n\n".join(sections),
        metadata={**metadata, "pages": len(pages)},
    )


def _extract(data: bytes, name: str) -> tuple[str, dict[str, object], list[str]]:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower() or "security" in str(error).lower()
        reason = "it is locked by a password" if locked else "it is not a readable PDF"
        raise UnreadableSource(name, reason) from error
    try:
        info = document.get_metadata_dict(skip_empty=True)
        pages = [_page(document, i) for i in range(len(document))]
    except pypdfium2.PdfiumError as error:
        raise UnreadableSource(name, f"it is a damaged PDF ({error})") from error
    finally:
        document.close()
    metadata: dict[str, object] = {
        key.lower(): clean_text(str(info[key]))[:2000]
        for key in ("Author", "Subject", "Keywords", "CreationDate")
        if info.get(key)
    }
    return clean_text(str(info.get("Title", ""))), metadata, pages


def _page(document: "object", index: int) -> str:
    page = document[index]  # type: ignore[index]
    text_page = page.get_textpage()
    try:
        return str(text_page.get_text_bounded())
    finally:
        text_page.close()
        page.close()


def _without_running_lines(pages: Sequence[list[str]]) -> list[list[str]]:
    """Pages without the headers and footers that most of them repeat."""
    stripped = [[line.strip() for line in lines if line.strip()] for lines in pages]
    full = [lines for lines in stripped if lines]
    if len(full) < _FEWEST_PAGES:
        return stripped
    seen = Counter(shape for lines in full for shape in set(map(_shape, _edges(lines))))
    everywhere = {s for s, count in seen.items() if count >= max(3, _REPEATED_SHARE * len(full))}
    shapes = [set(map(_shape, _edges(lines))) for lines in stripped]
    result = []
    for i, lines in enumerate(stripped):
        # A chapter's name runs over its own pages only, often on every second one.
        near = set().union(*shapes[max(0, i - 2) : i], *shapes[i + 1 : i + 3])
        here = {s for s in shapes[i] & near if seen[s] >= 3 and re.search(r"[^\W\d_]{3}", s)}
        result.append(_strip_edges(lines, everywhere | here))
    return result if any(result) else stripped  # forms are alike all over


def _edges(lines: list[str]) -> list[str]:
    return lines[:_EDGE_LINES] + lines[-_EDGE_LINES:]


def _shape(line: str) -> str:
    """A line with its numbers made equal: page numbers change, the line is the same."""
    return re.sub(r"\b(?:\d+|[ivxlc]+)\b", "#", line.lower())


def _strip_edges(lines: list[str], running: set[str]) -> list[str]:
    start, end = 0, len(lines)
    while start < min(end, _EDGE_LINES) and _shape(lines[start]) in running:
        start += 1
    while end > max(start, len(lines) - _EDGE_LINES) and _shape(lines[end - 1]) in running:
        end -= 1
    return lines[start:end]


def _page_text(lines: list[str]) -> str:
    """Lines as they are, words joined again, a blank line where a paragraph ends."""
    if not lines:
        return ""
    typical = sorted(map(len, lines))[int(0.8 * (len(lines) - 1))]
    out: list[str] = []
    for i, line in enumerate(lines):
        out.append(_LEADER.sub(" … ", re.sub(r"[ \t]+", " ", _plain_line(line))))
        following = lines[i + 1] if i + 1 < len(lines) else ""
        ends = bool(_SENTENCE_END.search(line)) and len(line) < 0.85 * typical
        if following and (ends or (_ITEM.match(following) and not _ITEM.match(line))):
            out.append("")
    return _HYPHENATED.sub("", "\n".join(out))


def _plain_line(line: str) -> str:
    """A line that begins like a heading or fence of markdown is not one."""
    return "\\" + line if re.match(r"#{1,6}\s|```|~~~", line) else line


def _title(declared: str, first_page: str) -> str:
    declared = plain_title(declared)
    # Converters put the name of their input here.
    if len(declared) > 3 and not re.search(
        r"\.(?:docx?|tex|dvi|indd|pptx?|xml|html?|fm)$", declared
    ):
        return declared
    first = next((line for line in first_page.split("\n") if re.search(r"\w{2}", line)), "")
    return plain_title(first) if len(first) <= 120 else ""
