"""`vade eval capture`: what is kept of real searches, and what is not."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from vademecum.app import App
from vademecum.evaluate.capture import harmless
from vademecum.evaluate.gold import read_gold
from vademecum.settings import Settings
from vademecum.types import Query

Vade = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[[dict[str, str | bytes]], Path]

DOCUMENTS: dict[str, str | bytes] = {
    "rain.md": "# Rain\n\nRain falls from clouds.\n\n## Hail\n\nHail is made of ice.\n",
    "wind.md": "# Wind\n\nWind moves clouds and rain.\n",
    "sql.md": "# Waits\n\nLook at pg_stat_activity, or ask Zbigniew.\n",
}


async def asked(app: App, text: str) -> None:
    await app.search(Query(text=text, collection="sky", mode="lexical"))


async def rows(app: App) -> list[tuple[str, str, str]]:
    async with app.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT query, path, section_id FROM search_log ORDER BY id"
        )
        return await cursor.fetchall()


@pytest.fixture
async def sky(lexical_app: App, write: Write) -> App:
    await lexical_app.ingest.bulk_index(write(DOCUMENTS), collection="sky")
    return lexical_app


async def test_a_source_read_after_a_search_becomes_a_question(
    sky: App, vade: Vade, tmp_path: Path
) -> None:
    await asked(sky, "clouds and rain")
    await sky.shelf.read("sky", "wind.md")
    await sky.shelf.read_reference("sky/rain.md#rain")
    await asked(sky, "Hail")
    await sky.shelf.read_reference("sky/rain.md#hail")
    await asked(sky, "hail")
    await sky.shelf.read_reference("sky/rain.md#hail")

    gold = tmp_path / "captured.jsonl"
    done = vade("eval", "capture", "-c", "sky", "-o", gold)

    assert done.returncode == 0, done.stderr
    found = {
        question.query: [(e.path_contains, e.section_contains) for e in question.expect]
        for question in read_gold(gold)
    }
    assert found == {
        "clouds and rain": [("rain.md", "rain"), ("wind.md", None)],
        "Hail": [("rain.md", "hail")],
    }
    notes = [json.loads(line)["note"] for line in gold.read_text().splitlines()]
    assert [note.split(",")[0] for note in notes] == ["read 2 times", "read 2 times"]


async def test_what_was_not_read_after_a_search_that_found_it_is_not_kept(sky: App) -> None:
    await sky.shelf.read("sky", "wind.md")  # nobody searched
    await asked(sky, "hail")
    await sky.shelf.read("sky", "wind.md")  # nothing that was found
    await asked(sky, "rain")
    await sky.answer("What is hail made of?", collection="sky")

    assert await rows(sky) == []


async def test_reading_twice_is_one_use(sky: App) -> None:
    await asked(sky, "hail")
    for _ in range(3):
        await sky.shelf.read("sky", "rain.md")

    assert await rows(sky) == [("hail", "rain.md", "")]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("why does rain fall", True),
        ("pg_stat_activity", True),
        ("pg_stat_activity for Zbigniew", True),
        ("rain on 613-555-0142", False),
        ("rain for alice@example.org", False),
        ("rain at the house of Gwendolyn Featherstonehaugh", False),
        ("rain sk-live-4eC39HqLyjWDarjtT1zdp7dc", False),
    ],
)
async def test_a_query_with_private_data_is_not_written_down(
    sky: App, query: str, kept: bool
) -> None:
    found = await sky.search(Query(text=query, collection="sky", mode="lexical"))
    assert harmless(query, found.results) is kept
    await sky.shelf.read("sky", found.results[0].path)

    assert len(await rows(sky)) == int(kept)


async def test_old_rows_go_with_the_next_use(sky: App) -> None:
    await asked(sky, "hail")
    await sky.shelf.read("sky", "rain.md")
    async with sky.database.connection() as connection:
        await connection.execute("UPDATE search_log SET used_at = now() - interval '91 days'")
    assert await sky.evaluation.captured("sky", days=90) == []
    await asked(sky, "wind")
    await sky.shelf.read("sky", "wind.md")

    assert await rows(sky) == [("wind", "wind.md", "")]


async def test_nothing_is_kept_where_it_is_turned_off(
    settings: Settings, write: Write, vade: Vade
) -> None:
    off = replace(settings, embedder="none", search_log_days=0)
    async with App.open(off) as app:
        await app.ingest.bulk_index(write(DOCUMENTS), collection="sky")
        await asked(app, "hail")
        await app.shelf.read("sky", "rain.md")

        assert await rows(app) == []

    done = vade("eval", "capture", "-c", "sky", VADE_SEARCH_LOG_DAYS="0")
    assert done.returncode == 2
    assert "VADE_SEARCH_LOG_DAYS" in done.stderr


async def test_it_can_be_forgotten_and_goes_with_its_collection(sky: App, vade: Vade) -> None:
    await asked(sky, "hail")
    await sky.shelf.read("sky", "rain.md")

    done = vade("eval", "capture", "-c", "sky", "--forget", "--json")
    assert json.loads(done.stdout) == {"collection": "sky", "forgotten": 1}

    await asked(sky, "hail")
    await sky.shelf.read("sky", "rain.md")
    await sky.delete_collection("sky")
    assert await rows(sky) == []


def test_a_reference_is_read(vade: Vade, write: Write) -> None:
    vade("bulk-index", write(DOCUMENTS), "-c", "sky", VADE_EMBEDDER="none")

    assert vade("read", "sky/rain.md#hail").stdout.strip() == "## Hail\n\nHail is made of ice."
    assert vade("read", "[source: sky/wind.md]").stdout.startswith("# Wind")
    for wrong in ("sky", "sky/nowhere.md", "sea/rain.md", "sky/rain.md#snow"):
        done = vade("read", wrong)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
