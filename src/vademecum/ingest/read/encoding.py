"""Bytes to text, or a plain statement that they are not text."""

import codecs
import re

from vademecum.errors import UnreadableSource
from vademecum.ingest.read.charset import guess
from vademecum.ingest.read.content import clean_text

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that one's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SIGNATURES = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x7fELF", "a program"),
    (b"%PDF-", "a PDF"),
    (b"SQLite format 3\x00", "a database"),
)
_CONTROLS = bytes(set(range(32)) - {9, 10, 12, 13, 27}) + b"\x7f"
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.I)
_XML_ENCODING = re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{2,40})")
_EMACS_CODING = re.compile(rb"\A[^\n]{0,200}-\*-[^\n]{0,100}coding:\s*([\w.-]{2,40})")
# What browsers do: pages that say Latin-1 mean Windows-1252.
_MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
# They do not decode to text, or read anything as text.
_REFUSED = {"utf-7", "idna", "punycode", "raw_unicode_escape", "unicode_escape", "undefined"}
_SAMPLE = 256 * 1024
_CONTROL_SHARE = 0.02
_FEW_CONTROLS = 4


def decode(data: bytes, *, name: str, declared: str | None = None) -> str:
    """The text of `data`, cleaned: UTF-8 where it is that, then what it declares, then a guess.

    `declared` is the charset of the transport. Raises UnreadableSource for empty and binary
    sources and where no encoding fits well enough.
    """
    text = clean_text(_decode(data, name, declared)) if data.strip() else ""
    if not text.strip():
        raise UnreadableSource(name, "it is empty")
    return text


def _decode(data: bytes, name: str, declared: str | None) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _decode_marked(data[len(mark) :], encoding, name)
    _refuse_binary(data, name, declared)
    candidates = [c for c in (_known(declared), _known(_declared_inside(data))) if c]
    stateful = next((c for c in candidates if c.startswith(("iso2022", "hz"))), None)
    if stateful is None:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
    for encoding in candidates:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return _damaged_utf8(data) or _guess(data, name)


def _decode_marked(data: bytes, encoding: str, name: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        damaged = _damaged_utf8(data) if encoding == "utf-8" else None
        if damaged is None:
            raise UnreadableSource(name, f"it is marked as {encoding} but is not") from error
        text = damaged
    if "\x00" in text:
        raise UnreadableSource(name, "it is binary")
    return text


def _refuse_binary(data: bytes, name: str, declared: str | None) -> None:
    for signature, what in _SIGNATURES:
        if data.startswith(signature):
            raise UnreadableSource(name, f"it is binary ({what})")
    wide = _known(declared)
    if wide and wide.startswith(("utf-16", "utf-32")):
        return
    if b"\x00" in data:
        raise UnreadableSource(name, "it is binary")
    head = data[:_SAMPLE]
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > max(_FEW_CONTROLS, _CONTROL_SHARE * len(head)):
        raise UnreadableSource(name, "it is binary")


def _declared_inside(data: bytes) -> str | None:
    head = data[:2048]
    for pattern in (_XML_ENCODING, _META_CHARSET, _EMACS_CODING):
        if match := pattern.search(head):
            return match[1].decode("ascii", "ignore")
    return None


def _known(charset: str | None) -> str | None:
    """Python's name of a text encoding, None for anything else."""
    if not charset:
        return None
    try:
        encoding = codecs.lookup(charset.strip().strip("\"'"))
    except (LookupError, ValueError):
        return None
    if not encoding._is_text_encoding or encoding.name in _REFUSED:
        return None
    return _MEANT.get(encoding.name, encoding.name)


def _damaged_utf8(data: bytes) -> str | None:
    """UTF-8 with a few broken bytes shows them as U+FFFD; None if it was not UTF-8 at all."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore")) - broken
    return text if beyond_ascii >= 20 * broken else None


def _guess(data: bytes, name: str) -> str:
    encoding = guess(data[:_SAMPLE])
    if encoding is None:
        raise UnreadableSource(name, "its text encoding cannot be told; convert it to UTF-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableSource(
            name, f"it looks like {encoding} but does not decode; convert it to UTF-8"
        ) from error
