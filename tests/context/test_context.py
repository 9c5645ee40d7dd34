"""The context of a task, over real notes, memory and graph."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graph.environments import install, project
from vademecum.app import App
from vademecum.errors import BadInput
from vademecum.graph.nodes import APIReference, ExternalDoc

LIBRARY = {
    "lib/__init__.py": '''
        class Client:
            """Talks to the service."""

            def get(self, name: str) -> str:
                """Get it."""

            def old(self) -> None:
                """.. deprecated:: 1.5 Use :meth:`get` instead."""
        ''',
}
TRACE = (
    'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
    "ValueError: unknown colour 'mauve'\n"
)


@pytest.fixture
async def shop(fake_app: App, tmp_path: Path) -> Path:
    """A linked project that uses one API of its library."""
    install(tmp_path / "shop" / ".venv", "lib", "2.0", LIBRARY)
    root = project(
        tmp_path / "shop", {"a.py": "import lib\n\ndef f():\n    return lib.Client().get('x')\n"}
    )
    await fake_app.code.link(root)
    return root


async def test_notes_come_first_and_only_important_ones(fake_app: App) -> None:
    for number, importance in ((1, 4), (2, 5), (3, 9), (4, 6), (5, 7)):
        await fake_app.notes.save(
            "shop", f"colour rule {'abcde'[number - 1]} holds", importance=importance
        )
    found = await fake_app.context.build("colour rule holds", project="shop")
    assert len(found.notes) == 3
    assert all(note.importance >= 5 for note in found.notes)
    assert found.markdown.startswith("## Project-Specific Knowledge\n- ")
    assert found.decision.rule == "enough_notes"
    assert found.outside == []


async def test_nothing_known_is_an_empty_context(fake_app: App) -> None:
    found = await fake_app.context.build("paint the fence", project="shop")
    assert (found.markdown, found.tokens, found.decision.rule) == ("", 0, "nothing_new")


async def test_an_api_that_is_new_to_the_project_is_told_as_advice(
    fake_app: App, shop: Path
) -> None:
    known = await fake_app.context.build("call `lib.Client.get` twice", project="shop")
    assert known.decision.rule == "nothing_new"
    found = await fake_app.context.build("call `lib.Client.old` twice", project="shop")
    assert found.decision.rule == "new_apis"
    assert found.decision.topics == ("lib.Client.old",)
    assert "## External Reference (Advisory)" in found.markdown
    assert "[Installed package, lib 2.0] lib.Client.old" in found.markdown
    assert "WARNING: deprecated in 1.5" in found.markdown


async def test_a_file_at_hand_brings_its_new_apis(fake_app: App, shop: Path) -> None:
    file = shop / "b.py"
    file.write_text("import lib\nlib.Client().old()\n")
    found = await fake_app.context.build("add a call", project="shop", path=file)
    assert found.decision.topics == ("lib.Client.old",)
    with pytest.raises(BadInput):
        await fake_app.context.build("add", project="shop", path=shop / "none.py")


async def test_an_error_is_solved_once(fake_app: App) -> None:
    found = await fake_app.context.build("fix it", project="shop", error=TRACE)
    assert found.decision.rule == "unsolved_error"
    assert found.failure is not None
    await fake_app.context.solve(TRACE, "Add mauve to colours.toml.", project="shop")
    found = await fake_app.context.build("fix it", project="shop", error=TRACE)
    assert found.decision.rule == "solved_error"
    assert "Add mauve to colours.toml." in found.markdown
    assert found.markdown.count(found.failure.pattern if found.failure else "") == 1
    other = await fake_app.context.build("fix it", project="blog", error=TRACE)
    assert other.decision.rule == "unsolved_error"
    with pytest.raises(BadInput):
        await fake_app.context.solve("all good", "x", project="shop")


async def test_documents_are_at_most_two_with_source_version_and_age(fake_app: App) -> None:
    now = datetime.now(UTC)
    docs = [
        ExternalDoc(
            source="python_docs",
            source_url=f"https://docs.example/{n}",
            title=f"Colour parsing {n}",
            content_hash=str(n),
            summary="How colours such as mauve are parsed.",
            last_updated=now - timedelta(days=3),
            version="3.12",
            language="python",
        )
        for n in range(4)
    ]
    await fake_app.graph.state("test", "docs", nodes=docs)
    await fake_app.process_queue()
    found = await fake_app.context.build(
        "according to the documentation, how are colours parsed", project="shop"
    )
    assert len(found.outside) == 2
    assert found.outside[0].age_days == 3
    assert "[Python documentation, 3.12, read 3 days ago] Colour parsing" in found.markdown
    assert "URL: https://docs.example/" in found.markdown


async def test_a_document_about_something_else_is_no_advice(app: App) -> None:
    for title, summary in (("Trees", "A parser of syntax."), ("Pools", "Connection pools.")):
        doc = ExternalDoc(
            source="python_docs",
            source_url=f"https://docs.example/{title}",
            title=title,
            content_hash=title,
            summary=summary,
            last_updated=datetime.now(UTC),
        )
        await app.graph.state("test", title, nodes=[doc])
    await app.process_queue()
    about = await app.context.build("read the documentation of connection pools", project="shop")
    other = await app.context.build("fix it", project="shop", error=TRACE)
    assert [one.title for one in about.outside] == ["Pools"]
    assert (other.outside, other.decision.look_outside) == ([], True)


async def test_the_budget_holds_and_says_what_it_left_out(fake_app: App) -> None:
    await fake_app.notes.save("shop", "colour rule " * 60, title="long one")
    await fake_app.notes.save("shop", "colour rule short holds", title="short one")
    found = await fake_app.context.build("colour rule", project="shop", budget=100)
    assert found.tokens <= 100
    assert found.left_out == ["long one"]
    assert [note.title for note in found.notes] == ["short one"]
    with pytest.raises(BadInput):
        await fake_app.context.build("x", project="shop", budget=5)


async def test_the_user_is_told_between_notes_and_outside(fake_app: App) -> None:
    await fake_app.memory.remember("someone@example.org", "Prefers short answers in tables.")
    await fake_app.notes.save("shop", "colour rule holds")
    found = await fake_app.context.build("colour rule", project="shop", user="someone@example.org")
    notes, user = found.markdown.index("Project-Specific"), found.markdown.index("About the User")
    assert notes < user
    assert found.narrative


async def test_an_outcome_moves_the_rank_and_states_the_decision(fake_app: App, shop: Path) -> None:
    [get] = await fake_app.graph.find(APIReference, ["lib.Client.get"])
    await fake_app.context.record(
        get.id,
        outcome="success",
        agent="coder",
        project="shop",
        decision="Read names by get.",
        error=TRACE,
    )
    kinds = {r.kind for r in await fake_app.graph.relations([get.id], project="shop")}
    assert {"INFORMED_DECISION", "SOLVES", "USED"} <= kinds
    found = await fake_app.context.build("fix it", project="shop", error=TRACE)
    assert [one.title for one in found.outside][:1] == ["lib.Client.get"]
    with pytest.raises(BadInput):
        await fake_app.context.record(get.id, outcome="splendid", agent="coder", project="shop")


async def test_find_api(fake_app: App, shop: Path) -> None:
    [found] = await fake_app.context.find_api("lib.Client.get")
    assert found.text.startswith("get(name: str) -> str")
    assert await fake_app.context.find_api("lib.nothing") == []
