import asyncio
import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import brotli
import pytest

from vademecum.errors import FetchRefused, UnreadableSource
from vademecum.ingest.read import fetch
from vademecum.ingest.read.web import is_public

Answer = Callable[[BaseHTTPRequestHandler], None]


class Site:
    """A web server on this machine; `pages` says what each path does."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer] = {}
        self.requests: list[dict[str, str]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append({"path": self.path, **self.headers})
                with suppress(BrokenPipeError, ConnectionResetError):
                    site.pages[self.path](self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


def answer(
    body: bytes = b"<h1>Hi</h1>",
    *,
    status: int = 200,
    content_type: str | None = "text/html; charset=utf-8",
    **headers: str,
) -> Answer:
    def send(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        if content_type is not None:
            request.send_header("Content-Type", content_type)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return send


async def local(url: str, **options: object) -> object:
    return await fetch(url, **{"max_bytes": 10_000, "allow_private": True, **options})  # type: ignore[arg-type]


async def test_page_with_its_validators_and_our_name(site: Site) -> None:
    site.pages["/a"] = answer(ETag='"v1"', Last_Modified="Wed, 21 Oct 2015 07:28:00 GMT")
    page = await fetch(site.url("/a"), max_bytes=100, allow_private=True)
    assert (page.url, page.data) == (site.url("/a"), b"<h1>Hi</h1>")
    assert page.content_type == "text/html; charset=utf-8"
    assert (page.etag, page.last_modified) == ('"v1"', "Wed, 21 Oct 2015 07:28:00 GMT")
    assert page.fetched_at.tzinfo is not None
    assert site.requests[0]["User-Agent"].startswith("vademecum/")
    assert site.requests[0]["Host"] == f"127.0.0.1:{site.port}"


async def test_the_name_is_sent_to_the_address_that_was_checked(site: Site) -> None:
    site.pages["/a"] = answer()

    async def resolver(host: str, port: int) -> list[str]:
        assert (host, port) == ("docs.example.org", site.port)
        return ["127.0.0.1"]

    page = await fetch(
        site.url("/a", "docs.example.org"), max_bytes=100, allow_private=True, resolver=resolver
    )
    assert page.url == site.url("/a", "docs.example.org")
    assert site.requests[0]["Host"] == f"docs.example.org:{site.port}"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "example.org",
        "http://",
        "http:///x",
        "http://user:secret@example.org/",
        "http://user@example.org/",
        "http://[::1/",
        "http://example.org:99999/",
        "",
    ],
)
async def test_refuses_what_is_no_plain_web_address(url: str) -> None:
    with pytest.raises(FetchRefused) as refusal:
        await fetch(url, max_bytes=100, allow_private=True)
    assert "secret" not in str(refusal.value)


PRIVATE = """127.0.0.1 127.1.2.3 0.0.0.0 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1
    100.100.100.200 198.18.0.1 192.0.0.8 192.0.2.1 203.0.113.9 224.0.0.1 240.0.0.1 255.255.255.255
    :: ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe ::127.0.0.1 fe80::1 fe80::1%eth0
    fc00::1 fd00:ec2::254 fec0::1 ff02::1 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b:1::1
    2002:7f00:1:: 2002:a00:1::1 2001:0:7f00:1:: 2001:db8::1 nonsense"""
PUBLIC = "8.8.8.8 1.1.1.1 93.184.216.34 2606:4700:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808"


@pytest.mark.parametrize("address", PRIVATE.split())
def test_private_addresses(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0"]
)
async def test_private_hosts_are_refused_without_a_connection(site: Site, host: str) -> None:
    with pytest.raises((FetchRefused, UnreadableSource)):
        await fetch(site.url("/", host), max_bytes=100)
    assert site.requests == []


async def test_a_name_is_refused_if_any_of_its_addresses_is_private(site: Site) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "127.0.0.1"]

    with pytest.raises(FetchRefused, match="private network"):
        await fetch(site.url("/", "rebind.example"), max_bytes=100, resolver=resolver)
    assert site.requests == []


async def test_a_name_that_changes_its_address_is_asked_only_once_for_each_request(
    site: Site,
) -> None:
    """A second look-up between check and connection is how rebinding gets in."""
    asked: list[str] = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) > 1 else ["192.0.2.1"]

    with pytest.raises((FetchRefused, UnreadableSource)):
        await fetch(
            site.url("/", "rebind.example"),
            max_bytes=100,
            allow_private=True,
            resolver=resolver,
            timeout=0.5,
        )
    assert asked == ["rebind.example"]
    assert site.requests == []


async def test_redirect_into_a_private_network_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages["/go"] = answer(status=302, Location=f"http://metadata.example:{site.port}/secret")

    async def resolver(host: str, port: int) -> list[str]:
        return {"public.example": ["127.0.0.1"], "metadata.example": ["169.254.169.254"]}[host]

    # The test server stands for a public one.
    monkeypatch.setattr(
        "vademecum.ingest.read.web.is_public", lambda ip: ip == "127.0.0.1" or is_public(ip)
    )
    with pytest.raises(FetchRefused, match=r"169\.254\.169\.254"):
        await fetch(site.url("/go", "public.example"), max_bytes=100, resolver=resolver)
    assert [request["path"] for request in site.requests] == ["/go"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "http://u:p@example.org/", "gopher://x"])
async def test_redirect_to_another_scheme_is_refused(site: Site, target: str) -> None:
    site.pages["/go"] = answer(status=301, Location=target)
    with pytest.raises(FetchRefused):
        await local(site.url("/go"))


async def test_redirects_are_followed_relative_and_at_most_five_times(site: Site) -> None:
    for i in range(6):
        site.pages[f"/{i}"] = answer(status=302, Location=f"{i + 1}")
    site.pages["/6"] = answer()
    page = await local(site.url("/1"))
    assert page.url == site.url("/6")  # type: ignore[attr-defined]
    with pytest.raises(UnreadableSource, match="redirects more than 5 times"):
        await local(site.url("/0"))


async def test_cookies_are_not_carried_along(site: Site) -> None:
    site.pages["/go"] = answer(status=302, Location="/a", Set_Cookie="id=1")
    site.pages["/a"] = answer()
    await local(site.url("/go"))
    assert "Cookie" not in site.requests[1]


@pytest.mark.parametrize("status", [204, 304, 401, 404, 500, 503])
async def test_other_statuses_are_reasons(site: Site, status: int) -> None:
    site.pages["/a"] = answer(b"", status=status)
    with pytest.raises(UnreadableSource, match=f"it answered {status}") as failure:
        await local(site.url("/a"))
    assert failure.value.source == site.url("/a")


async def test_declared_size_is_refused_before_reading(site: Site) -> None:
    site.pages["/a"] = answer(Content_Length="999999")
    with pytest.raises(UnreadableSource, match="too large"):
        await local(site.url("/a"))


async def test_stream_without_an_end_stops_at_the_limit(site: Site) -> None:
    sent = [0]

    def endless(request: BaseHTTPRequestHandler) -> None:
        answer(b"")(request)
        while sent[0] < 500_000_000:
            request.wfile.write(b"x" * 65536)
            sent[0] += 65536

    site.pages["/a"] = endless
    with pytest.raises(UnreadableSource, match="too large"):
        await local(site.url("/a"))
    assert sent[0] < 100_000_000


async def test_compressed_bomb_is_not_unpacked(site: Site) -> None:
    site.pages["/a"] = answer(gzip.compress(b"x" * 50_000_000), Content_Encoding="gzip")
    with pytest.raises(UnreadableSource, match="too large"):
        await local(site.url("/a"))


async def test_compressed_page(site: Site) -> None:
    text = b"<p>compressed</p>" * 100
    site.pages["/a"] = answer(gzip.compress(text), Content_Encoding="gzip")
    site.pages["/cut"] = answer(gzip.compress(text)[:-9], Content_Encoding="gzip")
    site.pages["/bad"] = answer(b"not gzip", Content_Encoding="gzip")
    site.pages["/br"] = answer(brotli.compress(text), Content_Encoding="br")
    site.pages["/br-cut"] = answer(brotli.compress(text)[:-4], Content_Encoding="br")
    site.pages["/br-bad"] = answer(b"not brotli", Content_Encoding="br")
    site.pages["/zstd"] = answer(b"?", Content_Encoding="zstd")
    for path in ("/a", "/br"):
        assert (await local(site.url(path))).data == text  # type: ignore[attr-defined]
    for path in ("/cut", "/bad", "/br-cut", "/br-bad", "/zstd"):
        with pytest.raises(UnreadableSource):
            await local(site.url(path))


async def test_slow_page_ends_at_the_time_limit(site: Site) -> None:
    def slow(request: BaseHTTPRequestHandler) -> None:
        answer(b"")(request)
        for _ in range(100):
            request.wfile.write(b"x")
            time.sleep(0.05)

    site.pages["/a"] = slow
    began = time.monotonic()
    with pytest.raises(UnreadableSource, match=r"did not answer within 0\.4 s"):
        await local(site.url("/a"), timeout=0.4)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("content_type", ["image/png", "application/zip", "text/css", "video/mp4"])
async def test_what_is_no_document(site: Site, content_type: str) -> None:
    site.pages["/a"] = answer(content_type=content_type)
    with pytest.raises(UnreadableSource, match=f"not a document \\({content_type}\\)"):
        await local(site.url("/a"))


async def test_vague_types_go_by_the_name(site: Site) -> None:
    site.pages["/a.md"] = answer(content_type="application/octet-stream")
    site.pages["/a.bin"] = answer(content_type="application/octet-stream")
    assert (await local(site.url("/a.md"))).data  # type: ignore[attr-defined]
    with pytest.raises(UnreadableSource):
        await local(site.url("/a.bin"))


async def test_server_that_is_not_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(UnreadableSource, match="no connection to its host"):
        await local(f"http://127.0.0.1:{port}/")


async def test_host_that_is_not_known() -> None:
    async def resolver(host: str, port: int) -> list[str]:
        raise socket.gaierror("unknown")

    with pytest.raises(UnreadableSource, match="its host is not known"):
        await fetch("http://nowhere.invalid/", max_bytes=100, resolver=resolver)


async def test_broken_answer(site: Site) -> None:
    def broken(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"nonsense\r\n\r\n")

    site.pages["/a"] = broken
    with pytest.raises(UnreadableSource):
        await local(site.url("/a"))


async def test_many_pages_at_once(site: Site) -> None:
    for i in range(20):
        site.pages[f"/{i}"] = answer(f"page {i}".encode())
    pages = await asyncio.gather(*(local(site.url(f"/{i}")) for i in range(20)))
    assert [page.data for page in pages] == [f"page {i}".encode() for i in range(20)]  # type: ignore[attr-defined]
