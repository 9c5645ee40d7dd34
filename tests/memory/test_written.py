"""A memory that a language model writes; the model is a fake behind a real wire."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from model_server import Asked, Failure, ModelServer
from vademecum.app import App
from vademecum.inference.language import wire
from vademecum.settings import Settings

USER = "alice.n@forces.example"
EMPTY = {"work_context": "", "interaction_patterns": "", "top_of_mind": "", "history": ""}


def sections(**texts: str) -> str:
    return json.dumps({"changed": True} | EMPTY | texts)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setattr(wire, "FIRST_WAIT", 0.01)
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture
async def app(settings: Settings, served: ModelServer) -> AsyncIterator[App]:
    of = {"model": "ollama:small", "model_for": "memory", "ollama_url": served.url}
    async with App.open(replace(settings, embedder="none", **of)) as app:  # type: ignore[arg-type]
        yield app


async def told(app: App, message: str, exchange: str = "1") -> Any:
    return await app.memory.update(USER, message=message, exchange=exchange, agent="policy")


def replies(*texts: str) -> Callable[[Asked], str]:
    left = list(texts)
    return lambda asked: left.pop(0)


async def test_the_model_is_told_of_memory_and_exchange_and_writes_the_four_sections(
    app: App, served: ModelServer
) -> None:
    served.reply = replies(
        sections(work_context="The user is a corporal.", top_of_mind="Asks about leave."),
    )

    update = await told(app, "I am a corporal, and I ask about leave.")

    (asked,) = served.asked
    assert json.loads(asked.text) == {
        "memory": "",
        "exchange": {
            "user": "I am a corporal, and I ask about leave.",
            "agent": "policy",
            "reply": "",
        },
    }
    assert (update.changed, update.by, update.notice) == (True, "ollama:small", None)
    assert (await app.memory.show(USER)).content == (
        "Work context\nThe user is a corporal.\n\n"
        "Interaction patterns\nNo pattern has shown yet.\n\n"
        "Top of mind\nAsks about leave.\n\n"
        "History\nThere is no longer history yet."
    )
    assert [v.reason for v in await app.memory.versions(USER)] == ["exchange, by ollama:small"]


async def test_a_sentence_that_breaks_the_rules_is_rewritten_once_or_dropped(
    app: App, served: ModelServer, database_url: str
) -> None:
    served.reply = replies(
        sections(
            work_context="The user likes tables. The user serves in Gagetown under Wozniak.",
            history="The user knows Zbigniew.",
        ),
        json.dumps({"sentences": ["The user serves on a base.", "The user knows Zbigniew."]}),
    )

    update = await told(app, "I like tables.")

    assert json.loads(served.asked[1].text) == {
        "sentences": ["The user serves in Gagetown under Wozniak.", "The user knows Zbigniew."]
    }
    assert len(served.asked) == 2
    assert "The user likes tables. The user serves on a base." in update.content
    assert update.dropped == {"name": 1}
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        text = "".join(
            str(connection.execute(f'SELECT * FROM "{table}"').fetchall()) for (table,) in tables
        ).casefold()
    assert not any(secret in text for secret in ("gagetown", "wozniak", "zbigniew"))


async def test_nothing_worth_keeping_leaves_the_same_text(app: App, served: ModelServer) -> None:
    served.reply = replies(
        sections(work_context="The user is a corporal."), json.dumps({"changed": False} | EMPTY)
    )
    await told(app, "I am a corporal.")
    before = await app.memory.show(USER)

    assert not (await told(app, "Thanks, and I prefer tea.", "2")).changed
    assert await app.memory.show(USER) == before


async def test_an_answer_of_the_wrong_form_is_asked_for_once_more(
    app: App, served: ModelServer
) -> None:
    served.reply = replies("Sure!", sections(work_context="The user is a corporal."))
    update = await told(app, "I am a corporal.")
    assert update.by == "ollama:small"

    served.reply = replies("Sure!", '{"changed": 1}')
    second = await told(app, "I prefer tables.", "2")

    assert second.by is None
    assert "the rules wrote it instead" in second.notice
    assert "The user is a corporal." in second.content  # what the model wrote before stays
    assert "Prefers tables." in second.content


async def test_a_model_that_is_away_is_told_and_loses_nothing(
    app: App, served: ModelServer
) -> None:
    served.failures.extend([Failure(status=400)] * 10)

    update = await told(app, "I prefer concise answers.")

    assert "Prefers concise answers." in update.content
    assert update.by is None
    assert update.notice


async def test_an_exchange_is_asked_about_once(app: App, served: ModelServer) -> None:
    served.reply = lambda asked: sections(work_context="The user is a corporal.")
    await told(app, "I am a corporal.")
    assert not (await told(app, "I am a corporal.")).changed
    assert len(served.asked) == 1


async def test_two_exchanges_at_once_lose_nothing(app: App, served: ModelServer) -> None:
    def reply(asked: Asked) -> str:
        seen = json.loads(asked.text)
        mind = seen["memory"].partition("Top of mind\n")[2].partition("\n")[0]
        return sections(top_of_mind=f"{mind} {seen['exchange']['user']}")

    served.reply, served.delay = reply, 0.2
    await asyncio.gather(told(app, "Asks about leave.", "1"), told(app, "Asks about travel.", "2"))

    content = (await app.memory.show(USER)).content
    assert "Asks about leave." in content
    assert "Asks about travel." in content


async def test_no_model_is_asked_that_is_not_meant_for_memories(
    settings: Settings, served: ModelServer
) -> None:
    of = replace(settings, model="ollama:small", ollama_url=served.url)
    async with App.open(of) as app:
        assert (await told(app, "I prefer concise answers.")).by is None
    assert served.asked == []
