"""The hook that tells an agent what is known of its prompt: in few tokens, once, or not at all."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from claude_client import Client, claude
from serving import served
from test_claude_code import a_free_port

from anthropic_server import MessagesServer
from conftest import Vade
from vademecum.app import App
from vademecum.surfaces.hooks import before_prompt

NOTE = "Orders are written by the worker only."
PROMPT = "Please let orders be written by the server."
DONE = "All done."


async def _said(app: App, folder: Path, *, budget: int = 500, **given: Any) -> str | None:
    asked = {"prompt": PROMPT, "cwd": str(folder), "session_id": str(folder)} | given
    said = await before_prompt(app.context, asked, budget=budget)
    if said is None:
        return None
    assert said["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    return str(said["hookSpecificOutput"]["additionalContext"])


async def test_what_is_known_of_a_prompt_is_told_once(fake_app: App, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    (shop / ".git").mkdir(parents=True)
    (shop / "src").mkdir()
    await fake_app.notes.save("shop", NOTE, type="decision", importance=8)
    told = await _said(fake_app, shop / "src")
    assert told is not None
    assert NOTE.rstrip(".") in told
    assert await _said(fake_app, shop / "src") is None
    assert await _said(fake_app, shop, session_id="another")
    # Until there is something new.
    await fake_app.notes.save("shop", "Orders have a number from the server.", importance=9)
    again = await _said(fake_app, shop / "src")
    assert again is not None
    assert "number" in again


@pytest.mark.parametrize(
    "given",
    [
        {"prompt": "yes please"},
        {"prompt": "/compact the orders of the worker"},
        {"prompt": None},
        {"prompt": "Paint the fence green today."},
        {"cwd": None},
        {"cwd": "/elsewhere"},
    ],
    ids=str,
)
async def test_otherwise_nothing_is_said(
    fake_app: App, tmp_path: Path, given: dict[str, Any]
) -> None:
    await fake_app.notes.save("shop", NOTE, importance=8)
    assert await _said(fake_app, tmp_path / "shop", **given) is None


async def test_within_the_budget(fake_app: App, tmp_path: Path) -> None:
    for number, word in enumerate(("orders", "written", "worker")):
        text = f"Orders are written, {word}: " + "and so on " * 60
        await fake_app.notes.save("shop", text, importance=9 - number)
    told = await _said(fake_app, tmp_path / "shop", budget=200)
    assert told is not None
    assert 0 < len(told) <= 200 * 4 + 60


def test_the_real_client_is_told_and_never_held_up(
    vade: Vade, tmp_path: Path, database_url: str
) -> None:
    user = tmp_path / "user"
    (user / ".claude").mkdir(parents=True)
    client = Client(command=claude(), user=user, certificates=tmp_path / "none.pem")
    home, port = tmp_path / "home", a_free_port()
    where = {
        "HOME": str(user),
        "PATH": f"{client.command.parent}:{os.environ['PATH']}",
        "VADE_HOME": str(home),
        "VADE_PORT": str(port),
        "VADE_EMBEDDER": "none",
    }
    path = user / ".claude" / "settings.json"
    install = ("install", "claude-code", "--user", "--yes")
    assert vade(*install, **where).returncode == 0
    assert "UserPromptSubmit" not in json.loads(path.read_text())["hooks"], "off by default"
    assert vade(*install, "--context", **where).returncode == 0
    assert vade(*install, **where).returncode == 0, "again, it stays as it is"
    assert "UserPromptSubmit" in json.loads(path.read_text())["hooks"]
    # The client works in its home, which is no repository: the folder names the project.
    saved = vade("note", "save", NOTE, "-p", user.name, "--importance", "8", **where)
    assert saved.returncode == 0, saved.stderr

    def asked() -> str:
        with MessagesServer([DONE], aside=DONE) as model:
            assert client.ask(model, PROMPT) == DONE
            return json.dumps([request.body for request in model.requests])

    with served(
        home, database_url, port=port, VADE_EMBEDDER="none", VADE_HOOK_CAP_MS="1500"
    ) as running:
        # A busy machine may miss the hook's time limit, and then nothing is told.
        assert any(NOTE.rstrip(".") in asked() for _ in range(4))
        os.kill(running.process.pid, signal.SIGSTOP)
        assert NOTE not in asked(), "a server that does not answer holds nobody up"
        os.kill(running.process.pid, signal.SIGCONT)
        assert running.stop()[0] == 0
    assert NOTE not in asked()
    assert vade(*install, "--no-context", **where).returncode == 0
    assert "UserPromptSubmit" not in json.loads(path.read_text())["hooks"]
