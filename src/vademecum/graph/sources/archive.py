"""The texts of a source archive: changelog, readme and examples. Nothing is unpacked to disk."""

import gzip
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from vademecum.errors import UnreadableSource
from vademecum.ingest.read import Wanted

UNPACKED = 256 * 2**20
"""Bytes that an archive may hold when it is unpacked."""
LARGEST = 2 * 2**20
"""Bytes of a file that is read of it."""
MEMBERS = 50_000
ARCHIVE = Wanted(
    accept="*/*",
    types=frozenset(
        {
            "application/gzip",
            "application/octet-stream",
            "application/x-gzip",
            "application/x-gtar",
            "application/x-tar",
            "application/x-tgz",
            "application/x-compressed-tar",
            "application/zip",
            "binary/octet-stream",
        }
    ),
)
_CHANGELOG = re.compile(
    r"^(?:docs?/(?:source/)?)?(?:change[-_ ]?log|changes|history|news|release[-_ ]?notes|releases|"
    r"whats[-_ ]?new|upgrad(?:e|ing)|migrat(?:e|ion|ing))(?:\.(?:md|markdown|rst|txt))?$",
    re.IGNORECASE,
)
_README = re.compile(r"^readme(?:\.(?:md|markdown|rst|txt))?$", re.IGNORECASE)
_EXAMPLE = re.compile(r"^(?:docs?/)?examples?/(?:[^/]+/)?[^/]+\.(?:py|js|mjs|ts)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTexts:
    """Relative names with their bytes."""

    changelogs: dict[str, bytes]
    readme: tuple[str, bytes] | None
    examples: dict[str, bytes]


def read_archive(data: bytes, url: str) -> ArchiveTexts:
    """The texts of a tar.gz or zip whose files are in one folder. Raises UnreadableSource."""
    changelogs: dict[str, bytes] = {}
    examples: dict[str, bytes] = {}
    readme: tuple[str, bytes] | None = None
    try:
        for name, text in _members(data, url):
            if _CHANGELOG.match(name):
                changelogs[name] = text
            elif _README.match(name):
                readme = readme or (name, text)
            else:
                examples[name] = text
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise UnreadableSource(url, f"the archive is broken ({error})") from error
    return ArchiveTexts(changelogs=changelogs, readme=readme, examples=examples)


def _wanted(name: str) -> bool:
    return any(pattern.match(name) for pattern in (_CHANGELOG, _README, _EXAMPLE))


def _members(data: bytes, url: str) -> Iterator[tuple[str, bytes]]:
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as folder:
            for one in folder.infolist()[:MEMBERS]:
                name = one.filename.partition("/")[2]
                if not one.is_dir() and one.file_size <= LARGEST and _wanted(name):
                    yield name, folder.read(one)[:LARGEST]
        return
    stream = _Bounded(gzip.GzipFile(fileobj=io.BytesIO(data)), url)
    with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
        for count, member in enumerate(archive):
            if count > MEMBERS:
                raise UnreadableSource(url, f"the archive has more than {MEMBERS} files")
            name = member.name.removeprefix("./").partition("/")[2]
            if not member.isfile() or member.size > LARGEST or not _wanted(name):
                continue
            file = archive.extractfile(member)
            if file is not None:
                yield name, file.read()


class _Bounded:
    """A stream that ends with an error instead of filling the memory."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, url: str) -> None:
        self._stream, self._url, self._left = stream, url, UNPACKED

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableSource(self._url, f"the archive holds more than {UNPACKED >> 20} MB")
        return data
