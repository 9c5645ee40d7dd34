"""A move to another embedder is judged before it counts."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import FakeEmbedder
from vademecum.app import App
from vademecum.errors import BadInput
from vademecum.evaluate.gold import Expectation, Question
from vademecum.ingest.report import Listener
from vademecum.settings import Settings
from vademecum.types import Query, Vector

Write = Callable[[dict[str, str | bytes]], Path]

NAMES = [f"animal{number}" for number in range(12)]
PAGES: dict[str, str | bytes] = {
    f"{name}.md": f"# Page\n\nFeed the {name} twice a day.\n" for name in NAMES
}
GOLD = [
    Question(
        id=name,
        query=f"Feed the {name} twice a day.".replace("animal", "kitten"),
        expect=(Expectation(path_contains=f"{name}.md"),),
    )
    for name in NAMES
]


class Knowing(FakeEmbedder):
    """Knows what the documents call a kitten; their words alone do not tell."""

    async def embed_query(self, text: str) -> Vector:
        return await super().embed_query(text.replace("kitten", "animal"))


@pytest.fixture
def embedders() -> dict[str, FakeEmbedder]:
    return {
        "fake:words": Knowing(model="fake"),
        "fake:same": Knowing(model="same"),
        "fake:plain": FakeEmbedder(model="plain"),
    }


@pytest.fixture
async def indexed(
    settings: Settings, embedders: dict[str, FakeEmbedder], write: Write
) -> AsyncIterator[App]:
    async with App.open(replace(settings, embedder="fake:words")) as app:
        app.embedders.opened.update(embedders)
        await app.ingest.bulk_index(write(PAGES))
        yield app


async def found(app: App, text: str) -> tuple[str, list[str]]:
    result = await app.search(Query(text=text, collection="docs", mode="dense"))
    return result.results[0].path, result.notices


async def vectors(app: App, space: int) -> int:
    async with app.database.connection() as connection:
        cursor = await connection.execute(f"SELECT count(*) FROM embeddings_{space}")
        row = await cursor.fetchone()
        return int(row[0]) if row else 0


async def test_a_model_that_answers_as_well_is_swapped_in(indexed: App) -> None:
    said: list[str] = []
    await indexed.moves.reindex(
        "docs", embedder="fake:same", questions=GOLD, listener=Listener(notice=said.append)
    )

    move = await indexed.moves.shown("docs")
    assert move is not None
    assert (move.state, move.done, move.judged_by, move.questions) == ("accepted", True, "gold", 12)
    assert move.verdict is not None
    assert move.verdict.difference.mean >= -0.01
    assert (await indexed.collection("docs")).embedder == "fake:same"
    assert "searched with fake:same now" in said[-1]
    assert await vectors(indexed, 1) == 0


async def test_one_that_answers_worse_is_refused_and_searches_are_as_before(indexed: App) -> None:
    before = await found(indexed, "Feed the kitten7 twice a day.")
    said: list[str] = []
    report = await indexed.moves.reindex(
        "docs", embedder="fake:plain", questions=GOLD, listener=Listener(notice=said.append)
    )

    assert (report.failed, report.pending) == ([], 0)
    move = await indexed.moves.shown("docs")
    assert move is not None
    assert (move.state, move.done, move.filled) == ("refused", False, True)
    assert move.verdict is not None
    assert move.verdict.difference.high < 0
    assert "still searched with fake:words" in said[-1]
    assert (await indexed.collection("docs")).embedder == "fake:words"
    assert await found(indexed, "Feed the kitten7 twice a day.") == before
    # Neither the next drain nor a look of the worker swaps it after all.
    await indexed.process_queue()
    assert (await indexed.collection("docs")).embedder == "fake:words"


async def test_what_comes_after_a_refusal_is_found_by_both_models(
    indexed: App, write: Write
) -> None:
    await indexed.moves.reindex("docs", embedder="fake:plain", questions=GOLD)
    page = "# Page\n\nBrush the unicorn and the animal0.\n"
    folder = write({**PAGES, "animal0.md": page})
    await indexed.ingest.bulk_index(folder, collection="docs")

    assert (await found(indexed, "Brush the unicorn and the animal0."))[0] == "animal0.md"
    assert await vectors(indexed, 1) == await vectors(indexed, 2) == 12


async def test_going_back_keeps_the_vectors_and_purges_the_new_ones(
    indexed: App, embedders: dict[str, FakeEmbedder]
) -> None:
    await indexed.moves.reindex("docs", embedder="fake:plain", questions=GOLD)
    embedders["fake:words"].embedded.clear()

    report = await indexed.moves.abandon("docs")

    assert (report.embedded, report.reused) == (0, 12)
    assert embedders["fake:words"].embedded == []
    assert await indexed.moves.shown("docs") is None
    assert (await indexed.collection("docs")).next_embedder is None
    assert (await vectors(indexed, 1), await vectors(indexed, 2)) == (12, 0)
    assert (await found(indexed, "Feed the kitten7 twice a day."))[0] == "animal7.md"


async def test_a_refused_model_can_be_accepted_or_compared_on_other_questions(
    indexed: App,
) -> None:
    await indexed.moves.reindex("docs", embedder="fake:plain", questions=GOLD)
    again = await indexed.moves.compare("docs")
    assert again.state == "refused"

    move = await indexed.moves.accept("docs")

    assert (move.state, move.done) == ("accepted", True)
    assert (await indexed.collection("docs")).embedder == "fake:plain"
    with pytest.raises(BadInput, match="not on its way"):
        await indexed.moves.accept("docs")


async def test_without_anything_to_judge_by_nothing_is_begun(indexed: App) -> None:
    with pytest.raises(BadInput, match="0 logged searches, at least 10"):
        await indexed.moves.reindex("docs", embedder="fake:same")
    with pytest.raises(BadInput, match="stays the same"):
        await indexed.moves.reindex("docs", questions=GOLD)

    assert (await indexed.collection("docs")).next_embedder is None
    assert await indexed.moves.shown("docs") is None


async def test_logged_searches_judge_where_there_are_enough(indexed: App) -> None:
    for name in NAMES[:10]:
        await indexed.search(Query(text=f"Feed the {name}", collection="docs", mode="lexical"))
        await indexed.shelf.read("docs", f"{name}.md")

    await indexed.moves.reindex("docs", embedder="fake:same")

    move = await indexed.moves.shown("docs")
    assert move is not None
    assert (move.judged_by, move.questions, move.state) == ("logged", 10, "accepted")


async def test_whoever_goes_on_after_a_kill_judges_by_the_same_questions(
    indexed: App, settings: Settings, embedders: dict[str, FakeEmbedder]
) -> None:
    await indexed.moves.reindex("docs", embedder="fake:plain", questions=GOLD, wait=False)
    assert (await indexed.collection("docs")).next_embedder == "fake:plain"

    async with App.open(settings) as other:
        other.embedders.opened.update(embedders)
        await other.process_queue()
        move = await other.moves.shown("docs")

    assert move is not None
    assert (move.state, move.filled, move.questions) == ("refused", True, 12)
