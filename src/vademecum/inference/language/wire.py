"""A JSON request to a provider: within a time, tried again where that may help.

Keys stand in headers only, and are struck out of whatever a server says about them.
"""

import asyncio
import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from vademecum.errors import LanguageModelRefused, LanguageModelUnreachable

if TYPE_CHECKING:
    import httpx

TRIES = 4
FIRST_WAIT = 0.5
"""Seconds before the second try; twice that before each further one, and up to half more."""
CONNECT_SECONDS = 5
AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that another try may mend; 529 is Anthropic's for being overloaded."""
NO_ENTRY = frozenset({401, 403})
MAX_MESSAGE = 300


class Wire:
    """A provider's HTTP interface at `url`, for one model."""

    def __init__(
        self,
        name: str,
        *,
        url: str,
        seconds: float,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        key_variable: str = "",
    ) -> None:
        """`seconds` is the time of one call with all its tries."""
        self.name, self.url, self.seconds = name, url.rstrip("/"), seconds
        self._headers, self._key, self._variable = dict(headers or {}), key, key_variable

    @property
    def shown(self) -> str:
        return without_login(self.url)

    @property
    def here(self) -> bool:
        """Whether the server is on this machine."""
        return urlsplit(self.url).hostname in ("127.0.0.1", "::1", "localhost")

    async def post(self, path: str, body: Mapping[str, object]) -> dict[str, object]:
        """The object that the server answers.

        Raises LanguageModelUnreachable, and LanguageModelRefused for what no other try would mend.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.seconds), self._open() as client:
                for attempt in range(TRIES):
                    failure, wait = await self._try(client, path, body)
                    if isinstance(failure, dict):
                        return failure
                    left = self.seconds - (time.monotonic() - started)
                    wait = _backoff(attempt) if wait is None else wait
                    if attempt == TRIES - 1 or wait >= left:
                        raise failure
                    await asyncio.sleep(wait)
        except TimeoutError:
            pass
        raise LanguageModelUnreachable(
            f"{self.name} did not answer within {self.seconds:g} s",
            hint="Give it longer by VADE_MODEL_SECONDS.",
        )

    def _open(self) -> "httpx.AsyncClient":
        import httpx

        # A proxy of the environment leads to the providers of the web, not to this machine.
        return httpx.AsyncClient(
            headers=self._headers,
            timeout=httpx.Timeout(self.seconds, connect=CONNECT_SECONDS),
            trust_env=not self.here,
        )

    async def _try(
        self, client: "httpx.AsyncClient", path: str, body: Mapping[str, object]
    ) -> tuple[dict[str, object] | LanguageModelUnreachable, float | None]:
        """The answer, or why there is none and how long the server asks to wait."""
        import httpx

        try:
            answer = await client.post(self.url + path, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = str(error) or type(error).__name__
            return LanguageModelUnreachable(
                self.safe(f"{self.name} does not answer at {self.shown}: {said}")
            ), None
        if answer.status_code in AGAIN:
            said = f"{self.name} failed with status {answer.status_code}: {message(answer)}"
            return LanguageModelUnreachable(
                self.safe(said), hint="Try again later; its provider may tell why."
            ), retry_after(answer)
        if answer.status_code in NO_ENTRY:
            raise LanguageModelRefused(
                f"{self.shown} does not accept the key for {self.name}"
                if self._key
                else f"{self.shown} wants a key for {self.name}",
                hint=f"Check {self._variable}." if self._variable else None,
            )
        if answer.status_code != 200:
            said = f"{self.name} refused with status {answer.status_code}: {message(answer)}"
            raise LanguageModelRefused(self.safe(said))
        try:
            value = answer.json()
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise self.strange()
        return value, None

    def strange(self) -> LanguageModelRefused:
        """The error for an answer that is not of the provider's form."""
        return LanguageModelRefused(
            f"{self.shown} does not answer as the provider of {self.name} does",
            hint="Check the address: VADE_MODEL_URL, or the provider's own variable.",
        )

    def safe(self, text: str) -> str:
        """The text on one line, short, and without the key."""
        line = " ".join(text.split())
        if self._key:
            line = line.replace(self._key, "***")
        return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"


def without_login(url: str) -> str:
    """The address without a user or password that may stand in it, for people to read."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def message(answer: "httpx.Response") -> str:
    """What a failure says of itself, in any of the providers' forms."""
    try:
        error = answer.json()["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase or "no reason given"


def retry_after(answer: "httpx.Response") -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, or `Retry-After` (RFC 9110)."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(answer.headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    try:
        when = parsedate_to_datetime(answer.headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return max(0.0, when.timestamp() - time.time())


def _backoff(attempt: int) -> float:
    return float(FIRST_WAIT * 2**attempt * random.uniform(1, 1.5))  # noqa: S311 - no secret
