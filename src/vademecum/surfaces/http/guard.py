"""The door of the API: which host names, which token or key, how much, how often. Plain ASGI."""

import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from hashlib import sha256
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vademecum.access import EVERYTHING, Access, acting
from vademecum.errors import VadeError
from vademecum.store.keys import number_of
from vademecum.surfaces.http.limits import Places, Rates
from vademecum.surfaces.http.problems import problem, status_of
from vademecum.surfaces.http.sessions import Sessions, is_page

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
MAX_BODY_BYTES = 8 * 1024 * 1024
"""Hook input carries what a tool answered; a page's digest or a command's output fits."""
TOO_LARGE = f"the body may have at most {MAX_BODY_BYTES} bytes"
KEY_SECONDS = 5.0
"""How long a key is believed before the database is asked again: so a revoked one goes on."""
KEYS_KEPT = 1000
LOOKS_A_SECOND = 20
"""At keys that are not known yet; whoever tries keys out gets no further."""
NO_LIMIT = 2**31
MAX_STREAMS = 32
"""Event streams at once: each is a request that does not end."""

FindKey = Callable[[str], Awaitable[Access | None]]


async def _no_keys(secret: str) -> Access | None:
    return None


class Guard:
    """Lets through what names an allowed host and carries the right token or a key.

    The host is looked at because a page in a browser can point a name of its own at loopback (DNS
    rebinding). `/health` answers without a token, and only whether all is well. The home's token
    opens everything, and its holder is not held to a rate; hooks are no more than their agent.
    Pages know their reader by a cookie, and whoever has none may log in there.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        hook_token: str,
        hosts: Iterable[str] = LOOPBACK_NAMES,
        find_key: FindKey = _no_keys,
        key_rate: float = 50.0,
        at_once: int = 64,
        sessions: Sessions | None = None,
    ) -> None:
        self.app = app
        self._token, self._hook_token = token, hook_token
        self._hosts = {host.lower() for host in hosts}
        self._sessions = sessions
        self._find_key, self._key_rate = find_key, key_rate
        self._keys: OrderedDict[str, tuple[float, Access | None]] = OrderedDict()
        self._rates = Rates()
        self._places = Places(at_once or NO_LIMIT)
        self._streams = Places(MAX_STREAMS)
        self.last_request = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        path: str = scope["path"]
        if not self._is_ours(headers.getlist("host")):
            refusal = problem(421, "this server does not answer to that host name")
            await refusal(scope, receive, send)
            return
        access, refused = await self._access(headers, path)
        scope.setdefault("state", {})["trusted"] = access is EVERYTHING
        refused = refused or self._refusal(access, headers, path)
        if refused is not None:
            await refused(scope, receive, send)
            return
        if path != "/health":
            self.last_request = time.monotonic()
        # What `/health` looks at is its own business; what it tells depends on who asks.
        acts = EVERYTHING if access is None or path == "/health" else access
        await self._placed(acts, scope, receive, send)

    async def _access(
        self, headers: Headers, path: str
    ) -> tuple[Access | None, JSONResponse | None]:
        """What the caller may do; or why that cannot be found out."""
        if self._sessions is not None and is_page(path):
            return self._sessions.access(headers.get("cookie", "")), None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None, None
        valid = [self._token] + ([self._hook_token] if path.startswith("/hooks/") else [])
        # Bytes: `compare_digest` refuses text that is not ASCII.
        if any(secrets.compare_digest(given.encode(), one.encode()) for one in valid):
            return EVERYTHING, None
        if number_of(given) is None:
            return None, None
        try:
            return await self._key(given)
        except VadeError as error:
            kind = f"urn:vademecum:{type(error).__name__}"
            return None, problem(status_of(error), str(error), kind=kind, hint=error.hint)

    async def _key(self, given: str) -> tuple[Access | None, JSONResponse | None]:
        name = sha256(given.encode()).hexdigest()
        until, access = self._keys.get(name, (0.0, None))
        if until < time.monotonic():
            if (wait := self._rates.wait("looking", LOOKS_A_SECOND)) and access is None:
                return None, _too_often(wait)
            access = await self._find_key(given)
            self._keys[name] = (time.monotonic() + KEY_SECONDS, access)
            self._keys.move_to_end(name)
            if len(self._keys) > KEYS_KEPT:
                self._keys.popitem(last=False)
        return access, None

    def _refusal(self, access: Access | None, headers: Headers, path: str) -> JSONResponse | None:
        if access is None:
            if path == "/health":
                return None
            return problem(
                401,
                "a bearer token is needed",
                hint="`vade token` prints it.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if _length(headers) > MAX_BODY_BYTES:
            return problem(413, TOO_LARGE)
        if access is not EVERYTHING:
            rate = access.rate or self._key_rate
            if rate and (wait := self._rates.wait(access.name, rate)):
                return _too_often(wait)
            if path.startswith("/mcp") and not access.has("read"):
                return problem(403, f"{access.name} lacks the scope read")
        return None

    def _is_ours(self, hosts: list[str]) -> bool:
        if len(hosts) != 1:
            return False
        name, colon, port = hosts[0].lower().rpartition(":")
        if not colon or not port.isdecimal():
            name = hosts[0].lower()
        return name in self._hosts

    async def _placed(self, access: Access, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path == "/health" or path.startswith("/hooks/"):  # these must get an answer at once
            await self._limited(access, scope, receive, send)
            return
        places = self._streams if path.endswith("/events") else self._places
        if not places.take():
            refusal = problem(
                503, "too much is asked at once", hint="Try again.", headers={"Retry-After": "1"}
            )
            await refusal(scope, receive, send)
            return
        try:
            await self._limited(access, scope, receive, send)
        finally:
            places.give_back()

    async def _limited(self, access: Access, scope: Scope, receive: Receive, send: Send) -> None:
        """A body sent in pieces has no length beforehand, and is counted as it comes."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message: MutableMapping[str, Any] = await receive()
            seen += len(message.get("body", b""))
            if seen > MAX_BODY_BYTES:
                raise HTTPException(413, TOO_LARGE)
            return message

        with acting(access):
            await self.app(scope, counted, send)


def _too_often(wait: float) -> JSONResponse:
    return problem(
        429,
        "that is more requests than are answered in this time",
        hint=f"Come again in {wait:.1f} s.",
        headers={"Retry-After": str(max(1, math.ceil(wait)))},
    )


def _length(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isdecimal() else 0
