"""HTML pages to markdown: parse, find the main content, name the page."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from lxml import etree

from vademecum.ingest.read.content import Content, clean_text, plain_title
from vademecum.ingest.read.html_code import text_of
from vademecum.ingest.read.html_noise import NEVER_SHOWN, is_noise, nonlink_length
from vademecum.ingest.read.html_text import plain_text
from vademecum.ingest.read.html_writer import HtmlWriter

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_LEAST_TEXT = 20
_LEAST_SHARE = 0.25
# libxml2 gives up at this nesting and forgets the rest of the page.
_TOO_DEEP = "Excessive depth"
_WRAPPERS = re.compile(
    r"</?(?:div|span|font|center|section|article|b|i|em|strong|u|small|big|blockquote|a|nobr"
    r"|[uod]l|li|d[td]|table|t[rdh]|tbody|form|tt|code|q|ins|del|s|abbr|label|sup|sub)\b[^<>]*>",
    re.I,
)
_ANY_TAG = re.compile(r"<[^<>]*>")


def read_html(text: str, *, base: str | None = None) -> Content:
    """The main content of a page as markdown. `base` is its URL, where it has one."""
    root = _parse(text)
    if root is None:
        return Content(title="", text="")
    base = _base(root, base)
    metadata = _metadata(root, base)
    site_name = str(metadata.pop("site_name", ""))
    etree.strip_elements(root, *NEVER_SHOWN, with_tail=False)
    body = root.find("body")
    body = root if body is None else body
    main = _main(body)
    heading = _heading(main)
    title = heading or _title(root, _heading(body, alone=True), site_name)
    markdown = _markdown(body, main, base)
    if title == _heading(body, alone=True) and markdown and not _has_heading(markdown, title):
        markdown = f"# {title}\n\n{markdown}"  # it stands above the main content
    return Content(title=clean_text(title), text=clean_text(markdown), metadata=metadata)


def _has_heading(markdown: str, title: str) -> bool:
    return not title or re.search(rf"^#+ {re.escape(title)}$", markdown, re.M) is not None


def fragment_to_markdown(html: str) -> str:
    """A piece of HTML inside another format, all of it."""
    root = _parse(f"<body>{html}</body>")
    return "" if root is None else clean_text(HtmlWriter(None, lambda _: False).write(root))


def _parse(text: str) -> "Element | None":
    root = None
    # Nesting beyond all reason means nothing: keep the words, then at worst only them.
    for unwanted in (None, _WRAPPERS, _ANY_TAG):
        text = unwanted.sub(" ", text) if unwanted else text
        parser = etree.HTMLParser(
            encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True, no_network=True
        )
        try:
            root = etree.fromstring(text.encode("utf-8", "replace"), parser)
        except etree.XMLSyntaxError:
            return None
        if not any(_TOO_DEEP in error.message for error in parser.error_log):
            break
    return root


def _markdown(body: "Element", main: "Element | None", base: str | None) -> str:
    """The main content; where that leaves nearly nothing, ever more of the page."""
    enough = max(1, min(_LEAST_TEXT, nonlink_length(body) // 2))
    markdown = ""
    for root, drops in (
        (main, lambda el: is_noise(el, inside_main=True)),
        (body, lambda el: is_noise(el, inside_main=False)),
        (body, lambda _: False),
    ):
        if root is not None:
            markdown = HtmlWriter(base, drops).write(root)
            if len(re.sub("^#.*$", "", markdown, flags=re.M).strip()) >= enough:
                break
    return markdown


# Marks of the main content, surest first.
_BY_ROLE = {"main": 0}
_BY_TAG = {"main": 1, "article": 3}
_BY_NAME = {
    "articlebody": 2,
    "markdown-body": 4,
    "theme-doc-markdown": 4,
    "mw-content-text": 4,
    "bodycontent": 4,
    "rst-content": 5,
    "md-content": 5,
    "main-content": 5,
    "maincontent": 5,
    "main_content": 5,
    "article-body": 6,
    "article-content": 6,
    "post-content": 6,
    "entry-content": 6,
    "page-content": 6,
    "td-content": 6,
    "devsite-article-body": 6,
    "docs-content": 6,
    "content": 7,
    "body": 8,
    "docs-body": 8,
    "main": 9,
    "yui-main": 9,
    "apicontent": 7,
}


def _main(body: "Element") -> "Element | None":
    found: dict[int, list[Element]] = {}
    for element in body.iter("main", "article", "div", "section", "td"):
        rank = _rank(element)
        if rank is not None:
            found.setdefault(rank, []).append(element)
    if not found:
        return None
    whole = nonlink_length(body)
    for rank in sorted(found):
        longest = max(found[rank][:20], key=nonlink_length)
        share = 0.6 if len(found[rank]) > 1 else _LEAST_SHARE
        if nonlink_length(longest) >= share * whole and nonlink_length(longest) > 0:
            return _narrowed(longest)
    return None


def _rank(element: "Element") -> int | None:
    ranks = [_BY_TAG.get(element.tag), _BY_ROLE.get(element.get("role", ""))]
    names = element.get("id", "") + " " + element.get("class", "")
    names += " " + element.get("itemprop", "")
    ranks += [_BY_NAME.get(name) for name in names.lower().split()]
    return min((rank for rank in ranks if rank is not None), default=None)


def _narrowed(main: "Element") -> "Element":
    """The article inside, where the main element also holds side columns."""
    articles = [element for element in main.iter("article") if element is not main]
    if len(articles) == 1 and nonlink_length(articles[0]) >= 0.6 * nonlink_length(main):
        return articles[0]
    return main


def _heading(root: "Element | None", *, alone: bool = False) -> str:
    """The first heading of the first level; if it is to stand `alone`, the only one."""
    if root is None:
        return ""
    texts = [text for h1 in root.iter("h1") if (text := plain_text(h1).rstrip("¶§ "))]
    return plain_title(texts[0]) if texts and (len(texts) == 1 or not alone) else ""


_SEPARATORS = re.compile(r"\s+[|—–·»«:•/\\-]+\s+|\s*[|»·]\s*|\s::\s")
_SITE_WORDS = re.compile(
    r"\b(documentation|docs?|manual|wiki|reference|guide|website|home ?page|blog|library)\b", re.I
)


def _title(root: "Element", heading: str, site_name: str) -> str:
    found = root.find(".//title")
    declared = plain_title(text_of(found)) if found is not None else ""
    if heading and (not declared or _same_start(heading, declared)):
        return heading
    title = _without_site(declared, site_name)
    if heading and (not title or (len(heading) > 3 and _words(heading) & _words(title))):
        return heading
    return title or heading


def _same_start(heading: str, declared: str) -> bool:
    return declared.casefold().startswith(heading.casefold()[:60])


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 3}


def _without_site(title: str, site_name: str) -> str:
    """`page | Site` and `page — Site documentation` lose their last part."""
    while True:
        last = max(_SEPARATORS.finditer(title), key=lambda match: match.start(), default=None)
        if last is None or not title[: last.start()].strip():
            return title
        tail = title[last.end() :].strip()
        is_site = (
            "|" in last[0]
            or tail.casefold() == site_name.casefold()
            or (len(tail) <= 60 and bool(_SITE_WORDS.search(tail)))
        )
        if not is_site:
            return title
        title = title[: last.start()].strip()


_META = {
    "description": "description",
    "og:description": "description",
    "dc.description": "description",
    "keywords": "keywords",
    "author": "author",
    "date": "date",
    "article:published_time": "date",
    "article:modified_time": "modified",
    "og:site_name": "site_name",
}


def _metadata(root: "Element", base: str | None) -> dict[str, object]:
    metadata: dict[str, object] = {}
    for key, value in _declared(root):
        value = " ".join(clean_text(value).split())
        if value and key not in metadata:
            metadata[key] = value[:2000]
    if "canonical" in metadata:
        canonical = _joined(base, str(metadata.pop("canonical")))
        if canonical.startswith(("http://", "https://", "/")):
            metadata["canonical"] = canonical
    return metadata


def _joined(base: str | None, link: str) -> str:
    try:
        return urljoin(base, link) if base else link
    except ValueError:
        return ""


def _declared(root: "Element") -> Iterator[tuple[str, str]]:
    yield "lang", root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""
    for element in root.iter("meta", "link"):
        if element.tag == "link":
            if "canonical" in element.get("rel", "").lower().split():
                yield "canonical", element.get("href", "")
            continue
        name = (element.get("name") or element.get("property") or "").lower()
        if name in _META:
            yield _META[name], element.get("content", "")


def _base(root: "Element", url: str | None) -> str | None:
    """What relative links are relative to, None for a file whose place on the web is unknown."""
    found = root.find(".//base")
    href = (found.get("href") or "").strip() if found is not None else ""
    try:
        base = urljoin(url or "", href)
    except ValueError:
        return url
    return base if base.startswith(("http://", "https://")) else url
