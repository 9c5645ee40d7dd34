"""MDN Web Docs: its index and search for names, and each page as JSON.

name --search-index.json, else api/v1/search--> page --index.json, else the page itself-->
The JSON is what MDN builds its own pages from (the types are published as `@mdn/rari`).
"""

import asyncio
import html
import re
from collections.abc import Iterable, Mapping
from typing import Any

from vademecum.errors import UnreadableSource
from vademecum.graph import deprecation
from vademecum.graph.nodes import APIReference, ExternalDoc
from vademecum.graph.sources.adapter import (
    CODE_BLOCK,
    Found,
    FoundDocument,
    Subject,
    SubjectKind,
    address,
    found_document,
    fresh_for,
    read_fragment,
)
from vademecum.graph.sources.places import Places
from vademecum.graph.sources.replies import JSON, Replies, Reply, Route
from vademecum.types import Document

SOURCE = "mdn"
LOCALE = "en-US"
MOST = 3
"""Pages of a topic."""
_WORDS = re.compile(r"\s+(?:method|property|event|constructor|interface|function|object)s?$", re.I)


class MDN:
    name = "mdn"
    makes = (SOURCE,)
    kinds: frozenset[SubjectKind] = frozenset({"api", "topic"})
    filter = "pages in English that the index or the search names"

    def __init__(self, places: Places) -> None:
        self._base = places.mdn

    def takes(self, subject: Subject) -> bool:
        web = ("javascript", "typescript", "html", "css", "http", "svg", "web")
        return subject.kind in self.kinds and subject.language in web

    async def fetch(self, subject: Subject, replies: Replies) -> Found:
        found = Found()
        pages = await self._named(subject, replies)
        if not pages:
            raise UnreadableSource(self._base, f"it has no page of {subject.name}")
        for path in pages[: 1 if subject.kind == "api" else MOST]:
            found.documents.append(await self._page(path, replies))
        return found

    async def again(self, document: ExternalDoc, replies: Replies) -> FoundDocument:
        path = document.source_url.removeprefix(self._base)
        return await self._page(path, replies)

    async def _named(self, subject: Subject, replies: Replies) -> list[str]:
        """Paths of the pages of a subject, the best first."""
        if subject.kind == "api":
            try:
                index = await replies.get(
                    address(self._base, f"{LOCALE}/search-index.json"),
                    fresh_for=fresh_for(SOURCE),
                    wanted=JSON,
                )
                if path := _titled(subject.name, index.json()):
                    return [path]
            except UnreadableSource:
                pass  # the search knows it as well
        reply = await replies.get(
            address(self._base, "api/v1/search", locale=LOCALE, q=subject.name, size=10),
            fresh_for=fresh_for(SOURCE),
            wanted=JSON,
        )
        documents = reply.json().get("documents") or []
        listed = [{"title": one.get("title"), "url": one.get("mdn_url")} for one in documents]
        if subject.kind == "topic":
            return [str(one["url"]) for one in listed if one["url"]]
        path = _titled(subject.name, listed)
        return [path] if path else []

    async def _page(self, path: str, replies: Replies) -> FoundDocument:
        url = f"{self._base}{path}"
        reply = await replies.first(
            Route(url=f"{url}/index.json", wanted=JSON), Route(url=url), fresh_for=fresh_for(SOURCE)
        )
        if reply.route.wanted is JSON:
            return await asyncio.to_thread(_of_json, reply, url)
        document = await replies.document(reply)
        return _found(reply, document, url, document.title, "", "web_scrape", [])


def _of_json(reply: Reply, url: str) -> FoundDocument:
    doc: Mapping[str, Any] = reply.json().get("doc") or {}
    title = html.unescape(str(doc.get("title") or ""))
    parts = [f"<h1>{html.escape(title)}</h1>"]
    for section in doc.get("body") or ():
        value = section.get("value") or {}
        if section.get("type") != "prose":
            continue
        if value.get("title"):
            level = "h3" if value.get("isH3") else "h2"
            parts.append(f"<{level}>{value['title']}</{level}>")
        parts.append(str(value.get("content") or ""))
    if len(parts) == 1:
        raise UnreadableSource(reply.url, "it has no text")
    document = read_fragment("".join(parts), url)
    summary = " ".join(html.unescape(str(doc.get("summary") or "")).split())
    return _found(reply, document, url, title, summary, "api", _apis(title, summary, document))


def _found(
    reply: Reply,
    document: Document,
    url: str,
    title: str,
    summary: str,
    method: Any,
    apis: list[APIReference],
) -> FoundDocument:
    return found_document(
        reply,
        document,
        source=SOURCE,
        url=url,
        title=title,
        summary=summary[:500],
        language="javascript",
        category="api" if apis else "reference",
        method=method,
        nodes=apis,
    )


def _apis(title: str, summary: str, document: Document) -> list[APIReference]:
    """The reference of a page that is about one API: it has a syntax."""
    name = plain_name(title)
    syntax = _section(document.text, "Syntax")
    code = CODE_BLOCK.search(syntax)
    if code is None or not re.fullmatch(r"[\w$.]+", name):
        return []
    namespace, _, last = name.rpartition(".")
    notice = re.search(r"^.*\bDeprecated:?\b.*$", document.text, re.MULTILINE)
    example = CODE_BLOCK.search(_section(document.text, "Examples") or document.text)
    return [
        APIReference(
            namespace=namespace,
            function_name=last,
            language="javascript",
            signature=code["code"].strip(),
            description=summary,
            example_code=example["code"].strip()
            if example and example["code"] != code["code"]
            else "",
            return_type=_first_line(_section(document.text, "Return value")),
            deprecation=deprecation.sentence(re.sub(r"[*>]", "", notice[0])) if notice else "",
        )
    ]


def plain_name(title: str) -> str:
    """`Array.prototype.map()`, `Window: fetch() method` as one writes them."""
    owner, colon, rest = title.partition(": ")
    if colon:
        title = f"{owner}.{_WORDS.sub('', rest).removesuffix(' static')}"
    return _WORDS.sub("", title.replace("()", "")).strip()


def _titled(name: str, listed: Iterable[Mapping[str, Any]]) -> str | None:
    """The page whose title is the name, with or without `prototype`; else the one that ends so."""
    wanted = _bare(name)
    ending = None
    for one in listed:
        known = _bare(plain_name(str(one.get("title") or "")))
        if known == wanted:
            return str(one["url"])
        if ending is None and known.endswith(f".{wanted}"):
            ending = str(one["url"])
    return ending


def _bare(name: str) -> str:
    return name.strip().removesuffix("()").replace(".prototype.", ".").casefold()


def _section(text: str, heading: str) -> str:
    match = re.search(rf"^#{{2,3}} {heading}[ ]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:200] if lines else ""
