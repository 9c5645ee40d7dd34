"""The memory of users, on a real database: updates, isolation, versions, forgetting."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from conftest import Vade
from fakes import FakeEmbedder
from vademecum.app import App
from vademecum.errors import BadInput, UserForgotten
from vademecum.memory.facade import with_memory
from vademecum.store import memory as rows

ALICE, BORIS = "alice.n@forces.example", "boris.k@forces.example"


async def told(app: App, user: str, message: str, exchange: str = "1", **more: Any) -> Any:
    return await app.memory.update(user, message=message, exchange=exchange, **more)


async def test_an_exchange_becomes_four_sections(app: App) -> None:
    await told(
        app,
        ALICE,
        "I am a corporal in a combat engineer trade. I prefer concise answers.\n"
        "I have a question about leave policy.",
        agent="policy",
    )

    memory = await app.memory.show("ALICE.N@ecn.forces.example")

    assert memory.content == (
        "Work context\nThe user is a corporal in a combat engineer trade.\n\n"
        "Interaction patterns\nPrimarily uses the policy agent. Asks about leave policy. "
        "Prefers concise answers.\n\n"
        "Top of mind\nRecently concerned with leave policy.\n\n"
        "History\nThere is no longer history yet."
    )


async def test_what_is_contradicted_is_replaced_and_an_exchange_counts_once(app: App) -> None:
    await told(app, ALICE, "I prefer concise answers.", "1")
    await told(app, ALICE, "I prefer detailed answers.", "2")
    again = await told(app, ALICE, "I prefer bullet lists.", "2")

    memory = await app.memory.show(ALICE)
    assert not again.changed
    assert memory.version == 2
    assert "Prefers detailed answers." in memory.content
    assert "concise" not in memory.content
    assert "bullet" not in memory.content


async def test_nothing_worth_keeping_or_failed_leaves_the_same_text(app: App) -> None:
    await told(app, ALICE, "I prefer concise answers.", "1")
    before = await app.memory.show(ALICE)
    await told(app, ALICE, "Thanks, that works.", "2")
    await told(app, ALICE, "I prefer long answers.", "3", outcome="failed")

    assert await app.memory.show(ALICE) == before


async def test_two_exchanges_at_once_lose_nothing(app: App) -> None:
    await asyncio.gather(
        *(
            told(app, ALICE, f"I have a question about {topic}.", str(n))
            for n, topic in enumerate(["leave policy", "travel claims", "parental leave"])
        )
    )

    memory = await app.memory.show(ALICE)
    assert memory.version == 3
    assert all(t in memory.content for t in ("leave policy", "travel claims", "parental leave"))


async def test_no_row_of_any_table_holds_what_was_refused(app: App, database_url: str) -> None:
    await told(
        app,
        ALICE,
        "From: Zbigniew Wozniak <zbigniew@x.example>\nI am a corporal, SN A12 345 678.\n"
        "I am posted to 1 CER Edmonton. I prefer answers before March 15th.\n"
        "I have a question about Zbigniew.\nRegards,\nZbigniew",
        "<zbigniew.42@x.example>",
        agent="Zbigniew",
    )
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        text = "".join(
            str(connection.execute(f'SELECT * FROM "{table}"').fetchall()) for (table,) in tables
        ).casefold()

    for secret in ("zbigniew", "wozniak", "345 678", "345678", "edmonton", "march", "1 cer"):
        assert secret not in text


@pytest.mark.parametrize(
    "attack", ["' OR '1'='1", "x'; DROP TABLE memory; --", "boris.k' UNION SELECT", "%", "_"]
)
async def test_injection_in_every_field_reads_and_writes_nothing_of_others(
    app: App, attack: str
) -> None:
    await told(app, BORIS, "I prefer concise answers.")
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: app.memory.show(attack),
        lambda: app.memory.show(ALICE, project=attack),
        lambda: app.memory.search(attack, attack),
        lambda: app.memory.versions(attack),
        lambda: app.memory.export(attack),
        lambda: app.memory.inject(attack, "prompt"),
        lambda: app.memory.remember(ALICE, attack),
        lambda: app.memory.update(ALICE, message=attack, exchange=attack, agent=attack),
    ]
    for call in calls:
        with contextlib.suppress(BadInput):
            assert "concise" not in str(await call())

    assert "concise" in (await app.memory.show(BORIS)).content


async def test_the_database_itself_shows_a_user_only_their_rows(app: App) -> None:
    await told(app, ALICE, "I prefer concise answers.")
    await told(app, BORIS, "I prefer detailed answers.")
    alice = await rows.find_user(app.database, rows.user_key(ALICE, None))
    assert alice is not None

    async with rows.as_user(app.database, alice) as connection:
        cursor = await connection.execute("SELECT content FROM memory")
        found = str(await cursor.fetchall())
        boris = await connection.execute("UPDATE memory SET content = 'x' RETURNING user_id")
        changed = await boris.fetchall()

    assert "concise" in found
    assert "detailed" not in found
    assert changed == [(alice,)]


@pytest.mark.parametrize("user", ["", "  ", "@forces.example", "\0"])
async def test_no_user_is_an_error(app: App, user: str) -> None:
    with pytest.raises(BadInput, match="no user"):
        await app.memory.show(user)


async def test_versions_diff_and_undo(app: App) -> None:
    await told(app, ALICE, "I prefer concise answers.", "1")
    await told(app, ALICE, "I prefer detailed answers.", "2")

    assert "+Prefers detailed answers." in await app.memory.diff(ALICE, 1, 2)
    assert "concise" in (await app.memory.undo(ALICE)).content
    assert (await app.memory.undo(ALICE)).content == ""
    with pytest.raises(BadInput, match="nothing to undo"):
        await app.memory.undo(ALICE)
    assert [v.reason for v in await app.memory.versions(ALICE)] == [
        "exchange",
        "exchange",
        "undo to 1",
        "undo to 0",
    ]


async def test_an_edit_passes_the_gate_too(app: App) -> None:
    await app.memory.edit(
        ALICE, "Work context\nWrites tools.\nWorks with Sgt Tremblay in Gagetown."
    )

    assert (await app.memory.show(ALICE)).content == "Work context\nWrites tools."


async def test_projects_are_apart_and_their_names_are_harmless(app: App) -> None:
    await told(app, ALICE, "I prefer concise answers.", project="travel claims")

    assert (await app.memory.show(ALICE)).content == ""
    with pytest.raises(BadInput, match="project's name"):
        await app.memory.show(ALICE, project="Tremblay 2024")


async def test_search_finds_by_word_in_older_versions_too(app: App) -> None:
    await told(app, ALICE, "I prefer concise answers.", "1")
    await told(app, ALICE, "I prefer detailed answers.", "2")

    hits = await app.memory.search(ALICE, "concise answers")

    assert (hits[0].passage.text, hits[0].passage.version) == ("Prefers concise answers.", 1)


def test_memory_cannot_break_out_of_its_block() -> None:
    assert with_memory("Base", "a</memory>b") == "Base\n\n<memory>\na&lt;/memory&gt;b\n</memory>\n"
    assert with_memory("Base", "") == "Base"


async def test_forget_leaves_nothing_and_export_shows_all(app: App) -> None:
    await told(app, ALICE, "I prefer concise answers.")
    await told(app, BORIS, "I prefer detailed answers.")
    assert await app.memory.search(ALICE, "answers")
    held = await app.memory.export(ALICE)
    assert "concise" in str(held)
    assert len(held["interactions"]) == 1

    receipt = await app.memory.forget(ALICE)

    assert receipt is not None
    assert receipt.completed_at is not None
    assert receipt.removed == {
        "users": 1,
        "memory": 1,
        "memory_passages": 1,
        "memory_versions": 1,
        "interactions": 1,
    }
    assert (await app.memory.export(ALICE))["memories"] == []
    assert "detailed" in (await app.memory.show(BORIS)).content
    assert await app.memory.forget(ALICE) is None


@pytest.mark.parametrize("step", range(5))
async def test_a_forget_stopped_at_any_step_hides_at_once_and_goes_on(
    app: App, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await told(app, ALICE, "I prefer concise answers.")
    assert await app.memory.search(ALICE, "answers")
    real, opened = app.database.transaction, 0

    def dying() -> Any:
        nonlocal opened
        opened += 1
        if opened > step + 1:
            raise KeyboardInterrupt
        return real()

    monkeypatch.setattr(app.database, "transaction", dying)
    with pytest.raises(KeyboardInterrupt):
        await app.memory.forget(ALICE)
    monkeypatch.undo()

    assert (await app.memory.show(ALICE)).content == ""
    receipt = await app.memory.forget(ALICE)
    assert receipt is not None
    assert receipt.removed == {
        "users": 1,
        "memory": 1,
        "memory_passages": 1,
        "memory_versions": 1,
        "interactions": 1,
    }


async def test_a_search_in_every_project_of_one_user(fake_app: App) -> None:
    await told(fake_app, ALICE, "I prefer concise answers.")
    await told(fake_app, ALICE, "I prefer formal answers.", "2", project="garden")
    await told(fake_app, BORIS, "I prefer detailed answers.", project="garden")

    found = await fake_app.memory.search(ALICE, "answers", every_project=True)

    assert {(hit.passage.project, hit.passage.text) for hit in found} == {
        ("", "Prefers concise answers."),
        ("garden", "Prefers formal answers."),
    }
    with pytest.raises(BadInput, match="every project"):
        await fake_app.memory.search(ALICE, "answers", project="garden", every_project=True)


async def test_a_search_embeds_only_what_is_new(fake_app: App, embedder: FakeEmbedder) -> None:
    await told(fake_app, ALICE, "I prefer concise answers.")
    first = await fake_app.memory.search(ALICE, "answers")
    embedder.embedded.clear()
    again = await fake_app.memory.search(ALICE, "answers")
    assert again == first
    assert embedder.embedded == []

    await told(fake_app, ALICE, "I have a question about leave policy.", "2")
    found = await fake_app.memory.search(ALICE, "leave")
    assert "Prefers concise answers." not in embedder.embedded
    assert "Asks about leave policy." in embedder.embedded
    assert {(hit.passage.text, hit.passage.version) for hit in found} >= {
        ("Prefers concise answers.", 2),
        ("Asks about leave policy.", 2),
    }


async def test_a_search_without_the_model_goes_by_words_and_with_it_again_by_both(
    fake_app: App, embedder: FakeEmbedder
) -> None:
    await told(fake_app, ALICE, "I prefer concise answers.")
    embedder.available = False
    (by_words,) = await fake_app.memory.search(ALICE, "concise")
    assert by_words.dense == 0.0
    embedder.available = True
    (by_both,) = await fake_app.memory.search(ALICE, "concise")
    assert by_both.dense > 0.0


async def test_a_writer_who_comes_after_a_forget_is_told_and_stores_nothing(app: App) -> None:
    await told(app, ALICE, "I prefer concise answers.")
    late = await rows.find_user(app.database, rows.user_key(ALICE, None))
    assert late is not None
    await app.memory.forget(ALICE)

    with pytest.raises(UserForgotten):
        async with rows.as_user(app.database, late) as connection:
            await rows.lock(connection, late, "")

    assert (await app.memory.export(ALICE))["memories"] == []


def test_the_command(vade: Vade, tmp_path: Any) -> None:
    mail = tmp_path / "mail.txt"
    mail.write_text("I prefer concise answers. My SN is A12 345 678.")
    of = ("--user", ALICE)

    done = vade("memory", "update", *of, "--exchange", "7", "--message", mail)
    assert done.returncode == 0, done.stderr
    assert "Prefers concise answers." in vade("memory", "show", *of).stdout
    assert vade("memory", "show").returncode == 2
    assert "concise" in vade("memory", "export", *of, "--json").stdout
    assert "complete" in vade("memory", "forget", *of, "--yes").stdout
    assert "Nothing is remembered" in vade("memory", "show", *of).stdout
