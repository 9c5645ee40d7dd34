"""Addresses as the cache knows them: equal for equal pages."""

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from vademecum.errors import FetchRefused
from vademecum.ingest.read.web import check_url

_TRACKING = re.compile(
    r"utm_\w+|fbclid|gclid|dclid|msclkid|yclid|igshid|mc_[ce]id|_ga|_gl|_hs\w+|ref_src|spm", re.I
)
_PORTS = {"http": 80, "https": 443}
# RFC 3986: unreserved and what a path or query may hold as it is.
_SAFE = "-._~!$&'()*+,;=:@/"


def normalise(url: str) -> str:
    """The address without what does not change the page: case of scheme and host, default port,
    fragment, tracking parameters, order of parameters, needless escapes, dot segments.

    Raises FetchRefused for what is no plain http or https address.
    """
    url = url.strip()
    if any(ord(character) < 33 for character in url):
        raise FetchRefused(url, "it is not a web address")
    check_url(url)
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    host = (parts.hostname or "").rstrip(".")
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError as error:
        raise FetchRefused(url, "it is not a web address") from error
    if ":" in host:
        host = f"[{host}]"
    port = "" if parts.port in (None, _PORTS[scheme]) else f":{parts.port}"
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = sorted((name, value) for name, value in pairs if not _TRACKING.fullmatch(name))
    return urlunsplit((scheme, host + port, _path(parts.path), urlencode(kept), ""))


def _path(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:] if path.startswith("/") else path.split("/")
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        plain = quote(
            unquote(segment, errors="surrogateescape"),
            safe=_SAFE.replace("/", ""),
            errors="surrogateescape",
        )
        if plain in (".", ".."):
            if plain == ".." and kept:
                kept.pop()
            if last:
                kept.append("")
        else:
            kept.append(plain)
    return "/" + "/".join(kept)


def host_of(url: str) -> str:
    """Host, with the port where it is not the scheme's own."""
    return urlsplit(url).netloc.rpartition("@")[2]


def same_place(url: str, other: str) -> bool:
    """Whether two addresses differ only in what names the same page by convention: the query, a
    final slash, index.html. Only then a page may say that the other address is its own."""
    first, second = urlsplit(url), urlsplit(other)
    return first.netloc == second.netloc and _bare(first.path) == _bare(second.path)


def _bare(path: str) -> str:
    return re.sub(r"/(index\.html?)?$|\.html?$", "", path)
