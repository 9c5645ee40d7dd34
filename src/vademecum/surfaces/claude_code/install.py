"""Which files an installation changes, and the changing of them: shown first, then whole or not."""

import contextlib
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal

import vademecum.hook
from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.claude_code import settings as claude
from vademecum.surfaces.http.instance import token

HTTP_HOOKS_SINCE = (2, 1, 240)
"""The oldest client whose documentation has HTTP hooks, as far as we looked."""

AGENT = Path(__file__).with_name("agent.md")

Scope = Literal["user", "project"]
Transport = Literal["auto", "http", "command"]


OURS = frozenset({"agents", ".claude"})
"""Folders that are removed with the last file in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file as it is and as it shall be; None is no file."""

    path: Path
    before: str | None
    after: str | None

    def diff(self) -> str:
        """For people: tokens are left out."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
            str(self.path),
            str(self.path),
        )
        return re.sub(r"(Bearer )[\w-]+", r"\1…", "".join(lines))

    def apply(self) -> None:
        """Write the file whole, through a link to it, keeping its mode."""
        path = self.path.resolve()
        if self.after is None:
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # unless there is something else in them
                for folder in takewhile(lambda folder: folder.name in OURS, path.parents):
                    folder.rmdir()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # A new file may hold a token: its owner's only.
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        if "Bearer " in self.after:
            mode &= 0o700
        descriptor, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(self.after)
            os.chmod(fresh, mode)
            os.replace(fresh, path)
        except BaseException:
            os.unlink(fresh)
            raise


def installation(
    settings: Settings, scope: Scope, transport: Transport, *, context: bool | None = None
) -> list[FileChange]:
    """What to change so that Claude Code asks us; files that are right already are left out.

    `context` is whether each prompt is answered with what is known of it; None leaves that as it
    is, and off where nothing is installed.
    """
    folder = folder_of(scope)
    path = folder / "settings.json"
    before = read(path)
    known = claude.parse(before or "", str(path))
    if context is None:
        context = any(event == claude.CONTEXT for event, _ in claude.ours(known))
    hooks = {
        event: _hook(settings, name, scope, transport)
        for event, (name, _) in claude.EVENTS.items()
        if context or event != claude.CONTEXT
    }
    wanted = claude.with_hooks(known, hooks, str(path))
    changes = []
    if wanted != known:
        changes.append(
            FileChange(path=path, before=before, after=claude.render(wanted, before or ""))
        )
    agent = folder / "agents" / "vademecum.md"
    kept = read(agent)
    if kept is None:
        changes.append(FileChange(path=agent, before=None, after=AGENT.read_text(encoding="utf-8")))
    return changes


def removal(scope: Scope) -> list[FileChange]:
    """What to change so that nothing of ours is left; an agent that the user changed stays."""
    folder = folder_of(scope)
    path = folder / "settings.json"
    before = read(path)
    known = claude.parse(before or "", str(path))
    wanted = claude.without_hooks(known, str(path))
    changes = []
    if wanted != known:
        after = claude.render(wanted, before or "") if wanted else None
        changes.append(FileChange(path=path, before=before, after=after))
    agent = folder / "agents" / "vademecum.md"
    kept = read(agent)
    if kept is not None and kept == AGENT.read_text(encoding="utf-8"):
        changes.append(FileChange(path=agent, before=kept, after=None))
    return changes


def _hook(settings: Settings, event: str, scope: Scope, transport: Transport) -> claude.Settings:
    if transport == "http" and scope == "project":
        raise BadInput(
            "a project's settings are shared, and an HTTP hook needs a token in them",
            hint="Use --transport command, or --user.",
        )
    if transport == "http" and settings.port == 0:
        raise BadInput("an HTTP hook needs a fixed port", hint="Set VADE_PORT.")
    if transport == "auto":
        fits = scope == "user" and settings.port != 0 and _has_http_hooks()
        transport = "http" if fits else "command"
    if transport == "http":
        secret = token(settings.home, "hook-token")
        return claude.http_hook(event, port=settings.port, token=secret)
    if scope == "project":  # others have their own installation and home
        return claude.command_hook(event, command="vade-hook EVENT")
    # Without `site` the interpreter starts in half the time.
    script = shlex.join([sys.executable, "-I", "-S", vademecum.hook.__file__])
    home = shlex.quote(str(settings.home))
    return claude.command_hook(event, command=f"{script} EVENT --home {home}")


def _has_http_hooks() -> bool:
    """Whether the client on the path is new enough; unknown is no."""
    client = shutil.which("claude")
    if client is None:
        return False
    try:
        said = subprocess.run(
            [client, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = re.match(r"(\d+)\.(\d+)\.(\d+)", said)
    return version is not None and tuple(map(int, version.groups())) >= HTTP_HOOKS_SINCE


def folder_of(scope: Scope) -> Path:
    """Where the client looks for the user's settings, or a project's."""
    if scope == "project":
        return Path.cwd() / ".claude"
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def read(path: Path) -> str | None:
    """The text of a file, None where there is none. Raises BadInput."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}", hint="Nothing was changed.") from None
