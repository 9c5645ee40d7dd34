"""What to say to an agent's client before and after it fetches: the hook protocol of Claude Code.

Hook input comes in as it was sent; what goes out is the client's JSON, or None for "carry on".
A hit is a denied fetch whose reason is the page, the one form that reaches the model whole.
"""

import hashlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

from vademecum.cache.cache import Cache
from vademecum.context.facade import MAX_TASK, ContextCalls
from vademecum.graph.project import project_folder

FEWEST_WORDS = 3
"""Of a prompt that says what it is about; "yes, go on" does not."""
MOST_SESSIONS = 200
_told: OrderedDict[str, str] = OrderedDict()
"""By session, a digest of what was told last: the same is not told again."""


async def before_tool(
    cache: Cache, given: dict[str, Any], *, seconds: float | None = None
) -> dict[str, Any] | None:
    """What to answer to PreToolUse, within so many seconds."""
    asked = _object(given.get("tool_input"))
    url = asked.get("url")
    # Reading on at an offset is about the client's own copy of the page.
    if given.get("tool_name") != "WebFetch" or not isinstance(url, str) or asked.get("offset"):
        return None
    found = await cache.check(
        url,
        prompt=_text(asked.get("prompt")),
        project=project_of(given),
        seconds=seconds,
    )
    if not found.served:
        return None
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": found.text,
        }
    }


async def after_tool(cache: Cache, given: dict[str, Any]) -> None:
    """What to keep of PostToolUse: a page to fetch ourselves, or the results of a web search."""
    asked, got = _object(given.get("tool_input")), _object(given.get("tool_response"))
    if given.get("tool_name") == "WebFetch":
        url, code = asked.get("url"), got.get("code", 200)
        if isinstance(url, str) and code == 200:
            await cache.page_fetched(
                url,
                prompt=_text(asked.get("prompt")),
                result=_text(got.get("result")),
                project=project_of(given),
            )
    elif given.get("tool_name") == "WebSearch":
        query = _text(asked.get("query"))
        if query and (results := _results(got)):
            await cache.searched(query, results, project_of(given))


async def before_prompt(
    context: ContextCalls, given: dict[str, Any], *, budget: int
) -> dict[str, Any] | None:
    """What to answer to UserPromptSubmit: what is known of the task, within so many tokens."""
    prompt, folder = (_text(given.get("prompt")) or "").strip(), project_of(given)
    if folder is None or prompt.startswith("/") or len(prompt.split()) < FEWEST_WORDS:
        return None
    name = Path(folder).name or "root"
    found = await context.build(prompt[:MAX_TASK], project=name, budget=budget)
    if not found.markdown or not _is_news(given.get("session_id"), found.markdown):
        return None
    return {
        "hookSpecificOutput": {
            "hookEventName": "UserPromptSubmit",
            "additionalContext": f"Vademecum knows about this ({name}):\n\n{found.markdown}",
        }
    }


def _is_news(session: object, text: str) -> bool:
    """Whether it is not what the session was told last; from now on it is."""
    key, digest = str(session), hashlib.sha256(text.encode()).hexdigest()
    if _told.get(key) == digest:
        return False
    _told[key] = digest
    _told.move_to_end(key)
    while len(_told) > MOST_SESSIONS:
        _told.popitem(last=False)
    return True


def project_of(given: dict[str, Any]) -> str | None:
    """The project the agent works in: the repository around its working folder, else the folder."""
    cwd = _text(given.get("cwd"))
    return str(project_folder(Path(cwd))) if cwd else None


def _results(got: dict[str, Any]) -> list[dict[str, str]]:
    """Title, url and snippet of each result; the list also holds plain remarks."""
    found = []
    groups = got.get("results")
    for group in groups if isinstance(groups, list) else []:
        content = _object(group).get("content")
        for one in content if isinstance(content, list) else []:
            fields = {key: _text(_object(one).get(key)) for key in ("title", "url", "snippet")}
            if fields["url"]:
                found.append({key: text or "" for key, text in fields.items()})
    return found


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and "\x00" not in value else None
