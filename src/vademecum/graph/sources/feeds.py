"""What a site lists: RSS 2.0 and Atom feeds, and sitemaps. No entity is resolved."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit

import lxml.etree
import lxml.html

from vademecum.errors import UnreadableSource
from vademecum.ingest.read import Wanted

XML = Wanted(
    accept="application/atom+xml, application/rss+xml, application/xml;q=0.9, text/xml;q=0.8",
    types=frozenset(
        {"application/atom+xml", "application/rss+xml", "application/xml", "text/xml", "text/plain"}
    ),
)
_ATOM = "{http://www.w3.org/2005/Atom}"
_SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One page that a site lists."""

    url: str
    title: str
    summary: str
    published: datetime | None
    """Or last changed, where only that is said."""


def read_feed(data: bytes, url: str) -> list[Listed]:
    """The entries of RSS or Atom, in their order. Raises UnreadableSource."""
    root = _parsed(data, url)
    if root.tag == f"{_ATOM}feed":
        return [_atom(entry, url) for entry in root.iterchildren(f"{_ATOM}entry")]
    if root.tag == "rss":
        return [_rss(item, url) for item in root.iterfind("channel/item")]
    raise UnreadableSource(url, "it is neither RSS nor Atom")


def read_sitemap(data: bytes, url: str) -> tuple[list[Listed], list[str]]:
    """The pages of a sitemap, and the sitemaps that it leads to. Raises UnreadableSource."""
    root = _parsed(data, url)
    if root.tag == f"{_SITEMAP}sitemapindex":
        found = (_child(one, f"{_SITEMAP}loc") for one in root.iterchildren(f"{_SITEMAP}sitemap"))
        return [], [one for one in found if one]
    if root.tag != f"{_SITEMAP}urlset":
        raise UnreadableSource(url, "it is no sitemap")
    pages = []
    for one in root.iterchildren(f"{_SITEMAP}url"):
        place = _child(one, f"{_SITEMAP}loc")
        if place:
            words = re.sub(r"[-_/]+|\.html?$", " ", urlsplit(place).path).strip()
            changed = _date(_child(one, f"{_SITEMAP}lastmod"))
            pages.append(Listed(url=place, title=words, summary="", published=changed))
    return pages, []


def _parsed(data: bytes, url: str) -> lxml.etree._Element:
    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        return lxml.etree.fromstring(data, parser)
    except (lxml.etree.XMLSyntaxError, ValueError) as error:
        raise UnreadableSource(url, "it is no XML that can be read") from error


def _atom(entry: lxml.etree._Element, url: str) -> Listed:
    links = list(entry.iterchildren(f"{_ATOM}link"))
    own = [one for one in links if one.get("rel", "alternate") == "alternate"] or links
    dates = [_date(_child(entry, f"{_ATOM}{name}")) for name in ("updated", "published")]
    return Listed(
        url=urljoin(url, str(own[0].get("href") or "")) if own else "",
        title=_plain(_child(entry, f"{_ATOM}title")),
        summary=_plain(_child(entry, f"{_ATOM}summary") or _child(entry, f"{_ATOM}content")),
        published=next((date for date in dates if date), None),
    )


def _rss(item: lxml.etree._Element, url: str) -> Listed:
    return Listed(
        url=urljoin(url, _child(item, "link")),
        title=_plain(_child(item, "title")),
        summary=_plain(_child(item, "description")),
        published=_date(_child(item, "pubDate")),
    )


def _child(element: lxml.etree._Element, name: str) -> str:
    found = element.find(name)
    return "" if found is None else "".join(str(text) for text in found.itertext()).strip()


def _plain(text: str) -> str:
    if "<" in text:
        try:
            text = "".join(map(str, lxml.html.fragment_fromstring(text, "div").itertext()))
        except (lxml.etree.ParserError, ValueError):
            return ""
    return " ".join(text.split())[:1000]


def _date(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
        except (ValueError, TypeError):
            continue
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None
