"""A host of knowledge on a real socket: pages with validators, gzip, redirects and failures."""

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, urlsplit

from listening import Answer, Listening

Reply = tuple[int, dict[str, str], bytes]


class Host(Listening):
    """`pages` are paths and what they answer, or who answers for them."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, bytes] | Callable[[Mapping[str, str]], Reply]] = {}
        self.asked: list[str] = []
        """Paths with their queries, each time."""
        self.conditional: list[str] = []
        """Those that were asked with validators."""
        self.gzip = False
        self.failing: Reply | None = None
        """What every request is answered with instead."""
        super().__init__()

    def put(self, path: str, body: str | bytes | object, kind: str = "text/html") -> None:
        if isinstance(body, str):
            body = body.encode()
        elif not isinstance(body, bytes):
            body, kind = json.dumps(body).encode(), "application/json"
        self.pages[path] = (kind, body)

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.asked.append(path)
        if self.failing is not None:
            return self.failing
        parts = urlsplit(path)
        page = self.pages.get(path) or self.pages.get(parts.path)
        if page is None:
            return 404, {"content-type": "text/html"}, b"<h1>Not found</h1>"
        if callable(page):
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            return page({**query, **{f"header:{k}": v for k, v in headers.items()}})
        kind, data = page
        etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        sent = {"content-type": kind, "etag": etag}
        if "if-none-match" in headers:
            self.conditional.append(path)
            if headers["if-none-match"] == etag:
                return 304, sent, b""
        if self.gzip and "gzip" in headers.get("accept-encoding", ""):
            return 200, sent | {"content-encoding": "gzip"}, gzip.compress(data)
        return 200, sent, data
