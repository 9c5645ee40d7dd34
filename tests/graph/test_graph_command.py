"""`vade graph`, as a user runs it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from graph.graph_things import CODE, FILE, FUNCTION, GUIDE, KNOWN, SHARED
from vademecum.app import App
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import counted

Vade = Callable[..., "CompletedProcess[str]"]


def fill(settings: Settings) -> None:
    async def write() -> None:
        async with App.open(settings) as app:
            await app.graph.state("environment", "all", nodes=SHARED, relations=KNOWN)
            await app.graph.state(
                "link", FILE.path, project="shop", nodes=[FILE, FUNCTION], relations=CODE
            )

    asyncio.run(write())


def test_show_query_top_and_outcomes(vade: Vade, settings: Settings) -> None:
    fill(settings)
    shown = vade("graph", "show", "requests.get", "--project", "shop")
    queried = vade(
        "graph", "query", "usable_apis", "-p", "package=lib", "-p", "version=1.10", "--json"
    )
    recorded = vade(
        "graph",
        "record-outcome",
        str(GUIDE.id),
        "--agent",
        "coder",
        "--outcome",
        "misled",
        "--project",
        "shop",
        "--json",
    )
    top = vade("graph", "top", "guide", "--language", "Python", "--json")
    status = vade("graph", "status", "--project", "shop", "--json")
    shared = vade("graph", "status")

    assert "<- DEMONSTRATES CodeExample With a timeout  (environment: all)" in shown.stdout
    assert "-> USED_IN Function fetch  (link: shop/client.py)" in shown.stdout
    assert [row["name"] for row in json.loads(queried.stdout)["rows"]] == ["lib.new"]
    assert json.loads(recorded.stdout)["score"]["misled"] == 1
    assert [row["name"] for row in json.loads(top.stdout)["documents"]] == [
        "Timeouts answered",
        "Requests guide",
    ]
    assert json.loads(status.stdout)["entities"]["Function"] == 1
    assert "Function" not in shared.stdout
    assert shared.stdout.splitlines()[-1].split() == ["3", "shop"]


def test_turns_of_upkeep_are_told_in_words(vade: Vade, settings: Settings) -> None:
    async def take_turns() -> None:
        async with App.open(settings) as app:
            await app.graph.upkeep_if_due()

    asyncio.run(take_turns())
    lines = [line[18:] for line in vade("graph", "changes").stdout.splitlines()]
    told = json.loads(vade("graph", "changes", "--json").stdout)["changes"]

    assert lines == [
        "weekly analysis    0 documents used most, 0 never used, 0 sources, 0 gaps",
        "weekly analysis    began",
        "daily maintenance  0 scores changed, 0 unread texts removed; 0 documents changed,"
        " 0 did not, 0 could not be fetched; newly deprecated: 0 APIs",
        "daily maintenance  began",
    ]
    assert json.loads(told[0]["detail"])["gaps"] == 0


def test_a_decision_and_a_solution_are_kept_with_what_informed_them(
    vade: Vade, settings: Settings, tmp_path: Path
) -> None:
    fill(settings)
    trace = tmp_path / "trace.txt"
    trace.write_text("Traceback (most recent call last):\nKeyError: 'timeout'\n")
    record = ["graph", "record-outcome", str(GUIDE.id), "--agent", "coder", "--project", "shop"]
    for _ in range(2):
        vade(
            *record, "--outcome", "success", "--use", "first", "--error", trace,
            "--decision", "Wait for ten seconds.",
        )  # fmt: skip
    nothing = vade(*record, "--outcome", "success", "--error", __file__)
    shown = vade("graph", "show", str(GUIDE.id), "--project", "shop").stdout
    told = vade("context", "mend it", "--error", trace, "-p", "shop")

    assert "-> INFORMED_DECISION Decision Wait for ten seconds." in shown
    assert "-> SOLVES ErrorPattern KeyError: 'timeout'" in shown
    assert "(1 use, 1 helped, 0 failed, 0 misled)" in shown  # one use, however often it is told
    assert GUIDE.title in told.stdout
    assert nothing.returncode == 2
    assert "no exception" in nothing.stderr


def test_one_is_one_and_a_version_is_named(vade: Vade, settings: Settings) -> None:
    fill(settings)
    shown = vade("graph", "maintain").stdout
    wrong = vade("fetch", "package", "requests==")
    assert [counted(n, "library") for n in (0, 1, 2)] == ["0 libraries", "1 library", "2 libraries"]
    assert "0 documents changed" in shown
    assert (wrong.returncode, "names no version" in wrong.stderr) == (2, True)


def test_what_is_wrong_is_said_in_one_line(vade: Vade) -> None:
    cases = {
        ("show", "nothing.there"): "nothing in the graph is named 'nothing.there'",
        ("show", "x", "--kind", "Cat"): "there is no kind 'Cat' of node",
        ("query", "all"): "there is no query 'all'",
        ("query", "api_uses", "-p", "name"): "'name' is not KEY=VALUE",
        ("query", "usable_apis", "-p", "package=x"): "usable_apis needs version",
    }
    for arguments, message in cases.items():
        done = vade("graph", *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert message in done.stderr
        assert "Traceback" not in done.stderr
