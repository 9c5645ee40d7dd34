"""One page of the web, fetched with care: where it leads is checked on the address dialled."""

import asyncio
import ipaddress
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from vademecum.errors import (
    BadStatus,
    FetchRefused,
    HostBusy,
    PrivateAddress,
    UnreadableSource,
)
from vademecum.ingest.read.formats import FORMATS, extension_of, too_large

if TYPE_CHECKING:
    import ssl

    import httpx

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""Host and port to the addresses that may be dialled."""

MAX_REDIRECTS = 5
_CONNECT_SECONDS = 10.0
_ERROR_BYTES = 4096
"""Of the body of a failure: what programs are told of it stands at its beginning."""
READABLE = {
    "application/json",
    "application/pdf",
    "application/x-pdf",
    "application/xhtml+xml",
    "application/xml",
    "text/html",
    "text/markdown",
    "text/plain",
    "text/prs.fallenstein.rst",
    "text/x-markdown",
    "text/x-rst",
}
# Servers that do not know a type say these; the name of the file may know better.
_VAGUE = {"", "application/octet-stream", "binary/octet-stream"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a URL answered."""

    url: str
    """Where the redirects ended."""
    content_type: str
    data: bytes
    etag: str | None
    last_modified: str | None
    fetched_at: datetime
    hops: tuple[str, ...] = ()
    """The addresses that redirected here, in order."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the answer, names in lower case."""
    unchanged: bool = False
    """The server says that what the validators stand for is still so; `data` is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What a server gave to ask by whether a page has changed."""

    etag: str | None = None
    last_modified: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        asked = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in asked.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What kind of answer is asked for; another one is refused."""

    accept: str = (
        "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/pdf;q=0.7,"
        " application/json;q=0.6, */*;q=0.1"
    )
    types: Collection[str] = frozenset(READABLE)
    """Content types; a document's vague one is taken by the name of its file."""


DOCUMENT = Wanted()


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system knows them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def fetch(
    url: str,
    *,
    max_bytes: int,
    allow_private: bool = False,
    timeout: float = 30.0,  # noqa: ASYNC109 - the limit of the whole fetch, redirects included
    resolver: Resolver = resolve,
    validators: Validators = Validators(),
    wanted: Wanted = DOCUMENT,
) -> Page:
    """The page at `url`, through at most five redirects, each checked like the first.

    With `validators` the page may come back as `unchanged`. Raises FetchRefused for an address
    that is never fetched, UnreadableSource for a page that cannot be had: an error status, too
    large, too slow, not what was wanted; HostBusy when the server asks to come again later.
    """
    try:
        async with asyncio.timeout(timeout):
            return await _follow(
                url, max_bytes, _Guard(allow_private, resolver), validators, wanted
            )
    except TimeoutError as error:
        raise UnreadableSource(url, f"it did not answer within {timeout:g} s") from error


@cache
def _tls() -> "ssl.SSLContext":
    """Reading all certificates of this machine takes longer than many a page."""
    import httpx

    return httpx.create_ssl_context()  # SSL_CERT_FILE counts: many a company has its own


async def _follow(
    url: str, max_bytes: int, guard: "_Guard", validators: Validators, wanted: Wanted
) -> Page:
    from importlib.metadata import version

    import httpx

    # No proxy, cookie or .netrc of the environment; no connection outlives its host's check.
    async with httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(
            verify=_tls(), limits=httpx.Limits(max_keepalive_connections=0)
        ),
        headers={
            "User-Agent": f"vademecum/{version('vademecum')} (document cache for agents)",
            "Accept": wanted.accept,
            "Accept-Encoding": "gzip, br",
        }
        | validators.headers,
        timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
        trust_env=False,
    ) as client:
        hops: list[str] = []
        for _ in range(MAX_REDIRECTS + 1):
            try:
                response = await guard.get(client, url)
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
                raise UnreadableSource(url, _network_reason(error)) from error
            try:
                if response.has_redirect_location:
                    hops.append(url)
                    url = urljoin(url, response.headers["location"])
                    client.cookies.clear()
                    continue
                return replace(await _read(response, url, max_bytes, wanted), hops=tuple(hops))
            except httpx.HTTPError as error:
                raise UnreadableSource(url, _network_reason(error)) from error
            finally:
                await response.aclose()
    raise UnreadableSource(url, f"it redirects more than {MAX_REDIRECTS} times")


class _Guard:
    """Resolves a name itself and dials only what it has checked, so DNS cannot change between."""

    def __init__(self, allow_private: bool, resolver: Resolver) -> None:
        self.allow_private, self.resolver = allow_private, resolver

    async def get(self, client: "httpx.AsyncClient", url: str) -> "httpx.Response":
        import httpx

        check_url(url)
        named = client.build_request("GET", url)
        host = named.url.host
        failure: httpx.HTTPError | None = None
        for address in await self._addresses(url, host, named.url.port):
            dialled = httpx.Request(
                "GET",
                named.url.copy_with(host=address),
                headers=named.headers,  # its Host is the name
                extensions={**named.extensions, "sni_hostname": host},
            )
            try:
                return await client.send(dialled, stream=True, follow_redirects=False)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure or httpx.ConnectError("no address")

    async def _addresses(self, url: str, host: str, port: int | None) -> list[str]:
        try:
            addresses = await self.resolver(host, port or 443)
        except (OSError, UnicodeError) as error:
            raise UnreadableSource(url, "its host is not known") from error
        if not self.allow_private:
            for address in addresses:
                if not is_public(address):
                    raise PrivateAddress(url, str(address))
        return addresses


def check_url(url: str) -> None:
    """Raises FetchRefused unless `url` is a plain http or https address."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise FetchRefused(url, "it is not a web address") from error
    if parts.scheme not in ("http", "https"):
        raise FetchRefused(url, "only http and https are fetched")
    if parts.username is not None or parts.password is not None:
        raise FetchRefused(_without_login(url), "it carries a user name or password")
    if not host:
        raise FetchRefused(url, "it names no host")


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


_NOT_OURS = tuple(
    map(
        ipaddress.ip_network,
        (
            "100.64.0.0/10",  # carrier-grade NAT
            "192.0.0.0/24",
            "192.88.99.0/24",  # 6to4 relays
            "198.18.0.0/15",
        ),
    )
)


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet, seen through its IPv6 wrappings."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or _embedded(ip)
        if inner is not None:
            return is_public(str(inner))
        if ip.teredo is not None or ip not in _UNICAST:
            return False
    if ip.is_multicast or not ip.is_global:
        return False
    return not any(ip in network for network in _NOT_OURS)


_UNICAST = ipaddress.ip_network("2000::/3")
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


def _embedded(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside a NAT64 or IPv4-compatible one."""
    if ip in _TRANSLATED or int(ip) >> 32 == 0:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None


async def _read(response: "httpx.Response", url: str, max_bytes: int, wanted: Wanted) -> Page:
    page = Page(
        url=url,
        content_type=response.headers.get("content-type", ""),
        data=b"",
        etag=response.headers.get("etag"),
        last_modified=response.headers.get("last-modified"),
        fetched_at=datetime.now(UTC),
        headers={name.lower(): value for name, value in response.headers.items()},
    )
    asked = response.request.headers
    if response.status_code == 304 and ("if-none-match" in asked or "if-modified-since" in asked):
        return replace(page, unchanged=True)
    patience = _patience(page.headers)
    if response.status_code in (429, 503) or (response.status_code == 403 and patience is not None):
        raise HostBusy(url, response.status_code, patience)
    if response.status_code != 200:
        reason = f"it answered {response.status_code} {response.reason_phrase}".rstrip()
        body = await _beginning(response, url)
        raise BadStatus(url, response.status_code, reason, page.headers, body)
    _check_content_type(page.content_type, url, wanted)
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise UnreadableSource(url, too_large(int(declared), max_bytes))
    data = bytearray()
    async for piece in _decompressed(response, url, max_bytes):
        data += piece
        if len(data) > max_bytes:
            raise UnreadableSource(url, too_large(len(data), max_bytes))
    return replace(page, data=bytes(data), fetched_at=datetime.now(UTC))


def _patience(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks for: by Retry-After, or until its quota begins anew (GitHub says
    so by X-RateLimit-Reset, in seconds since 1970)."""
    asked = retry_after(headers.get("retry-after"))
    reset = headers.get("x-ratelimit-reset", "")
    if asked is None and headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        left = int(reset) - datetime.now(UTC).timestamp()
        return min(max(left, 1.0), 24 * 3600.0)
    return asked


def retry_after(value: str | None, *, most: float = 24 * 3600.0) -> float | None:
    """Seconds to wait by a Retry-After header, a number or a date; None where it says nothing."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return min(float(value), most)
    try:
        wait = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(wait, 0.0), most)


async def _beginning(response: "httpx.Response", url: str) -> bytes:
    """The beginning of the body of a failure; what cannot be read of it does not matter."""
    import httpx

    body = bytearray()
    try:
        async for piece in _decompressed(response, url, _ERROR_BYTES):
            body += piece
            if len(body) >= _ERROR_BYTES:
                break
    except (UnreadableSource, httpx.HTTPError):
        pass
    return bytes(body[:_ERROR_BYTES])


def _check_content_type(content_type: str, url: str, wanted: Wanted) -> None:
    kind = content_type.partition(";")[0].strip().lower()
    if kind in wanted.types or (kind in _VAGUE and (extension_of(url) in FORMATS or not kind)):
        return
    raise UnreadableSource(url, f"it is not a document ({kind or 'no content type'})")


async def _decompressed(
    response: "httpx.Response", url: str, max_bytes: int
) -> AsyncIterator[bytes]:
    """The body, unpacked no further than the limit: a small answer can hold gigabytes."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        async for raw in response.aiter_raw():
            yield raw
        return
    if encoding == "br":
        async for piece in _from_brotli(response, url, max_bytes):
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise UnreadableSource(url, f"it is compressed in a way not asked for ({encoding})")
    unpack = zlib.decompressobj(wbits=47)
    async for raw in response.aiter_raw():
        try:
            yield unpack.decompress(raw, max_bytes + 1)
        except zlib.error as error:
            raise UnreadableSource(url, "its compression is broken") from error
    if not unpack.eof:
        raise UnreadableSource(url, "it ended too early")


async def _from_brotli(
    response: "httpx.Response", url: str, max_bytes: int
) -> AsyncIterator[bytes]:
    import brotli

    unpack = brotli.Decompressor()
    try:
        async for raw in response.aiter_raw():
            yield unpack.process(raw, output_buffer_limit=max_bytes + 1)
        while not unpack.is_finished() and not unpack.can_accept_more_data():
            yield unpack.process(b"", output_buffer_limit=max_bytes + 1)
    except brotli.error as error:
        raise UnreadableSource(url, "its compression is broken") from error
    if not unpack.is_finished():
        raise UnreadableSource(url, "it ended too early")


def _network_reason(error: Exception) -> str:
    import httpx

    if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError):
        return f"no connection to its host ({error})" if str(error) else "no connection to its host"
    return str(error) or type(error).__name__
