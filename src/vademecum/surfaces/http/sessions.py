"""Who is logged in to the pages: sessions in the memory of this process, gone when it ends."""

import secrets
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from vademecum.access import Access

PAGES = "/memories"
"""Where the pages are; the cookie goes nowhere else."""
COOKIE = "vade_session"
SECONDS = 1800.0
"""How long a session lasts without a request."""
MOST = 100

VISITOR = Access(name="visitor", scopes=frozenset())
"""Whoever has not logged in: sees the form to log in."""
READER = Access(name="page", scopes=frozenset({"memory"}))
"""Whoever has: may name users, and nothing else."""


@dataclass
class Session:
    id: str
    form_token: str
    """Stands in every form, so that no other site can send one."""
    until: float


class Sessions:
    def __init__(self, token: str) -> None:
        self._token = token
        self._open: dict[str, Session] = {}

    def log_in(self, given: str) -> Session | None:
        """A session for whoever has the home's token."""
        # Bytes: `compare_digest` refuses text that is not ASCII.
        if not secrets.compare_digest(given.strip().encode(), self._token.encode()):
            return None
        while len(self._open) >= MOST:
            del self._open[min(self._open.values(), key=lambda one: one.until).id]
        session = Session(
            id=secrets.token_urlsafe(32),
            form_token=secrets.token_urlsafe(32),
            until=time.monotonic() + SECONDS,
        )
        self._open[session.id] = session
        return session

    def find(self, cookies: str) -> Session | None:
        """The session that the Cookie header names; it lasts on."""
        try:
            found = SimpleCookie(cookies).get(COOKIE)
        except CookieError:
            return None
        session = self._open.get(found.value) if found else None
        if session is None:
            return None
        if session.until < time.monotonic():
            del self._open[session.id]
            return None
        session.until = time.monotonic() + SECONDS
        return session

    def log_out(self, session: Session) -> None:
        self._open.pop(session.id, None)

    def access(self, cookies: str) -> Access:
        return READER if self.find(cookies) else VISITOR


def is_page(path: str) -> bool:
    return path == PAGES or path.startswith(f"{PAGES}/")
