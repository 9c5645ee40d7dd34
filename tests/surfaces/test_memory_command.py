"""`vade memory`, each subcommand with right and with wrong input."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conftest import Vade
from vademecum.settings import Settings
from vademecum.surfaces.cli.memory import memory_command

USER = ("--user", "alice.n@forces.example")
OTHER = ("--user", "boris.k@forces.example")


def parsed(text: str) -> Any:
    return json.loads(text)


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    path = tmp_path / "mail.txt"
    path.write_text("I prefer concise answers. My SN is A12 345 678.")
    return path


@pytest.fixture
def remembered(vade: Vade) -> Vade:
    """A user with two versions: concise, then detailed answers."""
    for wish in ("concise", "detailed"):
        done = vade("memory", "remember", f"I prefer {wish} answers.", *USER)
        assert done.returncode == 0, done.stderr
    return vade


def test_update_takes_an_exchange_once_and_says_what_was_left_out(vade: Vade, mail: Path) -> None:
    command = ("memory", "update", *USER, "--exchange", "7", "--message", mail)

    first = vade(*command)
    again = parsed(vade(*command, "--json").stdout)

    assert first.stdout == "version 1\n"
    assert "left out: 1 (number)" in first.stderr
    assert "345" not in first.stdout + first.stderr
    assert (again["changed"], again["version"]) == (False, 1)


def test_show_remember_and_search(remembered: Vade) -> None:
    shown = parsed(remembered("memory", "show", *USER, "--json").stdout)
    assert set(shown) == {"project", "content", "version", "updated_at"}
    assert shown["version"] == 2
    assert shown["content"] + "\n" == remembered("memory", "show", *USER).stdout

    found = parsed(remembered("memory", "search", "concise answers", *USER, "--json").stdout)
    assert "concise" in found["results"][0]["passage"]["text"]
    assert "Nothing was found." in remembered("memory", "search", "concise", *OTHER).stdout
    assert "Nothing is remembered" in remembered("memory", "show", *OTHER).stdout


def test_versions_diff_and_undo(remembered: Vade) -> None:
    assert [v["version"] for v in parsed(remembered("memory", "versions", *USER, "--json").stdout)]
    assert remembered("memory", "versions", *USER).stdout.count("remember") == 2
    assert "Nothing is remembered" in remembered("memory", "versions", *OTHER).stdout
    change = parsed(remembered("memory", "diff", "1", "2", *USER, "--json").stdout)
    assert change["diff"] + "\n" == remembered("memory", "diff", "1", "2", *USER).stdout
    assert "detailed" in change["diff"]

    assert "detailed" not in remembered("memory", "undo", *USER).stdout
    assert parsed(remembered("memory", "show", *USER, "--json").stdout)["version"] == 3


def test_edit_reads_a_file_and_passes_the_gate(vade: Vade, tmp_path: Path) -> None:
    text = tmp_path / "memory.txt"
    text.write_text("Work context\nWrites tools.\nWorks with Sgt Tremblay in Gagetown.\n")

    done = vade("memory", "edit", *USER, "--file", text)

    assert done.returncode == 0, done.stderr
    assert vade("memory", "show", *USER).stdout == "Work context\nWrites tools.\n"


def test_export_to_a_file_and_forget(remembered: Vade, tmp_path: Path) -> None:
    out = tmp_path / "held.json"
    assert remembered("memory", "export", *USER, "--json", "--out", out).returncode == 0
    held = parsed(out.read_text())
    assert len(held["memories"][0]["versions"]) == 2
    assert "detailed" in remembered("memory", "export", *USER).stdout

    unsure = remembered("memory", "forget", *USER)
    assert unsure.returncode == 1
    assert "detailed" in remembered("memory", "show", *USER).stdout

    receipt = parsed(remembered("memory", "forget", *USER, "--yes", "--json").stdout)
    assert receipt["completed_at"]
    assert receipt["removed"]["memory_versions"] == 2
    assert "Nothing is held" in remembered("memory", "forget", *USER, "--yes").stdout


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("show",), "--user"),
    (("show", "--user", ""), "no user was named"),
    (("show", *USER, "--project", "Tremblay 2024"), "project's name"),
    (("remember", "", *USER), "nothing to remember"),
    (("search", "", *USER), "query is empty"),
    (("search", "wish", *USER, "-k", "0"), "k must be 1 to 100"),
    (("search", "wish", *USER, "-k", "many"), "not a valid integer"),
    (("diff", "1", "9", *USER), "no version 9"),
    (("diff", "one", "2", *USER), "not a valid integer"),
    (("undo", *OTHER), "nothing to undo"),
    (("update", *USER, "--exchange", "1"), "--message"),
    (("update", *USER, "--exchange", "", "--message", "mail.txt"), "no id"),
    (("update", *USER, "--exchange", "1", "--message", "absent"), "No such file"),
    (("update", *USER, "--exchange", "1", "--message", "blank"), "message is empty"),
    (("update", *USER, "--exchange", "1", "--message", "binary"), "not text in UTF-8"),
    (("edit", *USER), "--file"),
    (("edit", *USER, "--file", "blank"), "text is empty"),
    (("edit", *USER, "--file", "binary"), "not text in UTF-8"),
    (("export", *USER, "--out", "absent/held.json"), "cannot write"),
    (("forget", "--yes"), "--user"),
    (("mention", *USER), "No such command"),
]


def test_wrong_input_is_told_and_changes_nothing(
    vade: Vade, mail: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    vade("memory", "remember", "I prefer concise answers.", *USER)
    (mail.parent / "blank").write_text(" \n")
    (mail.parent / "binary").write_bytes(b"\xd0\xff\x00")
    monkeypatch.chdir(mail.parent)
    place = {"VADE_HOME": str(settings.home), "VADE_DATABASE_URL": str(settings.database_url)}

    for arguments, complaint in WRONG:
        done = CliRunner().invoke(memory_command, arguments, env=place)
        assert (done.exit_code, complaint in done.stderr) == (2, True), (arguments, done.output)
        assert "bug" not in done.stderr

    assert parsed(vade("memory", "show", *USER, "--json").stdout)["version"] == 1


def test_an_error_as_json(vade: Vade) -> None:
    error = parsed(vade("memory", "show", "--user", " ", "--json").stdout)

    assert error["error"] == "BadInput"
    assert "--user" in error["hint"]
