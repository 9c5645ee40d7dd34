"""Stack Overflow and GitHub issues over a real socket, in the formats of their APIs."""

import gzip
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conftest import Vade
from graph.sources.host import Host, Reply
from vademecum.app import App
from vademecum.graph.nodes import CodeExample, ErrorPattern, ExternalDoc
from vademecum.graph.sources.adapter import Subject
from vademecum.graph.sources.community import recent_or_agnostic

NOW = datetime.now(UTC)
PATTERN = "KeyError: 'price'"
ERROR = Subject(kind="error", name=PATTERN, language="python")
ISSUE = Subject(kind="error", name=PATTERN, language="python", repository="shop/shoplib")
BODY = (
    "<p>The dictionary has no such key; ask with a default instead.</p>"
    "<pre><code>price = item.get(&quot;price&quot;, 0)\nprint(price)\n</code></pre>"
)
TRACEBACK = (
    'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n' + PATTERN + "\n"
)


def seconds(days: float) -> int:
    return int((NOW - timedelta(days=days)).timestamp())


def question(number: int, title: str) -> dict[str, object]:
    """As https://api.stackexchange.com/docs/advanced-search answers with `withbody`."""
    return {
        "tags": ["python", "dictionary"],
        "owner": {"display_name": "asker"},
        "is_answered": True,
        "accepted_answer_id": number + 1000,
        "question_id": number,
        "link": f"https://stackoverflow.com/questions/{number}/x",
        "title": title,
        "body": "<pre><code>item['price']  # fails, do not do this\n</code></pre>",
    }


def answer(number: int, **of: object) -> dict[str, object]:
    """As https://api.stackexchange.com/docs/answers-by-ids answers with `withbody`."""
    return {
        "owner": {"display_name": "Ann &amp; Bob"},
        "is_accepted": True,
        "score": 25,
        "last_activity_date": seconds(1),
        "creation_date": seconds(100),
        "answer_id": number + 1000,
        "question_id": number,
        "content_license": "CC BY-SA 4.0",
        "body": BODY,
    } | of


class StackOverflow:
    """Pages of questions and the answers to them; always compressed, as the real one."""

    def __init__(self, host: Host, answers: list[dict[str, object]], **wrapper: object) -> None:
        self.answers = {one["answer_id"]: one for one in answers}
        self.wrapper = wrapper
        self.pages: list[list[dict[str, object]]] = [
            [question(int(str(one["question_id"])), f"Why &quot;{one['question_id']}&quot;?")]
            for one in answers
        ]
        host.pages["/2.3/search/advanced"] = self.search
        host.pages["/2.3/answers"] = self.of
        self.host = host
        ids = ";".join(str(number) for number in sorted(self.answers, key=int))  # type: ignore[arg-type]
        host.pages[f"/2.3/answers/{ids}"] = self.of
        for number in self.answers:
            host.pages[f"/2.3/answers/{number}"] = self.of

    def search(self, asked: Mapping[str, str]) -> Reply:
        page = int(asked["page"])
        return self.said(self.pages[page - 1], has_more=page < len(self.pages))

    def of(self, asked: Mapping[str, str]) -> Reply:
        return self.said(list(self.answers.values()), has_more=False)

    def said(self, items: list[dict[str, object]], **of: object) -> Reply:
        body = {"items": items, "quota_max": 300, "quota_remaining": 250} | of | self.wrapper
        sent = {"content-type": "application/json; charset=utf-8", "content-encoding": "gzip"}
        return 200, sent, gzip.compress(json.dumps(body).encode())


async def solutions(app: App) -> list[CodeExample]:
    [pattern] = await app.graph.find(ErrorPattern, [PATTERN])
    rows = await app.graph.relations([pattern.id], kinds=["SOLVES"], outgoing=False)
    nodes = await app.graph.get([row.start_id for row in rows])
    return [node for node in nodes.values() if isinstance(node, CodeExample)]


async def test_accepted_answers_solve_an_error(app: App, host: Host) -> None:
    StackOverflow(host, [answer(1), answer(2)])
    report = await app.sources.fetch(ERROR)
    first = report.documents[0]
    [document] = [
        node for node in (await app.graph.get([first.id])).values() if isinstance(node, ExternalDoc)
    ]
    rows = await app.graph.relations([first.id], kinds=["SOURCED_FROM"])
    found = await solutions(app)
    context = await app.context.build("fix the prices", project="shop", error=TRACEBACK)

    assert [one.title for one in report.documents] == ['Why "1"?', 'Why "2"?']
    assert document.source == "stackoverflow_accepted"
    assert document.source_url == "https://stackoverflow.com/a/1001"
    assert "Answer by Ann & Bob, CC BY-SA 4.0" in (app.graph.content.read(first.id) or "")
    assert rows[0].properties == {"answer_accepted": True, "upvotes": 25}
    assert {one.code for one in found} == {'price = item.get("price", 0)\nprint(price)'}
    assert {one.upvotes for one in found} == {25}
    assert "Stack Overflow" in context.markdown
    assert 'item.get("price", 0)' in context.markdown
    assert "do not do this" not in context.markdown
    assert "tagged=python" in host.asked[0]


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        ({"is_accepted": False}, "not accepted"),
        ({"score": 9}, "9 votes"),
        ({"body": "<p>Just ask with a default value instead of that.</p>"}, "no code"),
        (
            {"creation_date": seconds(900), "body": f"<p>In Python 2.7:</p>{BODY}"},
            "about a version",
        ),
    ],
)
async def test_what_the_filter_leaves_out_is_told(
    app: App, host: Host, of: dict[str, object], reason: str
) -> None:
    StackOverflow(host, [answer(1, **of)])
    report = await app.sources.fetch(ERROR)

    assert report.documents == []
    assert "left out 'Why \"1\"?'" in report.notices[0]
    assert reason in report.notices[0]


async def test_what_is_old_and_names_no_version_is_let_through(app: App, host: Host) -> None:
    StackOverflow(host, [answer(1, creation_date=seconds(2000))])
    report = await app.sources.fetch(ERROR)

    assert len(report.documents) == 1


def test_versions_in_code_and_ordinary_numbers_make_nothing_version_specific() -> None:
    old = NOW - timedelta(days=1000)

    assert recent_or_agnostic("Wait 5 seconds.\n\n```\nx = 2.75\n```", old, NOW)
    for text in ("Since Python 3.8 it works", "use v2.0", "In 1.21 it was removed", "node 14"):
        assert not recent_or_agnostic(text, old, NOW), text
        assert recent_or_agnostic(text, NOW - timedelta(days=700), NOW)


async def test_backoff_is_heeded_by_everybody(app: App, host: Host) -> None:
    StackOverflow(host, [answer(1)], backoff=30)
    first = await app.sources.fetch(ERROR)
    asked = len(host.asked)
    other = Subject(kind="error", name="ValueError: other", language="python")
    second = await app.sources.fetch(other)

    assert len(first.documents) == 1
    assert len(host.asked) == asked
    assert "its server asked to be left alone for" in second.failed[0].reason


async def test_throttling_and_errors_of_the_api_are_told(app: App, host: Host) -> None:
    throttled = {
        "error_id": 502,
        "error_message": "too many requests from this IP, more requests available in 77 seconds",
        "error_name": "throttle_violation",
    }
    wrong = {"error_id": 400, "error_message": "site is required", "error_name": "bad_parameter"}
    kind = {"content-type": "application/json; charset=utf-8"}
    host.failing = (400, kind, json.dumps(wrong).encode())
    bad = await app.sources.fetch(ERROR)
    host.failing = (400, kind, json.dumps(throttled).encode())
    busy = await app.sources.fetch(ERROR)

    assert "it answered 400 Bad Request: site is required" in bad.failed[0].reason
    assert "it answered 400, and asks to wait 77 s" in busy.failed[0].reason


async def test_an_answer_that_is_no_longer_accepted_is_not_refreshed(app: App, host: Host) -> None:
    StackOverflow(host, [answer(1)])
    document = (await app.sources.fetch(ERROR)).documents[0]
    same = await app.graph.refresh(ids=[document.id])
    StackOverflow(host, [answer(1, is_accepted=False)])
    report = await app.graph.refresh(ids=[document.id])

    assert (same.unchanged, same.failed) == (1, [])
    assert "no accepted answer of 10 votes any more" in report.failed[0][1]


# --- GitHub -----------------------------------------------------------------------------------


def issue(number: int, **of: object) -> dict[str, object]:
    """As https://docs.github.com/rest/search#search-issues-and-pull-requests answers."""
    return {
        "html_url": f"https://github.com/shop/shoplib/issues/{number}",
        "number": number,
        "title": f"Issue {number}",
        "user": {"login": "asker"},
        "state": "closed",
        "state_reason": "completed",
        "comments": 1,
        "author_association": "NONE",
        "updated_at": f"{NOW:%Y-%m-%dT%H:%M:%SZ}",
        "closed_at": f"{NOW:%Y-%m-%dT%H:%M:%SZ}",
        "body": "It fails.\r\n\r\n```python\nitem['price']\n```",
    } | of


def comment(who: str, association: str, body: str) -> dict[str, object]:
    return {"user": {"login": who}, "author_association": association, "body": body}


FIX = "Ask with a default.\r\n\r\n```python\nprice = item.get('price', 0)\nprint(price)\n```"


def put_issues(host: Host, issues: list[dict[str, object]]) -> None:
    found = {"total_count": len(issues), "incomplete_results": False, "items": issues}
    host.put("/github/search/issues", found)


def put_comments(host: Host, number: int, comments: list[dict[str, object]]) -> None:
    def of(asked: Mapping[str, str]) -> Reply:
        start = (int(asked["page"]) - 1) * int(asked["per_page"])
        part = comments[start : start + int(asked["per_page"])]
        kind = {"content-type": "application/json; charset=utf-8"}
        return 200, kind, json.dumps(part).encode()

    host.pages[f"/github/repos/shop/shoplib/issues/{number}/comments"] = of


async def test_issues_that_are_closed_or_answered_by_a_maintainer(app: App, host: Host) -> None:
    put_issues(
        host,
        [
            issue(1),
            issue(2, state="open", state_reason=None, closed_at=None),
            issue(3, state="open", state_reason=None, closed_at=None),
            issue(4),
        ],
    )
    chatter = [comment("many", "NONE", "me too") for _ in range(100)]
    put_comments(host, 1, [*chatter, comment("ann", "MEMBER", FIX)])  # on the second page
    put_comments(host, 2, [comment("ann", "COLLABORATOR", FIX)])
    put_comments(host, 3, [comment("bob", "CONTRIBUTOR", FIX)])
    put_comments(host, 4, [comment("bob", "NONE", FIX)])
    report = await app.sources.fetch(ISSUE, only=["github"])
    sources = {one.title: one.source for one in report.documents}
    text = app.graph.content.read(report.documents[0].id) or ""

    assert sources == {
        "Issue 1": "github_maintainer",
        "Issue 2": "github_maintainer",
        "Issue 4": "forum_post",
    }
    assert "## ann (member)" in text
    assert "me too" not in text
    assert "item['price']" not in text
    assert report.notices == ["left out 'Issue 3': open, and no maintainer answered"]
    assert {one.code for one in await solutions(app)} == {
        "price = item.get('price', 0)\nprint(price)"
    }


async def test_the_repository_of_a_package_is_known_to_its_registry(app: App, host: Host) -> None:
    info = {
        "name": "shoplib",
        "version": "1",
        "project_urls": {"Source": "https://github.com/shop/shoplib.git"},
    }
    host.put("/pypi/shoplib/json", {"info": info, "releases": {}})
    put_issues(host, [])
    subject = Subject(kind="error", name=PATTERN, language="python", package="shoplib")
    await app.sources.fetch(subject, only=["github"])

    assert "repo%3Ashop%2Fshoplib" in host.asked[-1]


@pytest.mark.parametrize("status", [403, 429])
async def test_a_quota_that_is_used_up_is_waited_for(app: App, host: Host, status: int) -> None:
    headers = {
        "content-type": "application/json",
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": str(int(time.time()) + 600),
    }
    host.failing = (status, headers, b'{"message": "API rate limit exceeded"}')
    first = await app.sources.fetch(ISSUE, only=["github"])
    asked = len(host.asked)
    await app.sources.fetch(ISSUE, only=["github"])

    assert f"it answered {status}, and asks to wait" in first.failed[0].reason
    assert any(f"{n} s" in first.failed[0].reason for n in range(590, 601))
    assert len(host.asked) == asked


async def test_a_refreshed_issue_has_its_new_comments(app: App, host: Host) -> None:
    put_issues(host, [issue(1)])
    host.put("/github/repos/shop/shoplib/issues/1", issue(1, comments=2))
    put_comments(host, 1, [comment("ann", "OWNER", FIX)])
    document = (await app.sources.fetch(ISSUE, only=["github"])).documents[0]
    put_comments(host, 1, [comment("ann", "OWNER", FIX), comment("ann", "OWNER", "Also: no.")])
    report = await app.graph.refresh(ids=[document.id])

    assert (report.updated, report.failed) == (1, [])
    assert "Also: no." in (app.graph.content.read(document.id) or "")


def test_the_command_solves_an_error(vade: Vade, house: Path, host: Host) -> None:
    StackOverflow(host, [answer(1)])
    home = {"VADE_HOME": str(house), "VADE_EMBEDDER": "none"}
    (house / "tb.txt").write_text(TRACEBACK)
    (house / "no.txt").write_text("all is well")
    found = vade("fetch", "error", house / "tb.txt", **home)
    wrong = vade("fetch", "error", house / "no.txt", **home)
    context = vade("context", "fix it", "-p", "shop", "--error", house / "tb.txt", "--json", **home)

    assert found.returncode == 0, found.stderr
    assert 'Why "1"?' in found.stdout
    assert wrong.returncode == 2
    assert 'item.get(\\"price\\", 0)' in context.stdout
