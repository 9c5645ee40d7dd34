"""Claude Code's settings, with our hooks in them and without. Values in, values out."""

import copy
import json
from typing import Any

from vademecum.errors import BadInput

STATUS = "Vademecum"
"""Begins the status message of every hook of ours, by which we know them again."""

EVENTS = {
    "PreToolUse": ("pre-tool-use", "WebFetch"),
    "PostToolUse": ("post-tool-use", "WebFetch|WebSearch"),
    "UserPromptSubmit": ("user-prompt-submit", ""),
}
"""The client's event to ours, and to the tools it is for."""
CONTEXT = "UserPromptSubmit"
"""The hook that tells the agent what is known of its task: only where it is asked for."""
TIMEOUT_SECONDS = 2
"""The client's own limit, for a server that hangs; ours is the cap, far below."""

Settings = dict[str, Any]


def http_hook(event: str, *, port: int, token: str) -> Settings:
    """A hook that the client posts itself. Only /hooks opens to this token."""
    return {
        "type": "http",
        "url": f"http://127.0.0.1:{port}/hooks/{event}",
        "headers": {"Authorization": f"Bearer {token}"},
        "timeout": TIMEOUT_SECONDS,
        "statusMessage": f"{STATUS}: {event}",
    }


def command_hook(event: str, *, command: str) -> Settings:
    """A hook that the client runs as a process; `command` is for a shell."""
    before, _, after = command.partition("EVENT")
    return {
        "type": "command",
        "command": f"{before}{event}{after}",
        "timeout": TIMEOUT_SECONDS,
        "statusMessage": f"{STATUS}: {event}",
    }


def parse(text: str, name: str) -> Settings:
    """The settings of a file; none for an empty one. Raises BadInput."""
    if not text.strip():
        return {}
    try:
        settings = json.loads(text)
    except ValueError as error:
        raise BadInput(
            f"{name} is not JSON: {error}", hint="Mend it first; nothing was changed."
        ) from None
    if not isinstance(settings, dict):
        raise BadInput(f"{name} is not a JSON object", hint="Mend it first; nothing was changed.")
    return settings


def render(settings: Settings, before: str) -> str:
    """As text, indented as the file was."""
    first = next((line for line in before.splitlines() if line[:1] in (" ", "\t")), "  ")
    indent = first[: len(first) - len(first.lstrip())] or "  "
    return json.dumps(settings, indent=indent, ensure_ascii=False) + "\n"


def ours(settings: Settings) -> list[tuple[str, Settings]]:
    """The hooks of ours that are in the settings, each with its event."""
    events = settings.get("hooks")
    found = []
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            hooks = group.get("hooks") if isinstance(group, dict) else None
            found += [(event, one) for one in hooks or () if _is_ours(one)]
    return found


def with_hooks(settings: Settings, hooks: dict[str, Settings], name: str) -> Settings:
    """The settings with these hooks, by event, instead of those of ours that are there."""
    changed = without_hooks(settings, name)
    for event, hook in hooks.items():
        matcher = EVENTS[event][1]
        group = ({"matcher": matcher} if matcher else {}) | {"hooks": [hook]}
        changed.setdefault("hooks", {}).setdefault(event, []).append(group)
    return changed


def without_hooks(settings: Settings, name: str) -> Settings:
    """The settings without any hook of ours; what we leave empty goes too. Raises BadInput."""
    changed = copy.deepcopy(settings)
    events = changed.get("hooks", {})
    if not isinstance(events, dict):
        raise BadInput(f"{name}: `hooks` is not an object", hint="Nothing was changed.")
    for event in [event for event in EVENTS if event in events]:
        groups = events[event]
        if not isinstance(groups, list):
            raise BadInput(f"{name}: `hooks.{event}` is not a list", hint="Nothing was changed.")
        events[event] = [left for group in groups for left in _without(group)]
        if groups and not events[event]:
            del events[event]
    if settings.get("hooks") and not events:
        del changed["hooks"]
    return changed


def _without(group: object) -> list[object]:
    """The group without our hooks, or nothing where there was nothing else in it."""
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return [group]
    kept = [hook for hook in group["hooks"] if not _is_ours(hook)]
    if len(kept) == len(group["hooks"]):
        return [group]
    return [group | {"hooks": kept}] if kept else []


def _is_ours(hook: object) -> bool:
    return isinstance(hook, dict) and str(hook.get("statusMessage", "")).startswith(f"{STATUS}: ")
