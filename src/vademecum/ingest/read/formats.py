"""Which reader a source needs, and one document of whatever it returns."""

import errno
import hashlib
import os
import stat
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from vademecum.errors import UnreadableSource
from vademecum.ingest.read.content import Content, title_from_name
from vademecum.ingest.read.encoding import decode

if TYPE_CHECKING:
    from vademecum.types import Document, Format

FORMATS: "dict[str, Format]" = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".rst": "rst",
    ".txt": "text",
    ".text": "text",
    ".adoc": "text",
    ".asciidoc": "text",
    ".pdf": "pdf",
}
"""File name extensions that are documents."""

_CONTENT_TYPES: "dict[str, Format]" = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/x-rst": "rst",
    "text/prs.fallenstein.rst": "rst",
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
}


READ_SECONDS = 30
"""Processor time that reading one document may take, unless told otherwise."""

_APART: "frozenset[Format]" = frozenset({"rst", "pdf"})
_APART_FROM = 64 * 1024


def read_bytes(
    data: bytes, *, name: str, content_type: str | None = None, seconds: int = READ_SECONDS
) -> "Document":
    """The document that these bytes are. `name` is a path or URL, for messages and the format.

    What can take long is read in another process, which may use `seconds` of processor time.
    Raises UnreadableSource with the reason for anything that is not a readable document.
    """
    from vademecum.types import Document  # loads numpy: not for a mere scan

    if not data:
        raise UnreadableSource(name, "it is empty")
    kind, charset = _split_content_type(content_type)
    format_ = _format(data, name, kind)
    if format_ in _APART or (format_ != "text" and len(data) >= _APART_FROM):
        from vademecum.ingest.read.apart import read_apart

        content = read_apart(data, name=name, format_=format_, charset=charset, seconds=seconds)
    else:
        content = read_content(data, name=name, format_=format_, charset=charset)
    if not content.text.strip():
        raise UnreadableSource(name, "it holds no text")
    return Document(
        title=content.title or title_from_name(name),
        text=content.text,
        format=format_,
        source_hash=hashlib.sha256(data).hexdigest(),
        metadata=content.metadata,
    )


def read_content(data: bytes, *, name: str, format_: "Format", charset: str | None) -> Content:
    """What the reader of a format makes of the bytes, in this process. Raises UnreadableSource."""
    if format_ == "pdf":
        from vademecum.ingest.read.pdf import read_pdf

        return read_pdf(data, name=name)
    return _read_text_format(decode(data, name=name, declared=charset), format_, name)


def read_file(path: Path, *, name: str, max_bytes: int, seconds: int = READ_SECONDS) -> "Document":
    """The document of one regular file; never waits on a pipe or a device.

    Raises UnreadableSource, also for a file that is too large, gone or forbidden.
    """
    data = read_regular_file(path, name=name, max_bytes=max_bytes)
    return read_bytes(data, name=name, seconds=seconds)


def read_regular_file(path: Path, *, name: str, max_bytes: int) -> bytes:
    """The bytes of a regular file. Raises UnreadableSource for anything else."""
    try:
        with open_regular_file(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > max_bytes:
                raise UnreadableSource(name, too_large(size, max_bytes))
            data = stream.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        raise UnreadableSource(name, reason_of(error)) from error
    if len(data) > max_bytes:
        raise UnreadableSource(name, too_large(len(data), max_bytes))
    return data


def open_regular_file(path: Path) -> FileIO:
    """Open for reading. Raises OSError, at once, for a pipe, a device or a folder."""
    # Without O_NONBLOCK the open itself would wait for the other end of a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "it is not a regular file")
    return FileIO(descriptor)


def too_large(size: int, limit: int) -> str:
    """Why a source of `size` bytes is refused."""
    return f"it is too large ({_megabytes(size)}, the limit is {_megabytes(limit)})"


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB" if size >= 2**20 // 10 else f"{size} bytes"


def reason_of(error: Exception) -> str:
    """An error of the file system, in words."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOENT:
        return "it does not exist"
    if number in (errno.EACCES, errno.EPERM):
        return "permission denied"
    if number == errno.ELOOP:
        return "its symbolic links go in a circle"
    if number in (errno.ENXIO, errno.EISDIR):
        return "it is not a regular file"
    text = error.strerror if isinstance(error, OSError) else None
    return (text or str(error) or type(error).__name__).lower()


def _split_content_type(content_type: str | None) -> tuple[str, str | None]:
    kind, _, rest = (content_type or "").partition(";")
    charset = None
    for parameter in rest.split(";"):
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset" and value.strip():
            charset = value.strip().strip("\"'")
    return kind.strip().lower(), charset


def extension_of(name: str) -> str:
    """The file name extension of a path or URL, lower case."""
    if "://" in name:
        try:
            name = urlsplit(name).path
        except ValueError:
            return ""
    return PurePosixPath(name).suffix.lower()


def _format(data: bytes, name: str, kind: str) -> "Format":
    """The transport's word, then the name, then a look at the first bytes."""
    if kind in _CONTENT_TYPES:
        return _CONTENT_TYPES[kind]
    by_name = FORMATS.get(extension_of(name))
    if by_name:
        return by_name
    if data.startswith(b"%PDF-"):
        return "pdf"
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if kind != "text/plain" and (
        head.startswith((b"<!doctype html", b"<html")) or (b"<html" in head and b"<?xml" in head)
    ):
        return "html"
    return "text"


def _read_text_format(text: str, format_: "Format", name: str) -> Content:
    if format_ == "html":
        from vademecum.ingest.read.html import read_html

        return read_html(text, base=name if "://" in name else None)
    if format_ == "rst":
        from vademecum.ingest.read.rst import read_rst

        return read_rst(text)
    if format_ == "markdown":
        from vademecum.ingest.read.markdown import read_markdown

        return read_markdown(text, mdx=extension_of(name) == ".mdx")
    from vademecum.ingest.read.text import read_text

    return read_text(text)
