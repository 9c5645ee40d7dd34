"""GitHub issues by the REST API: closed ones, and those that a maintainer answered."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from vademecum.errors import UnreadableSource
from vademecum.graph.nodes import ExternalDoc
from vademecum.graph.sources.adapter import (
    Found,
    FoundDocument,
    Subject,
    SubjectKind,
    address,
    found_document,
    fresh_for,
)
from vademecum.graph.sources.community import (
    has_code,
    left_out,
    prose,
    recent_or_agnostic,
    solving,
    terms,
)
from vademecum.graph.sources.npm import Npm
from vademecum.graph.sources.places import Places
from vademecum.graph.sources.pypi import PyPI
from vademecum.graph.sources.replies import Replies, Reply
from vademecum.ingest.read import Wanted
from vademecum.store.documents import written

MAINTAINED, OTHERS = "github_maintainer", "forum_post"
"""A maintainer's word is trusted more than what others say in a closed issue."""
MAINTAINERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
API = Wanted(accept="application/vnd.github+json", types=frozenset({"application/json"}))
FOUND, PAGE, PAGES = 10, 100, 3
"""Issues of a search whose comments are read; comments on a page, and pages of them."""
MOST = 5
_REPOSITORY = re.compile(r"github\.com[/:]([\w.-]+/[\w.-]+?)(?:\.git)?(?:[/#?]|$)")


class GitHub:
    name = "github"
    makes = (MAINTAINED, OTHERS)
    kinds: frozenset[SubjectKind] = frozenset({"error", "topic"})
    filter = (
        "issues with code, closed or answered by a maintainer, of two years or version-agnostic"
    )

    def __init__(self, places: Places) -> None:
        self._base = places.github
        self._pypi, self._npm = PyPI(places), Npm(places)

    def takes(self, subject: Subject) -> bool:
        return subject.kind in self.kinds and bool(subject.repository or subject.package)

    async def fetch(self, subject: Subject, replies: Replies) -> Found:
        repository = subject.repository or await self._repository(subject, replies)
        url = address(
            self._base,
            "search/issues",
            per_page=FOUND,
            q=f"{terms(subject)} repo:{repository} is:issue",
        )
        reply = await replies.get(url, fresh_for=fresh_for(MAINTAINED), wanted=API)
        found = Found()
        issues = reply.json().get("items") or ()
        if reply.json().get("incomplete_results"):
            found.notices.append("GitHub's search ended before it was through")
        for issue in issues:
            if len(found.documents) == MOST:
                break
            title = str(issue.get("title") or "")
            comments, last = await self._comments(repository, issue, replies, reply)
            made = _document(issue, comments, subject.language, last)
            reasons = _against(issue, comments, made)
            if reasons:
                found.notices.append(left_out(title, reasons))
            else:
                found.documents.append(solving(made, subject))
        return found

    async def again(self, document: ExternalDoc, replies: Replies) -> FoundDocument:
        repository, number = _place(document.source_url)
        url = address(self._base, f"repos/{repository}/issues/{number}")
        reply = await replies.get(url, fresh_for=fresh_for(MAINTAINED), wanted=API)
        comments, last = await self._comments(repository, reply.json(), replies, reply)
        return _document(reply.json(), comments, document.language, last)

    async def _repository(self, subject: Subject, replies: Replies) -> str:
        """That which the registry names for the package. Raises UnreadableSource."""
        registry = self._npm if subject.ecosystem == "npm" else self._pypi
        package, _ = await registry.package(subject.package, "", replies)
        for url in package.urls.values():
            if match := _REPOSITORY.search(url):
                return match[1]
        raise UnreadableSource(subject.package, "its registry names no repository on GitHub")

    async def _comments(
        self, repository: str, issue: Mapping[str, Any], replies: Replies, reply: Reply
    ) -> tuple[list[Mapping[str, Any]], Reply]:
        found: list[Mapping[str, Any]] = []
        if not issue.get("comments"):
            return found, reply
        for page in range(1, PAGES + 1):
            url = address(
                self._base,
                f"repos/{repository}/issues/{int(issue['number'])}/comments",
                page=page,
                per_page=PAGE,
            )
            reply = await replies.get(url, fresh_for=fresh_for(MAINTAINED), wanted=API)
            listed = reply.json()
            found += listed
            if len(listed) < PAGE:
                break
        return found, reply


def _against(
    issue: Mapping[str, Any], comments: Sequence[Mapping[str, Any]], made: FoundDocument
) -> list[str]:
    """Why an issue is not let through."""
    reasons = []
    if issue.get("state") != "closed" and not any(map(_is_maintainer, comments)):
        reasons.append("open, and no maintainer answered")
    if not has_code(made.text):
        reasons.append("no code in its answers")
    if not recent_or_agnostic(made.text, _changed(issue), datetime.now(UTC)):
        reasons.append(f"of {_changed(issue):%Y} and about a version")
    return reasons


def _document(
    issue: Mapping[str, Any],
    comments: Sequence[Mapping[str, Any]],
    language: str,
    reply: Reply,
) -> FoundDocument:
    """The title, the beginning of the question and what answers it: maintainers, else those who
    show code."""
    title = str(issue.get("title") or "")
    told = [one for one in comments if _is_maintainer(one)]
    source = MAINTAINED if told else OTHERS
    told = told or [one for one in comments if has_code(str(one.get("body") or ""))]
    parts = [f"# {title}", prose(str(issue.get("body") or ""), 400)]
    for one in told:
        who = str((one.get("user") or {}).get("login") or "unknown")
        role = str(one.get("author_association") or "").lower()
        parts += [f"## {who} ({role})", str(one.get("body") or "").replace("\r\n", "\n")]
    text = "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
    state = str(issue.get("state_reason") or issue.get("state") or "")
    first = prose(str(told[0].get("body") or ""), 400) if told else ""
    return found_document(
        reply,
        written(title, text),
        source=source,
        url=str(issue.get("html_url") or ""),
        summary=f"{state.capitalize()}. {first}".strip(),
        language=language,
        category="guide",
        method="api",
    )


def _is_maintainer(comment: Mapping[str, Any]) -> bool:
    return comment.get("author_association") in MAINTAINERS


def _changed(issue: Mapping[str, Any]) -> datetime:
    text = issue.get("closed_at") or issue.get("updated_at") or "1970-01-01T00:00:00Z"
    return datetime.fromisoformat(str(text))


def _place(url: str) -> tuple[str, int]:
    """`https://github.com/owner/name/issues/7`: the repository and the number."""
    parts = url.rstrip("/").split("/")
    if len(parts) < 4 or not parts[-1].isdecimal():
        raise UnreadableSource(url, "it is no address of an issue")
    return "/".join(parts[-4:-2]), int(parts[-1])
