"""install and uninstall: nothing of the user's is lost."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from conftest import Vade
from vademecum.surfaces.claude_code import settings as claude
from vademecum.surfaces.claude_code.install import AGENT

PLUGIN = Path(__file__).parents[2] / "integrations" / "claude-code"
HOOKS = {
    event: claude.http_hook(name, port=1, token="t") for event, (name, _) in claude.EVENTS.items()
}
THEIRS: dict[str, Any] = {
    "model": "opus",
    "permissions": {"allow": ["Bash(ls)"]},
    "hooks": {
        "PreToolUse": [
            {"matcher": "WebFetch", "hooks": [{"type": "command", "command": "audit"}]},
        ],
        "Stop": [{"hooks": [{"type": "command", "command": "beep"}]}],
    },
}


def install(vade: Vade, folder: Path, *arguments: str, what: str = "install") -> Any:
    return (
        vade(what, "claude-code", "--transport", "http", *arguments, CLAUDE_CONFIG_DIR=str(folder))
        if what == "install"
        else vade(what, "claude-code", *arguments, CLAUDE_CONFIG_DIR=str(folder))
    )


def test_there_and_back_again(vade: Vade, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(THEIRS, indent=4) + "\n")
    path.chmod(0o640)
    before = path.read_text()

    shown = install(vade, tmp_path, "--dry-run")
    assert "+" in shown.stdout
    assert path.read_text() == before

    done = install(vade, tmp_path, "--yes")
    assert done.returncode == 0, done.stderr
    assert "until `vade serve` does" in done.stderr
    settings = json.loads(path.read_text())
    bearer = settings["hooks"]["PreToolUse"][1]["hooks"][0]["headers"]["Authorization"]
    assert bearer.removeprefix("Bearer ") not in done.stdout + done.stderr
    assert settings["hooks"]["PreToolUse"][0] == THEIRS["hooks"]["PreToolUse"][0]
    assert path.stat().st_mode & 0o777 == 0o600, "it holds a token"

    again = install(vade, tmp_path, "--yes", "--json")
    assert json.loads(again.stdout) == {"changed": False, "files": []}

    gone = install(vade, tmp_path, "--yes", what="uninstall")
    assert gone.returncode == 0, gone.stderr
    assert path.read_text() == before
    assert not (tmp_path / "agents" / "vademecum.md").exists()
    assert not (tmp_path / "agents").exists()


def test_folders_that_were_made_go_with_what_was_in_them(vade: Vade, tmp_path: Path) -> None:
    folder = tmp_path / ".claude"
    install(vade, folder, "--yes")
    assert (folder / "agents" / "vademecum.md").exists()
    install(vade, folder, "--yes", what="uninstall")
    assert not folder.exists()
    assert tmp_path.exists()


def test_an_agent_that_the_user_changed_stays(vade: Vade, tmp_path: Path) -> None:
    install(vade, tmp_path, "--yes")
    agent = tmp_path / "agents" / "vademecum.md"
    agent.write_text("mine")
    install(vade, tmp_path, "--yes")
    install(vade, tmp_path, "--yes", what="uninstall")
    assert agent.read_text() == "mine"


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}'])
def test_settings_that_cannot_be_read_are_left_alone(vade: Vade, tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    for what in ("install", "uninstall"):
        refused = install(vade, tmp_path, "--yes", what=what)
        assert refused.returncode == 2
        assert "Traceback" not in refused.stderr
    assert path.read_text() == text
    assert os.listdir(tmp_path) == ["settings.json"]


def test_without_a_yes_nothing_is_changed(vade: Vade, tmp_path: Path) -> None:
    assert install(vade, tmp_path).returncode != 0
    assert install(vade, tmp_path, "--json").returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(vade: Vade, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    folder = tmp_path / "claude"
    folder.mkdir()
    (folder / "settings.json").symlink_to(real)
    install(vade, folder, "--yes")
    assert (folder / "settings.json").is_symlink()
    assert "hooks" in json.loads(real.read_text())


def test_a_projects_settings_hold_no_token(
    vade: Vade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert vade("install", "claude-code", "--project", "--transport", "http").returncode == 2
    done = vade("install", "claude-code", "--project", "--yes")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / ".claude" / "settings.json").read_text()
    assert "vade-hook pre-tool-use" in text
    assert "Bearer" not in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
GROUPS = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.dictionaries(st.text(), JSON, max_size=2), max_size=3)}
    )
    | JSON,
    max_size=3,
)


@settings_of_hypothesis(deadline=None)
@given(
    settings=st.dictionaries(st.text().filter(lambda key: key != "hooks"), JSON, max_size=3),
    hooks=st.dictionaries(
        st.sampled_from(["PreToolUse", "PostToolUse", "Stop"]), GROUPS, min_size=1, max_size=3
    ),
)
def test_any_settings_come_back_as_they_were(settings: Any, hooks: Any) -> None:
    theirs = {**settings, "hooks": hooks}
    with_ours = claude.with_hooks(theirs, HOOKS, "x")
    assert claude.with_hooks(with_ours, HOOKS, "x") == with_ours
    left = claude.without_hooks(with_ours, "x")
    # An event with an empty list of hooks is the one thing that does not come back.
    theirs["hooks"] = {event: groups for event, groups in hooks.items() if groups}
    left["hooks"] = {event: groups for event, groups in left.get("hooks", {}).items() if groups}
    assert left == theirs


def test_the_plugin_is_what_install_does() -> None:
    assert (PLUGIN / "agents" / "vademecum.md").read_text() == AGENT.read_text()
    plugin = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    commands = {
        event: claude.command_hook(name, command="vade-hook EVENT")
        for event, (name, _) in claude.EVENTS.items()
        if event != claude.CONTEXT  # off unless it is asked for
    }
    assert plugin == claude.with_hooks({}, commands, "x")["hooks"]
