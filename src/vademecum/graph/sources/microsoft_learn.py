"""Microsoft Learn by its search, which gives the pages; these answer as Markdown where asked to."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from vademecum.errors import UnreadableSource
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
)
from vademecum.graph.sources.places import Places
from vademecum.graph.sources.replies import JSON, Replies, Reply
from vademecum.types import Document

SOURCE = "microsoft_learn"
MOST = 3
_LANGUAGES = ("c#", "csharp", "f#", "fsharp", ".net", "dotnet", "powershell", "typescript", "azure",
              "vb", "kql", "bicep", "t-sql")  # fmt: skip
_TOPS = ("azure", "msal", "msgraph", "microsoft")
_NO_DOCUMENTATION = ("/answers/", "/training/", "/shows/", "/credentials/", "/assessments/")


class MicrosoftLearn:
    name = "microsoft-learn"
    makes = (SOURCE,)
    kinds: frozenset[SubjectKind] = frozenset({"api", "topic"})
    filter = "documentation in English; no questions, courses or videos"

    def __init__(self, places: Places) -> None:
        self._base = places.microsoft_learn

    def takes(self, subject: Subject) -> bool:
        top = re.split(r"[.\s-]", subject.package or subject.name)[0].lower()
        return subject.kind in self.kinds and (subject.language in _LANGUAGES or top in _TOPS)

    async def fetch(self, subject: Subject, replies: Replies) -> Found:
        url = address(self._base, "api/search", locale="en-us", search=subject.name, _top=10)
        search = await replies.get(url, fresh_for=fresh_for(SOURCE), wanted=JSON)
        results = [one for one in search.json().get("results") or () if self._is_ours(one)]
        if subject.kind == "api":
            last = subject.name.rpartition(".")[2].casefold()
            results = [one for one in results if last in str(one.get("title")).casefold()]
        if not results:
            raise UnreadableSource(url, f"its search finds no documentation of {subject.name}")
        found = Found()
        for one in results[: 1 if subject.kind == "api" else MOST]:
            found.documents.append(
                await self._page(str(one["url"]), subject.language, replies, subject)
            )
        return found

    async def again(self, document: ExternalDoc, replies: Replies) -> FoundDocument:
        return await self._page(document.source_url, document.language, replies, None)

    def _is_ours(self, result: Mapping[str, Any]) -> bool:
        """A page of documentation on the site itself: the search also leads elsewhere."""
        url = str(result.get("url") or "")
        return urlsplit(url).netloc == urlsplit(self._base).netloc and not any(
            part in url for part in _NO_DOCUMENTATION
        )

    async def _page(
        self, url: str, language: str, replies: Replies, subject: Subject | None
    ) -> FoundDocument:
        reply = await replies.get(url, fresh_for=fresh_for(SOURCE))
        document = await replies.document(reply)
        return _found(reply, document, url, language, subject)


def _found(
    reply: Reply, document: Document, url: str, language: str, subject: Subject | None
) -> FoundDocument:
    api = _api(document, subject) if subject is not None and subject.kind == "api" else None
    return found_document(
        reply,
        document,
        source=SOURCE,
        url=url,
        language=language,
        category="api" if api is not None else "guide",
        ecosystem="pypi" if language == "python" else "",
        package=subject.package if subject is not None else "",
        nodes=[api] if api is not None else [],
    )


def _api(document: Document, subject: Subject) -> APIReference | None:
    """The reference of a page that shows how the API is called."""
    namespace, _, last = subject.name.rpartition(".")
    called = re.compile(rf"\b{re.escape(last)}\s*[(<]", re.IGNORECASE)
    for block in CODE_BLOCK.finditer(document.text):
        if called.search(block["code"]):
            return APIReference(
                namespace=namespace,
                function_name=last,
                ecosystem="pypi" if subject.language == "python" else "",
                package=subject.package,
                language=subject.language,
                signature=block["code"].strip()[:2000],
                description=_description(document.text),
            )
    return None


def _description(text: str) -> str:
    for paragraph in re.split(r"\n\s*\n", CODE_BLOCK.sub("", text)):
        flat = " ".join(paragraph.split())
        if len(flat) > 30 and not flat.startswith(("#", "|", "-", "*", "!", "[")):
            return flat[:1000]
    return ""
