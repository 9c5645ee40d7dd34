"""Stack Overflow by the Stack Exchange API 2.3: accepted answers of ten votes and more.

Its answers are always compressed; `backoff` and throttling are heeded for the whole host.
"""

import asyncio
import html
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from vademecum.errors import BadStatus, UnreadableSource
from vademecum.graph.nodes import ExternalDoc
from vademecum.graph.sources.adapter import (
    Found,
    FoundDocument,
    Subject,
    SubjectKind,
    address,
    found_document,
    fresh_for,
    read_fragment,
)
from vademecum.graph.sources.community import (
    has_code,
    left_out,
    prose,
    recent_or_agnostic,
    solving,
    terms,
)
from vademecum.graph.sources.places import Places
from vademecum.graph.sources.replies import JSON, Replies, Reply
from vademecum.store.documents import written

SOURCE = "stackoverflow_accepted"
VOTES = 10
PAGES, PAGE = 2, 30
"""Pages of questions that are looked through, and how many stand on one."""
MOST = 5
_BY = "\n\nAnswer by "
_SECONDS = re.compile(r"available in (\d+) seconds?")
_THROTTLED = 502
"""The API's number of a throttle violation."""


class StackExchange:
    name = "stack-exchange"
    makes = (SOURCE,)
    kinds: frozenset[SubjectKind] = frozenset({"error", "topic"})
    filter = "accepted answers with 10 votes and code, of two years or version-agnostic"

    def __init__(self, places: Places) -> None:
        self._base = places.stack_exchange

    def takes(self, subject: Subject) -> bool:
        return subject.kind in self.kinds

    async def fetch(self, subject: Subject, replies: Replies) -> Found:
        questions: dict[int, Mapping[str, Any]] = {}
        patience = 0.0
        for page in range(1, PAGES + 1):
            reply, body = await self._get(
                replies,
                "search/advanced",
                accepted="True",
                order="desc",
                page=page,
                pagesize=PAGE,
                q=terms(subject),
                site="stackoverflow",
                sort="relevance",
                tagged=subject.language,
                filter="withbody",
            )
            patience = max(patience, _patience(reply, body))
            for one in body.get("items") or ():
                if one.get("accepted_answer_id"):
                    questions[int(one["accepted_answer_id"])] = one
            if not body.get("has_more") or patience:
                break
        found = Found()
        if questions:
            # One request for all answers: what is asked for counts, not what it brings.
            reply, body = await self._answers(list(questions), replies)
            patience = max(patience, _patience(reply, body))
            for answer in body.get("items") or ():
                question = questions.get(int(answer.get("answer_id", 0)))
                if question is not None and len(found.documents) < MOST:
                    await self._judge(question, answer, subject, reply, found)
        if patience:
            await replies.web.leave_alone(self._base, patience)
        return found

    async def again(self, document: ExternalDoc, replies: Replies) -> FoundDocument:
        number = int(document.source_url.rstrip("/").rpartition("/")[2])
        reply, body = await self._answers([number], replies)
        for answer in body.get("items") or ():
            if not answer.get("is_accepted") or answer.get("score", 0) < VOTES:
                raise UnreadableSource(
                    document.source_url, "it is no accepted answer of 10 votes any more"
                )
            question = {"title": document.title, "tags": [document.language], "body": ""}
            return await _document(question, answer, document.language, reply)
        raise UnreadableSource(document.source_url, "the answer is gone")

    async def _answers(
        self, numbers: list[int], replies: Replies
    ) -> tuple[Reply, Mapping[str, Any]]:
        return await self._get(
            replies,
            f"answers/{';'.join(str(number) for number in sorted(numbers))}",
            order="desc",
            pagesize=100,
            site="stackoverflow",
            sort="votes",
            filter="withbody",
        )

    async def _get(
        self, replies: Replies, path: str, **parameters: str | int
    ) -> tuple[Reply, Mapping[str, Any]]:
        url = address(self._base, path, **parameters)
        try:
            reply = await replies.get(url, fresh_for=fresh_for(SOURCE), wanted=JSON, busy=_busy)
        except BadStatus as error:
            raise UnreadableSource(url, f"{error.reason}{_said(error)}") from error
        body = reply.json()
        if not isinstance(body, dict) or "items" not in body:
            raise UnreadableSource(url, "it is no answer of the Stack Exchange API")
        return reply, body

    async def _judge(
        self,
        question: Mapping[str, Any],
        answer: Mapping[str, Any],
        subject: Subject,
        reply: Reply,
        found: Found,
    ) -> None:
        title = html.unescape(str(question.get("title") or ""))
        made = await _document(question, answer, subject.language, reply)
        reasons = []
        if not answer.get("is_accepted"):
            reasons.append("not accepted")
        if int(answer.get("score") or 0) < VOTES:
            reasons.append(f"{answer.get('score')} votes")
        if not has_code(made.text):
            reasons.append("no code")
        words = made.text.rpartition(_BY)[0]  # the licence has a version, too
        if not recent_or_agnostic(words, _changed(answer), datetime.now(UTC)):
            reasons.append(f"of {_changed(answer):%Y} and about a version")
        if reasons:
            found.notices.append(left_out(title, reasons))
        else:
            found.documents.append(solving(made, subject))


async def _document(
    question: Mapping[str, Any], answer: Mapping[str, Any], language: str, reply: Reply
) -> FoundDocument:
    url = f"https://stackoverflow.com/a/{int(answer['answer_id'])}"
    title = html.unescape(str(question.get("title") or ""))
    body = str(answer.get("body") or "<p></p>")
    said = (await asyncio.to_thread(read_fragment, body, url)).text.strip()
    by = html.unescape(str((answer.get("owner") or {}).get("display_name") or "unknown"))
    # The question's code is what fails: only the answer's is an example.
    text = f"# {title}\n\n{said}{_BY}{by}, {answer.get('content_license') or 'CC BY-SA'}\n"
    document = written(title, text)
    tags = [str(tag) for tag in question.get("tags") or ()]
    return found_document(
        reply,
        document,
        source=SOURCE,
        url=url,
        summary=prose(said, 500),
        language=language or (tags[0] if tags else ""),
        category="guide",
        method="api",
        upvotes=int(answer.get("score") or 0),
        accepted=bool(answer.get("is_accepted")),
    )


def _changed(answer: Mapping[str, Any]) -> datetime:
    seconds = answer.get("last_edit_date") or answer.get("creation_date") or 0
    return datetime.fromtimestamp(int(seconds), UTC)


def _patience(reply: Reply, body: Mapping[str, Any]) -> float:
    """Seconds that this answer asks to wait; a quota that is used up begins anew at midnight."""
    if reply.how != "fetched":
        return 0.0
    seconds = float(body.get("backoff") or 0)
    if body.get("quota_remaining") == 0:
        now = datetime.now(UTC)
        midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        seconds = max(seconds, (midnight - now).total_seconds())
    return seconds


def _error(error: BadStatus) -> Mapping[str, Any]:
    try:
        body = json.loads(error.body)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _busy(error: BadStatus) -> float | None:
    body = _error(error)
    if body.get("error_id") != _THROTTLED:
        return None
    match = _SECONDS.search(str(body.get("error_message")))
    return float(match[1]) if match else 60.0


def _said(error: BadStatus) -> str:
    body = _error(error)
    return f": {body['error_message']}" if body.get("error_message") else ""
