"""A web site on this machine, over real sockets, that can change, fail and ask for patience."""

import hashlib
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """`pages` are paths and their HTML, with validators; `answers` do as they like."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.answers: dict[str, Answer] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.cache_control = "max-age=3600"
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                with suppress(BrokenPipeError, ConnectionResetError):
                    if self.path in site.answers:
                        site.answers[self.path](self)
                    else:
                        site.page(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def page(self, request: BaseHTTPRequestHandler) -> None:
        text = self.pages.get(request.path)
        if text is None:
            send(request, 404, b"<h1>Not found</h1>")
            return
        etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'
        if request.headers.get("If-None-Match") == etag:
            send(request, 304, b"", ETag=etag, Cache_Control=self.cache_control)
        else:
            send(request, 200, text.encode(), ETag=etag, Cache_Control=self.cache_control)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def send(
    request: BaseHTTPRequestHandler,
    status: int,
    body: bytes,
    content_type: str = "text/html; charset=utf-8",
    **headers: str,
) -> None:
    request.send_response(status)
    request.send_header("Content-Type", content_type)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)
