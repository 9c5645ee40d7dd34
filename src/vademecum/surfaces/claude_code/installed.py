"""Whether the hooks that stand in Claude Code's settings reach the server of this home."""

import shlex
import shutil
from pathlib import Path

import httpx

from vademecum.errors import VadeError
from vademecum.settings import Settings
from vademecum.surfaces.claude_code import settings as claude
from vademecum.surfaces.claude_code.install import folder_of, read
from vademecum.surfaces.http.instance import find

AGAIN = "Run `vade install claude-code` again."


async def check_installed(settings: Settings) -> str:
    """What is installed for the user and in the project here. Raises VadeError where it is in
    vain."""
    found = []
    for scope in ("user", "project"):
        path = folder_of(scope) / "settings.json"
        for event, hook in claude.ours(claude.parse(read(path) or "", str(path))):
            if hook.get("type") == "http":
                await _check_http(settings, path, hook)
            else:
                _check_command(settings, path, str(hook.get("command", "")))
            found.append(f"{event} ({scope}, {hook.get('type')})")
    if not found:
        return "nothing is installed in Claude Code; `vade install claude-code` does it"
    waits = "" if find(settings.home) else "; no server runs, so they say nothing"
    return f"Claude Code: {', '.join(found)}{waits}"


async def _check_http(settings: Settings, path: Path, hook: claude.Settings) -> None:
    """Post as the client does."""
    address = find(settings.home)
    if address is None:
        return
    url = str(hook.get("url", ""))
    try:
        async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
            answer = await client.post(url, headers=hook.get("headers"), json={"tool_name": "Read"})
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise VadeError(
            f"{path} has a hook for {url}, where nothing answers ({type(error).__name__});"
            f" the server of this home is at {address.url}",
            hint=f"Start `vade serve` at the hook's port, or set VADE_PORT. {AGAIN}",
        ) from None
    if answer.status_code == 401:
        raise VadeError(f"the token in {path} is not the one that {url} takes", hint=AGAIN)
    if answer.status_code != 200:
        raise VadeError(f"the hook of {path}: {url} answers {answer.status_code}", hint=AGAIN)
    if f":{address.port}/" not in url:
        raise VadeError(
            f"{path} has a hook for {url}, but the server of this home is at {address.url}",
            hint=f"Another server answers there. {AGAIN}",
        )


def _check_command(settings: Settings, path: Path, command: str) -> None:
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    programs = [word for word in words[:1] + words[3:4] if not word.startswith("-")]
    if words[:1] == ["vade-hook"]:
        programs = words[:1]
    for program in programs or [command]:
        if shutil.which(program) is None and not Path(program).is_file():
            raise VadeError(f"the hook of {path} runs {program}, which is not there", hint=AGAIN)
    if "--home" in words[:-1]:
        home = Path(words[words.index("--home") + 1])
        if home != settings.home:
            raise VadeError(f"the hook of {path} asks the server of {home}", hint=AGAIN)
