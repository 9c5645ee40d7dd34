"""The score of docs/decisions/0017-graph.md, and what use and its outcomes do to it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from graph.graph_things import ANSWER, FILE, GET, GUIDE, doc
from vademecum.app import App
from vademecum.errors import BadInput
from vademecum.graph.nodes import ExternalDoc, KnowledgeUsage
from vademecum.graph.rank import Use, relevance
from vademecum.graph.sources import SOURCES, refresh_after, trust

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_the_table_of_the_design_document() -> None:
    assert {name: trust(name) for name in list(SOURCES)[:10]} == {
        "microsoft_learn": 0.95,
        "python_docs": 0.95,
        "mdn": 0.95,
        "real_python": 0.85,
        "official_tutorials": 0.85,
        "stackoverflow_accepted": 0.75,
        "github_maintainer": 0.80,
        "reddit_highvote": 0.60,
        "blog_unknown": 0.40,
        "forum_post": 0.35,
    }
    assert trust("somewhere") == 0.5
    names = ("python_docs", "real_python", "stackoverflow_accepted", "pypi", "somewhere")
    assert [refresh_after(name).days for name in names] == [30, 90, 7, 14, 30]


@pytest.mark.parametrize(
    ("source", "days", "uses", "similarity", "wanted"),
    [
        ("mdn", 0, 0, 0.0, 0.95 * 0.4 + 0.2),
        ("mdn", 365, 50, 0.5, 0.95 * 0.4 + 0.5 * 0.2 + 0.5 * 0.2 + 0.5 * 0.2),
        ("forum_post", 730, 100, 1.0, 0.35 * 0.4 + 0.0 + 0.2 + 0.2),
        ("elsewhere", 5000, 900, 0.0, 0.5 * 0.4 + 0.0 + 0.2),
    ],
)
def test_the_weighted_score(
    source: str, days: int, uses: int, similarity: float, wanted: float
) -> None:
    found = relevance(
        source, NOW - timedelta(days=days), Use(access_count=uses), now=NOW, similarity=similarity
    )

    assert found.score == pytest.approx(wanted)
    assert found.relevance == found.score  # nothing is known of outcomes


def test_outcomes_move_the_score_within_its_bounds() -> None:
    def of(**use: int) -> float:
        return relevance("mdn", NOW, Use(**use), now=NOW).relevance

    assert of(misled=5) < of(misled=1) < of(failures=1) < of() < of(successes=1) < of(successes=9)
    assert of(failures=3) == of(misled=1)
    assert of(misled=10**6) > 0
    assert of(successes=10**6) < 1


async def test_a_document_that_misled_sinks_below_less_trusted_ones(lexical_app: App) -> None:
    graph = lexical_app.graph
    await graph.state("fetch", "guides", nodes=[GUIDE, ANSWER])

    async def order() -> list[str]:
        return [row["name"] for row in await graph.query("top_documents", category=GUIDE.category,
                                                         language="python")]  # fmt: skip

    before = await order()
    scored = await graph.record_usage(GUIDE.id, agent_id="coder", outcome="misled")

    assert before == [GUIDE.title, ANSWER.title]
    assert await order() == [ANSWER.title, GUIDE.title]
    assert (scored.access_count, scored.misled) == (1, 1)
    assert scored.relevance.helpfulness == pytest.approx(1 / 5)


async def test_a_use_counts_once_and_its_last_outcome_holds(lexical_app: App) -> None:
    graph = lexical_app.graph
    await graph.state("fetch", "guides", nodes=[GUIDE])
    for outcome in ("unknown", "misled", "success", "success"):
        scored = await graph.record_usage(
            GUIDE.id, agent_id="coder", outcome=outcome, use="session 1", project="shop"
        )
    [found] = (await graph.get([GUIDE.id])).values()
    counts = await graph.counts(project="shop")

    assert (scored.access_count, scored.successes, scored.misled) == (1, 1, 0)
    assert isinstance(found, ExternalDoc)
    assert found.access_count == 1
    assert found.relevance_score == pytest.approx(scored.relevance.relevance)
    assert found.last_accessed is not None
    assert counts.entities["KnowledgeUsage"] == counts.relations["USED"] == 1


async def test_stating_a_document_again_keeps_what_was_learned(lexical_app: App) -> None:
    graph = lexical_app.graph
    await graph.state("fetch", "guides", nodes=[GUIDE])
    await graph.record_usage(GUIDE.id, agent_id="coder", outcome="success")
    await graph.state("fetch", "guides", nodes=[replace(GUIDE, content_hash="2" * 64)])
    [scored] = (await graph.scores([GUIDE.id])).values()

    assert (scored.access_count, scored.successes) == (1, 1)


async def test_a_used_document_goes_when_its_source_takes_it_back(lexical_app: App) -> None:
    graph = lexical_app.graph
    await graph.state("fetch", "guides", nodes=[GUIDE])
    await graph.record_usage(GUIDE.id, agent_id="coder", outcome="success", use="1")
    await graph.retract("fetch")
    counts = await graph.counts()

    assert await graph.get([GUIDE.id]) == {}
    assert counts.entities == {"KnowledgeUsage": 1}  # that it was used stays known
    assert counts.relations == {}


async def test_apis_can_be_used_too_and_code_cannot(lexical_app: App) -> None:
    graph = lexical_app.graph
    await graph.state("environment", "requests", nodes=[GET])
    scored = await graph.record_usage(GET.id, agent_id="coder", outcome="success", use="1")
    again = await graph.record_usage(GET.id, agent_id="coder", outcome="success", use="2")
    await graph.state("link", FILE.path, project="shop", nodes=[FILE])

    assert (scored.successes, again.successes) == (1, 2)
    with pytest.raises(BadInput, match="is not knowledge"):
        await graph.record_usage(FILE.id, agent_id="coder", project="shop")
    with pytest.raises(BadInput, match="no knowledge with the id"):
        await graph.record_usage(FILE.id, agent_id="coder")
    with pytest.raises(BadInput, match="no outcome 'great'"):
        await graph.record_usage(GET.id, agent_id="coder", outcome="great")
    with pytest.raises(BadInput, match="no agent"):
        await graph.record_usage(GET.id, agent_id=" ")


async def test_scores_age_and_the_lists_follow(lexical_app: App) -> None:
    graph = lexical_app.graph
    old = doc("Old", category="api", last_updated=NOW - timedelta(days=700))
    new = doc("New", source="real_python", category="api", last_updated=NOW)
    graph._now = lambda: NOW - timedelta(days=690)  # when the old one was fresh
    await graph.state("fetch", "old", nodes=[old])
    graph._now = lambda: NOW
    await graph.state("fetch", "new", nodes=[new])
    before = [row["name"] for row in await graph.query("top_documents", category="api",
                                                       language="python")]  # fmt: skip
    changed = await graph.rescore()
    after = [row["name"] for row in await graph.query("top_documents", category="api",
                                                      language="python")]  # fmt: skip

    assert (before, after) == (["Old", "New"], ["New", "Old"])
    assert changed == 1
    assert await graph.rescore() == 0


async def test_lists_hold_the_best_twenty(lexical_app: App) -> None:
    graph = lexical_app.graph
    docs = [doc(f"Page {n:02}", last_updated=NOW - timedelta(days=10 * n)) for n in range(30)]
    graph._now = lambda: NOW
    await graph.state("fetch", "pages", nodes=docs)
    rows = await graph.query("top_documents", category="reference", language="python")
    await graph.retract("fetch")
    gone = await graph.query("top_documents", category="reference", language="python")

    assert [row["name"] for row in rows] == [f"Page {n:02}" for n in range(20)]
    assert gone == []
    assert await graph.find(KnowledgeUsage, ["1"]) == []


async def test_relevant_documents_are_found_by_words_and_ranked(fake_app: App) -> None:
    graph = fake_app.graph
    await graph.state(
        "fetch",
        "guides",
        nodes=[
            doc("Retry with backoff", summary="To retry a request with backoff."),
            doc("Retry on a forum", summary="retry request with backoff", source="forum_post"),
            doc("Parsing dates", summary="How dates are parsed."),
            doc("Retry in Go", summary="retry a request with backoff", language="Go"),
        ],
    )  # fmt: skip
    assert await graph.relevant("retry a request") == []  # stored, and not yet searchable
    await fake_app.process_queue()
    found = await graph.relevant("retry a request with backoff", language="Python", limit=2)
    await graph.retract("fetch")

    assert [each.document.title for each in found] == ["Retry with backoff", "Retry on a forum"]
    assert found[0].scored.relevance.similarity > 0.5
    assert await graph.relevant("retry a request") == []
    assert await fake_app.list_collections("external-knowledge")


async def test_nothing_is_relevant_where_there_is_nothing(lexical_app: App) -> None:
    assert await lexical_app.graph.relevant("anything") == []
