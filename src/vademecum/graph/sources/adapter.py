"""What every source of knowledge has in common: what can be looked up there, and what it gives."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol
from urllib.parse import urlencode

from vademecum.graph.extract import examples, practices
from vademecum.graph.nodes import (
    APIReference,
    Category,
    ExternalDoc,
    FetchMethod,
    Node,
    Source,
)
from vademecum.graph.relations import Relation
from vademecum.graph.sources import SOURCES, trust
from vademecum.graph.sources.replies import How, Replies, Reply
from vademecum.graph.summary import beginning
from vademecum.graph.versions import Ecosystem
from vademecum.ingest.read import read_bytes
from vademecum.store.documents import content_hash
from vademecum.types import Document

SubjectKind = Literal["api", "package", "error", "topic"]
FRESH: dict[str, timedelta] = {
    "official_docs": timedelta(days=7),
    "tutorials": timedelta(days=90),
    "community": timedelta(days=7),
    "library_specific": timedelta(days=7),
}
"""By tier, how long what was fetched is taken without asking."""
CODE_BLOCK = re.compile(
    r"^```(?P<language>\w*)[^\n]*\n(?P<code>.*?)\n```", re.DOTALL | re.MULTILINE
)
"""As the readers of pages write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is looked up: an API by its name, a package, an error by its pattern, or a topic."""

    kind: SubjectKind
    name: str
    """`requests.get`; `requests`; `KeyError: 'id'`; `retries with asyncio`."""
    language: str = ""
    """Lower case: `python`, `javascript`."""
    package: str = ""
    """The package that it is about, as its ecosystem names it."""
    version: str = ""
    """Of the package; '' is the newest."""
    repository: str = ""
    """`owner/name` on GitHub."""

    @property
    def ecosystem(self) -> Ecosystem:
        return "npm" if self.language in ("javascript", "typescript") else "pypi"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDocument:
    """A document with all that was read in it: one statement of the graph."""

    document: ExternalDoc
    text: str
    nodes: Sequence[Node] = ()
    relations: Sequence[Relation] = ()
    how: How
    reason: str = ""
    """Why it is stale."""
    is_changelog: bool = False
    """Whether it tells what became of a package's APIs."""

    @property
    def key(self) -> str:
        """What the statement is said under."""
        return f"{self.document.source_url} {self.document.version}".rstrip()


@dataclass(slots=True, kw_only=True)
class Found:
    """What a source gave; `notices` say what it did not have, or left out and why."""

    documents: list[FoundDocument] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


class Adapter(Protocol):
    """One source. It states what it finds under its `name`."""

    @property
    def name(self) -> str: ...

    @property
    def makes(self) -> tuple[str, ...]:
        """Names of `SOURCES` that its documents are of: they say tier, trust and freshness."""
        ...

    @property
    def kinds(self) -> frozenset[SubjectKind]: ...

    @property
    def filter(self) -> str:
        """What it lets through, in some words."""
        ...

    def takes(self, subject: Subject) -> bool:
        """Whether the subject can be looked up here."""
        ...

    async def fetch(self, subject: Subject, replies: Replies) -> Found:
        """What is known there. Raises UnreadableSource where nothing, kept or not, answers."""
        ...

    async def again(self, document: ExternalDoc, replies: Replies) -> FoundDocument:
        """A document as it is now. Raises UnreadableSource."""
        ...


def fresh_for(source: str) -> timedelta:
    return FRESH[SOURCES[source].tier]


def address(base: str, path: str = "", **parameters: str | int) -> str:
    """An address in its normal form, with parameters in order; `_` before a name is a `$`."""
    url = f"{base.rstrip('/')}/{path.lstrip('/')}" if path else base
    pairs = sorted(
        (f"${name[1:]}" if name.startswith("_") else name, str(value))
        for name, value in parameters.items()
        if value != ""
    )
    return f"{url}?{urlencode(pairs)}" if pairs else url


def read_fragment(body: str, url: str) -> Document:
    """A fragment of HTML as the reader of pages reads it. Raises UnreadableSource."""
    page = f"<html><body><main>{body}</main></body></html>"
    return read_bytes(page.encode(), name=url, content_type="text/html; charset=utf-8")


def source_node(name: str, now: datetime) -> Source:
    kind = SOURCES[name]
    return Source(key=name, title=kind.title, trust_score=trust(name), last_verified=now)


def found_document(
    reply: Reply,
    document: Document,
    *,
    source: str,
    url: str,
    title: str = "",
    summary: str = "",
    version: str = "",
    language: str = "",
    category: Category = "reference",
    method: FetchMethod = "web_scrape",
    ecosystem: Ecosystem = "",
    package: str = "",
    nodes: Sequence[Node] = (),
    relations: Sequence[Relation] = (),
    upvotes: int | None = None,
    accepted: bool | None = None,
    teaches: bool = True,
) -> FoundDocument:
    """The document of a reply with the practices and examples that stand in its text.

    What does not teach, such as a changelog, has none: it tells what was done, not what to do.
    """
    node = ExternalDoc(
        source=source,
        source_url=url,
        title=title or document.title,
        content_hash=content_hash(document.text),
        summary=summary or beginning(document.text),
        content_snippet=document.text[:1000],
        last_updated=reply.fetched_at,
        version=version,
        language=language,
        category=category,
        fetch_method=method,
        ecosystem=ecosystem,
        package=package,
    )
    nodes = [
        replace(one, source_doc_id=str(node.id)) if isinstance(one, APIReference) else one
        for one in nodes
    ]
    apis = [one for one in nodes if isinstance(one, APIReference)]
    found = []
    if teaches:
        found += examples(node, document.text, apis, upvotes=upvotes)
        found += practices(node, document.text, apis, now=reply.fetched_at)
    origin = source_node(source, reply.fetched_at)
    votes = {"answer_accepted": accepted, "upvotes": upvotes}
    said = {name: value for name, value in votes.items() if value is not None}
    made = [
        Relation(kind="SOURCED_FROM", start=node, end=origin, properties=said),
        *(Relation(kind="DOCUMENTED_IN", start=api, end=node) for api in apis),
        *relations,
        *(relation for one in found for relation in one.relations),
    ]
    return FoundDocument(
        document=node,
        text=document.text,
        nodes=[node, *nodes, *(one.node for one in found)],
        relations=made,
        how=reply.how,
        reason=reply.reason,
    )


async def page_again(document: ExternalDoc, replies: Replies) -> FoundDocument:
    """A page as it is now, read as any other. Raises UnreadableSource."""
    reply = await replies.get(document.source_url, fresh_for=fresh_for(document.source))
    read = await replies.document(reply)
    return found_document(
        reply,
        read,
        source=document.source,
        url=document.source_url,
        version=document.version,
        language=document.language,
        category=document.category,
        ecosystem=document.ecosystem,
        package=document.package,
    )
