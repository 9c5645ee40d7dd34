"""Notes in a real database: saved, found, replaced, and never another project's."""

import asyncio
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from vademecum.app import App
from vademecum.errors import BadInput


async def test_a_note_is_saved_and_found(fake_app: App) -> None:
    saved = await fake_app.notes.save(
        "shop",
        "Orders are written by the worker only.",
        type="decision",
        tags=["DB", "orders"],
        importance=8,
        evidence=["src/worker.py:12"],
        agent="coder",
    )
    assert saved.searchable
    assert saved.replaced == []
    [found] = await fake_app.notes.search("shop", "who writes orders")
    assert found.note == saved.note
    assert found.note.tags == ["db", "orders"]
    assert found.note.title == "Orders are written by the worker only"
    assert found.similarity is not None
    assert found.lexical
    assert await fake_app.notes.search("shop", "orders", importance=9) == []
    assert await fake_app.notes.search("shop", "orders", type="pattern") == []
    assert await fake_app.notes.search("shop", "orders", tags=["ui"]) == []
    assert len(await fake_app.notes.search("shop", "orders", tags=["db"])) == 1
    [listed] = await fake_app.notes.list_notes("shop", tags=["orders"], importance=8)
    assert listed.id == saved.note.id


async def test_notes_whose_type_was_called_kind_keep_it(lexical_app: App) -> None:
    saved = await lexical_app.notes.save("shop", "Orders are written at night.", type="decision")
    async with lexical_app.database.connection() as connection:
        await connection.execute("DELETE FROM schema_migrations WHERE name = '0041_note_types.sql'")
        await connection.execute("ALTER TABLE notes RENAME COLUMN type TO kind")
        await connection.execute(
            "UPDATE crawled_documents SET metadata = metadata - 'type' || %(old)s,"
            " facets = facets - 'type' || %(old)s",
            {"old": Jsonb({"kind": "decision"})},
        )

    async with App.open(lexical_app.settings) as app:
        assert [one.type for one in await app.notes.list_notes("shop")] == ["decision"]
        [found] = await app.notes.search("shop", "orders", type="decision")
        assert found.note.id == saved.note.id
        assert await app.notes.search("shop", "orders", type="pattern") == []


async def test_a_note_that_says_otherwise_replaces_the_older_one(fake_app: App) -> None:
    old = await fake_app.notes.save("shop", "The pool has 6 connections.")
    new = await fake_app.notes.save("shop", "The pool has 12 connections.")
    [gone] = new.replaced
    assert (gone.id, gone.why) == (old.note.id, "12 instead of 6")
    assert [one.id for one in await fake_app.notes.list_notes("shop")] == [new.note.id]
    assert [f.note.id for f in await fake_app.notes.search("shop", "pool")] == [new.note.id]
    shown, replaced = await fake_app.notes.show("shop", new.note.id)
    assert [one.id for one in replaced] == [old.note.id]
    kept, _ = await fake_app.notes.show("shop", old.note.id)
    assert (kept.replaced_by, kept.replaced_why) == (shown.id, "12 instead of 6")
    await fake_app.notes.restore("shop", old.note.id)
    assert len(await fake_app.notes.list_notes("shop")) == 2
    assert len(await fake_app.notes.search("shop", "pool")) == 2


async def test_replaced_by_title_by_name_and_not_across_types(fake_app: App) -> None:
    save = fake_app.notes.save
    first = await save("shop", "Use tabs", title="Style", type="convention")
    other = await save("shop", "About our style", title="Style", type="context")
    assert other.replaced == []
    second = await save("shop", "Spaces it is", title="style", type="convention")
    assert [one.id for one in second.replaced] == [first.note.id]
    third = await save("shop", "No style guide at all", replaces=[other.note.id])
    assert [one.why for one in third.replaced] == ["the new note names it"]


async def test_the_same_again_is_confirmed(fake_app: App) -> None:
    first = await fake_app.notes.save("shop", "The port is 80.", tags=["a"], importance=3)
    again = await fake_app.notes.save(
        "shop", "the port is 80", tags=["b"], importance=7, evidence=["conf"]
    )
    assert again.confirmed
    assert again.note.id == first.note.id
    assert (again.note.importance, again.note.tags, again.note.evidence) == (
        7,
        ["a", "b"],
        ["conf"],
    )


async def test_projects_do_not_see_each_other(fake_app: App) -> None:
    mine = await fake_app.notes.save("shop", "The pool has 6 connections.")
    other = await fake_app.notes.save("blog", "The pool has 12 connections.")
    assert other.replaced == []
    assert [f.note.id for f in await fake_app.notes.search("shop", "pool")] == [mine.note.id]
    with pytest.raises(BadInput):
        await fake_app.notes.show("blog", mine.note.id)
    with pytest.raises(BadInput):
        await fake_app.notes.remove("blog", mine.note.id)
    with pytest.raises(BadInput):
        await fake_app.notes.save("blog", "x", replaces=[mine.note.id])
    assert await fake_app.notes.projects() == [("blog", 1), ("shop", 1)]


async def test_removed_for_good(fake_app: App) -> None:
    saved = await fake_app.notes.save("shop", "The secret is on the wall.")
    await fake_app.notes.remove("shop", saved.note.id)
    assert await fake_app.notes.list_notes("shop") == []
    assert await fake_app.notes.search("shop", "secret wall") == []
    async with fake_app.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT count(*) FROM notes WHERE content LIKE '%%wall%%'"
        )
        assert await cursor.fetchone() == (0,)
        cursor = await connection.execute("SELECT count(*) FROM document_chunks")
        assert await cursor.fetchone() == (0,)


async def test_two_writers_leave_one_note_that_holds(fake_app: App) -> None:
    notes = [f"The pool has {n} connections." for n in range(2, 8)]
    await asyncio.gather(*(fake_app.notes.save("shop", text) for text in notes))
    assert len(await fake_app.notes.list_notes("shop")) == 1


async def test_wrong_input_changes_nothing(fake_app: App) -> None:
    for wrong in (
        {"content": " "},
        {"content": "x", "project": ""},
        {"content": "x", "type": "gossip"},
        {"content": "x", "importance": 11},
        {"content": "x" * 20_001},
        {"content": "x", "tags": ["a,b"]},
        {"content": "x\0"},
        {"content": "x", "replaces": [uuid4()]},
    ):
        with pytest.raises(BadInput):
            await fake_app.notes.save(**({"project": "shop"} | wrong))  # type: ignore[arg-type]
    assert await fake_app.notes.list_notes("shop") == []
    assert await fake_app.notes.search("shop", "x") == []
