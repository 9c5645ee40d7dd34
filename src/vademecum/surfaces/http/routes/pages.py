"""Pages to look at a memory, edit it, undo and forget. Plain forms; no script."""

import secrets
from collections.abc import Awaitable, Callable
from html import escape
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from vademecum.app import App
from vademecum.errors import VadeError
from vademecum.surfaces.http.problems import status_of
from vademecum.surfaces.http.routes.shared import OpenApp
from vademecum.surfaces.http.sessions import COOKIE, PAGES, Session, Sessions

router = APIRouter(prefix=PAGES, include_in_schema=False)

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
textarea { width: 100%; height: 20rem; font: inherit }
input, button { font: inherit; padding: .3em }
form { margin: 1rem 0 } label { display: block; margin: .5rem 0 } .told { background: #eef;
padding: .5rem } .wrong { background: #fee; padding: .5rem } td, th { padding: .2rem .8rem .2rem 0;
text-align: left }
"""


@router.get("")
async def begin(request: Request) -> Response:
    session = _session(request)
    return _page(_login() if session is None else _whose(session))


@router.post("/login")
async def log_in(request: Request) -> Response:
    session = _sessions(request).log_in((await _form(request)).get("token", ""))
    if session is None:
        return _page(_wrong("That is not the token.") + _login(), status=403)
    answer = RedirectResponse(PAGES, status_code=303, headers=_HEADERS)
    secure = request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, session.id, path=PAGES, httponly=True, samesite="strict", secure=secure
    )
    return answer


@router.post("/logout")
async def log_out(request: Request) -> Response:
    session = _session(request)
    if session is not None and _is_ours(session, await _form(request)):
        _sessions(request).log_out(session)
    answer = RedirectResponse(PAGES, status_code=303, headers=_HEADERS)
    answer.delete_cookie(COOKIE, path=PAGES)
    return answer


@router.post("/{action}")
async def act(app: OpenApp, request: Request, action: str) -> Response:
    """View, edit, undo or forget the memory of the user whom the form names."""
    session, form = _session(request), await _form(request)
    if session is None:
        return _page(_wrong("Log in first; a login ends after half an hour.") + _login(), 401)
    if not _is_ours(session, form):
        return _page(_wrong("This form is not one of ours, or too old.") + _whose(session), 403)
    if action not in ACTIONS:
        return _page(_wrong("There is no such page.") + _whose(session), 404)
    user, project = form.get("user", ""), form.get("project", "")
    status = 200
    try:
        told = await ACTIONS[action](app, user, project, form)
    except VadeError as error:
        told = _wrong(f"{error}. {error.hint or ''}")
        status = int(status_of(error))
    try:
        return _page(told + await _memory(app, session, user, project), status)
    except VadeError as error:
        return _page(_wrong(f"{error}. {error.hint or ''}") + _whose(session), status_of(error))


async def _view(app: App, user: str, project: str, form: dict[str, str]) -> str:
    return ""


async def _edit(app: App, user: str, project: str, form: dict[str, str]) -> str:
    version = form.get("version", "")
    expected = int(version) if version.isdecimal() and len(version) < 10 else None
    text = form.get("text", "").replace("\r\n", "\n")
    kept = await app.memory.edit(user, text, project=project, expected=expected)
    left = ", ".join(f"{count} ({kind})" for kind, count in kept.dropped.items())
    return _told("Saved." if kept.changed else "Nothing changed.") + (
        _wrong(f"Left out by the privacy gate: {left}.") if left else ""
    )


async def _undo(app: App, user: str, project: str, form: dict[str, str]) -> str:
    await app.memory.undo(user, project=project)
    return _told("Back to the version before.")


async def _forget(app: App, user: str, project: str, form: dict[str, str]) -> str:
    if form.get("sure") != "yes":
        return _wrong("Nothing was removed: tick the box to say that you are sure.")
    receipt = await app.memory.forget(user)
    if receipt is None:
        return _told("Nothing was held about this user.")
    rows = sum(receipt.removed.values())
    return _told(f"All is removed: {rows} rows. Receipt {receipt.id}, probes {receipt.probe_hash}.")


Action = Callable[[App, str, str, dict[str, str]], Awaitable[str]]
ACTIONS: dict[str, Action] = {"view": _view, "edit": _edit, "undo": _undo, "forget": _forget}


async def _memory(app: App, session: Session, user: str, project: str) -> str:
    memory = await app.memory.show(user, project=project)
    history = "".join(
        f"<tr><td>{one.version}<td>{one.created_at:%Y-%m-%d %H:%M}<td>{escape(one.reason)}</tr>"
        for one in reversed(await app.memory.versions(user, project=project))
    )
    named = _named(session, user, project)
    return (
        f"<h2>{escape(user)}{escape(f', {project}') if project else ''}</h2>"
        f'<form method="post" action="{PAGES}/edit">{named}'
        f'<input type="hidden" name="version" value="{memory.version}">'
        f'<label>Memory, version {memory.version}<textarea name="text">\n'
        f"{escape(memory.content)}</textarea></label><button>Save</button></form>"
        f'<form method="post" action="{PAGES}/undo">{named}<button>Undo the last change</button>'
        f'</form><form method="post" action="{PAGES}/forget">{named}'
        '<label><input type="checkbox" name="sure" value="yes"> Remove all that is held about '
        "this user, in every project, for good</label><button>Forget</button></form>"
        f"<table><tr><th>Version<th>When<th>Why</tr>{history}</table>{_whose(session)}"
    )


def _whose(session: Session) -> str:
    token = f'<input type="hidden" name="form_token" value="{session.form_token}">'
    return (
        f'<form method="post" action="{PAGES}/view">{token}'
        '<label>Whose memory? <input name="user" placeholder="someone@example.org" '
        "required></label>"
        '<label>Project, if not the general one <input name="project"></label>'
        f'<button>Show</button></form><form method="post" action="{PAGES}/logout">{token}'
        "<button>Log out</button></form>"
    )


def _named(session: Session, user: str, project: str) -> str:
    values = {"form_token": session.form_token, "user": user, "project": project}
    return "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in values.items()
    )


def _login() -> str:
    return (
        f'<form method="post" action="{PAGES}/login"><label>Token (<code>vade token</code> prints '
        'it) <input type="password" name="token" autocomplete="off" required></label>'
        "<button>Log in</button></form>"
    )


def _told(text: str) -> str:
    return f'<p class="told">{escape(text)}</p>'


def _wrong(text: str) -> str:
    return f'<p class="wrong">{escape(text)}</p>'


def _page(body: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Memories</title>'
        f"<style>{_STYLE}</style>\n<h1>Memories</h1>\n{body}\n</html>\n",
        status,
        headers=_HEADERS,
    )


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


def _session(request: Request) -> Session | None:
    return _sessions(request).find(request.headers.get("cookie", ""))


def _is_ours(session: Session, form: dict[str, str]) -> bool:
    given = form.get("form_token", "")
    return secrets.compare_digest(given.encode(), session.form_token.encode())


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name; what is no text counts as nothing."""
    body = (await request.body()).decode("utf-8", "replace").replace("\0", "")
    try:
        fields = parse_qs(body, keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[-1].replace("\0", "") for name, values in fields.items()}
