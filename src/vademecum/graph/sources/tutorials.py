"""Tutorials by the feed or the sitemap of their site, and the rule for their quality."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from vademecum.errors import UnreadableSource
from vademecum.graph.extract import compiles
from vademecum.graph.nodes import ExternalDoc
from vademecum.graph.sources import trust
from vademecum.graph.sources.adapter import (
    CODE_BLOCK,
    Found,
    FoundDocument,
    Subject,
    SubjectKind,
    found_document,
    fresh_for,
    page_again,
)
from vademecum.graph.sources.community import RECENT, left_out
from vademecum.graph.sources.feeds import XML, Listed, read_feed, read_sitemap
from vademecum.graph.sources.places import Places, Tutorials
from vademecum.graph.sources.replies import Replies, Reply
from vademecum.types import Document

ENOUGH = 0.7
"""The quality that a tutorial must exceed."""
LISTING = timedelta(days=1)
"""How long a feed is taken without asking: it is what changes."""
CANDIDATES, MOST = 6, 3
SITEMAPS = 5
WORDS = 8
"""That a paragraph has at least which explains."""
_STOP = re.compile(
    r"\b(?:an?|and|are|as|at|by|for|from|how|in?|is|it|of|on|or|the|to|us(?:e|ing)|with)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Four parts from 0 to 1, which count alike."""

    recent: float
    """1 up to a year, 0.5 at two years."""
    credible: float
    """The trust of the source; an author's own page says nothing of it."""
    code: float
    """The share of blocks of code that compile; 0 without code."""
    clear: float
    """The share of blocks of code with a paragraph that explains before them."""

    @property
    def score(self) -> float:
        return (self.recent + self.credible + self.code + self.clear) / 4

    def __str__(self) -> str:
        return (
            f"quality {self.score:.2f} (recent {self.recent:.2f}, credible {self.credible:.2f},"
            f" code {self.code:.2f}, clear {self.clear:.2f})"
        )


class TutorialSites:
    name = "tutorials"
    makes = ("real_python", "official_tutorials", "blog_unknown")
    kinds: frozenset[SubjectKind] = frozenset({"topic"})
    filter = "tutorials of two years, with a quality above 0.7"

    def __init__(self, places: Places) -> None:
        self._sites = places.tutorials

    def takes(self, subject: Subject) -> bool:
        return subject.kind == "topic" and bool(self._of(subject))

    def _of(self, subject: Subject) -> list[Tutorials]:
        return [one for one in self._sites if one.language in ("", subject.language)]

    async def fetch(self, subject: Subject, replies: Replies) -> Found:
        found = Found()
        errors: list[UnreadableSource] = []
        sites = self._of(subject)
        for site in sites:
            try:
                listed = await self._listed(site, replies)
            except UnreadableSource as error:
                errors.append(error)
                continue
            for one in candidates(subject.name, listed):
                if len(found.documents) < MOST:
                    await self._judge(one, site, subject, replies, found)
        if len(errors) == len(sites):
            raise errors[0]
        found.notices += [str(error) for error in errors]
        return found

    async def again(self, document: ExternalDoc, replies: Replies) -> FoundDocument:
        return await page_again(document, replies)

    async def _listed(self, site: Tutorials, replies: Replies) -> list[Listed]:
        reply = await replies.get(site.url, fresh_for=LISTING, wanted=XML)
        if site.kind == "feed":
            return read_feed(reply.data, reply.url)
        pages, others = read_sitemap(reply.data, reply.url)
        for other in others[:SITEMAPS]:
            part = await replies.get(other, fresh_for=LISTING, wanted=XML)
            pages += read_sitemap(part.data, part.url)[0]
        return pages

    async def _judge(
        self, one: Listed, site: Tutorials, subject: Subject, replies: Replies, found: Found
    ) -> None:
        now = datetime.now(UTC)
        if one.published is None or now - one.published > RECENT:
            when = "no date" if one.published is None else f"of {one.published:%Y-%m}"
            found.notices.append(left_out(one.title, [when]))
            return
        try:
            reply = await replies.get(one.url, fresh_for=fresh_for(site.source))
            document = await replies.document(reply)
        except UnreadableSource as error:
            found.notices.append(str(error))
            return
        language = subject.language or site.language
        judged = quality(document.text, one.published, site.source, language, now)
        if judged.score <= ENOUGH:
            found.notices.append(left_out(one.title, [str(judged)]))
            return
        found.documents.append(_found(one, reply, document, site, language))


def _found(
    one: Listed, reply: Reply, document: Document, site: Tutorials, language: str
) -> FoundDocument:
    return found_document(
        reply,
        document,
        source=site.source,
        url=one.url,
        title=document.title or one.title,
        summary=one.summary[:500],
        language=language,
        category="tutorial",
    )


def candidates(topic: str, listed: list[Listed]) -> list[Listed]:
    """Those whose title and summary have at least half of the topic's words, the most first."""
    wanted = _words(topic)
    scored = [
        (len(wanted & _words(one.title)) * 2 + len(wanted & _words(one.summary)), one)
        for one in listed
        if one.url and 2 * len(wanted & (_words(one.title) | _words(one.summary))) >= len(wanted)
    ]
    scored.sort(key=lambda pair: -pair[0])
    return [one for _, one in scored if wanted][:CANDIDATES]


def quality(text: str, published: datetime, source: str, language: str, now: datetime) -> Quality:
    """How good a tutorial is, by what can be seen of it."""
    years = max((now - published) / timedelta(days=365), 0.0)
    blocks = list(CODE_BLOCK.finditer(text))
    python = [
        block["code"]
        for block in blocks
        if (block["language"] or language).lower() in ("python", "py", "python3")
        and ">>>" not in block["code"]
    ]
    good = sum(map(compiles, python)) / len(python) if python else float(bool(blocks))
    explained = 0
    end = 0
    for block in blocks:
        explained += len(text[end : block.start()].split()) >= WORDS
        end = block.end()
    return Quality(
        recent=min(1.0, max(0.0, 1.5 - years / 2)),
        credible=trust(source),
        code=good,
        clear=explained / len(blocks) if blocks else 0.0,
    )


def _words(text: str) -> set[str]:
    # Plural and singular are one word to whoever looks for a topic.
    return {word.rstrip("s") for word in re.findall(r"[\w+#]+", _STOP.sub(" ", text.lower()))}
