"""The documents of a folder: what to read, what is left out and why."""

# A walk over 100 000 files feels every Path object it makes.

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vademecum.errors import UnreadableSource
from vademecum.ingest.read.formats import (
    FORMATS,
    open_regular_file,
    read_regular_file,
    reason_of,
    too_large,
)

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".vadeignore")
"""The later one of a folder has the last word."""

_NEVER_ENTERED = {"node_modules", "venv", "__pycache__"}  # and every hidden folder
_BARE_NAMES = {"readme"}
# Written by Vademecum itself: reading them back would feed it its own words.
_WRITTEN_BY_US = re.compile(r".*\.summary6\.md\Z", re.S | re.I)
_MAX_IGNORE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A file to read."""

    path: Path
    relative: str
    """Path under the scanned folder, with `/`; bytes that are not UTF-8 are shown as \\xNN."""
    size: int
    modified_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A document that is not read, with the reason."""

    relative: str
    reason: str


def scan(
    folder: Path, *, max_bytes: int, wanted: Callable[[str], bool] | None = None
) -> Iterator[Found | Skipped]:
    """Every document under `folder`, each once, in the order of their names; links come last.

    `wanted` says by its name whether a file is one, instead of the formats we read.

    Files that are ignored or are no documents are passed over in silence. Raises
    UnreadableSource when the folder itself cannot be read.
    """
    try:
        root = folder.resolve(strict=True)
        os.scandir(root).close()
    except (OSError, RuntimeError, ValueError) as error:
        raise UnreadableSource(str(folder), reason_of(error)) from error
    walk = _Walk(root, max_bytes, wanted or _is_document)
    yield from walk.folder(root, "", _rules_above(root))
    yield from walk.links()


def hash_file(path: Path) -> str:
    """SHA-256 of a file, hexadecimal. Raises UnreadableSource if it cannot be read."""
    try:
        with open_regular_file(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise UnreadableSource(str(path), reason_of(error)) from error


@dataclass(frozen=True, slots=True)
class _Rules:
    """The patterns of one ignore file, which speak of paths relative to its own folder.

    That folder is `base` under the scanned one, or lies above it by the path `below`.
    """

    spec: "GitIgnoreSpec"
    base: str = ""
    below: str = ""

    def local(self, relative: str) -> str:
        if self.below:
            return f"{self.below}/{relative}"
        return relative[len(self.base) + 1 :] if self.base else relative


class _Walk:
    def __init__(self, root: Path, max_bytes: int, wanted: Callable[[str], bool]) -> None:
        self.root, self.max_bytes, self.wanted = root, max_bytes, wanted
        self.seen: set[str] = set()
        self.entered: set[str] = set()
        self.pending_links: list[tuple[str, str, list[_Rules]]] = []

    def folder(self, path: Path, relative: str, rules: list[_Rules]) -> Iterator[Found | Skipped]:
        """Depth first, without recursion: a folder may be nested deeper than Python's stack."""
        stack = [(str(path), relative, rules)]
        while stack:
            current, prefix, rules = stack.pop()
            try:
                with os.scandir(current) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                yield Skipped(relative=_printable(prefix) or ".", reason=reason_of(error))
                continue
            self.entered.add(current)
            rules = [*rules, *_rules_of(current, {entry.name for entry in entries}, base=prefix)]
            below: list[tuple[str, str, list[_Rules]]] = []
            for entry in entries:
                path_here = f"{prefix}/{entry.name}" if prefix else entry.name
                if entry.is_symlink():
                    self.pending_links.append((entry.path, path_here, rules))
                elif entry.is_dir(follow_symlinks=False):
                    if _enters(entry.name) and not _ignored(path_here, rules, folder=True):
                        below.append((entry.path, path_here, rules))
                elif self.wanted(entry.name) and not _ignored(path_here, rules):
                    yield from self.file(entry.path, path_here)
            stack.extend(reversed(below))

    def file(self, path: str, relative: str) -> Iterator[Found | Skipped]:
        try:
            status = os.stat(path)
        except OSError as error:
            yield Skipped(relative=_printable(relative), reason=reason_of(error))
            return
        reason = _reason_to_skip(status, self.max_bytes)
        if reason:
            yield Skipped(relative=_printable(relative), reason=reason)
            return
        if _written_by_us(path):
            return
        self.seen.add(path)
        yield Found(
            path=Path(path),
            relative=_printable(relative),
            size=status.st_size,
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
        )

    def links(self) -> Iterator[Found | Skipped]:
        """Links to a file under the folder that no other name has led to.

        A link to a folder inside needs no following: the walk has been there, or was meant not
        to go.
        """
        for path, relative, rules in self.pending_links:
            is_folder = os.path.isdir(path)
            named = _enters(Path(path).name) if is_folder else self.wanted(Path(path).name)
            if not named or _ignored(relative, rules, folder=is_folder):
                continue
            target = os.path.realpath(path)
            inside = os.path.relpath(target, self.root)
            if inside == ".." or inside.startswith("../"):
                reason = "it is a link that leads out of the folder"
                yield Skipped(relative=_printable(relative), reason=reason)
            elif not os.path.exists(path):
                yield Skipped(relative=_printable(relative), reason="it is a link to nothing")
            elif not is_folder and target not in self.seen and self._reachable(target):
                yield from self.file(path, relative)
                self.seen.add(target)

    def _reachable(self, target: str) -> bool:
        """Whether the walk went into the folder of `target`."""
        return os.path.dirname(target) in self.entered


def _enters(folder_name: str) -> bool:
    return not folder_name.startswith(".") and folder_name not in _NEVER_ENTERED


def _is_document(file_name: str) -> bool:
    if file_name.startswith("."):
        return False
    lower = file_name.lower()
    return os.path.splitext(lower)[1] in FORMATS or lower in _BARE_NAMES


def _written_by_us(path: str) -> bool:
    name = os.path.basename(path)
    if _WRITTEN_BY_US.match(name):
        return True
    if name != "TASKS.md":
        return False
    try:
        with open(path, "rb") as stream:
            return b"(auto-generated)" in stream.readline(4096)
    except OSError:
        return False


def _reason_to_skip(status: os.stat_result, max_bytes: int) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_size == 0:
        return "it is empty"
    if status.st_size > max_bytes:
        return too_large(status.st_size, max_bytes)
    return None


def _printable(relative: str) -> str:
    return os.fsencode(relative).decode("utf-8", "backslashreplace")


def _ignored(relative: str, rules: list[_Rules], *, folder: bool = False) -> bool:
    """The deepest file that says anything about the path decides."""
    for rule in reversed(rules):
        path = rule.local(relative)
        if folder and not path.endswith("/"):
            path += "/"
        said = rule.spec.check_file(path).include
        if said is not None:
            return said
    return False


def _rules_above(root: Path) -> list[_Rules]:
    """The rules of the git repository that `root` is in, outermost first."""
    repository = next((p for p in (root, *root.parents) if (p / ".git").exists()), None)
    if repository is None:
        return []
    rules = _read_rules(repository / ".git" / "info" / "exclude", below=_below(root, repository))
    for parent in reversed(root.parents):
        if parent.is_relative_to(repository):
            names = {name for name in IGNORE_FILES if (parent / name).exists()}
            rules += _rules_of(str(parent), names, below=_below(root, parent))
    # Whoever names an ignored folder wants it: then only rules inside it count.
    return [rule for rule in rules if not rule.below or not _ignored("", [rule], folder=True)]


def _below(root: Path, parent: Path) -> str:
    relative = root.relative_to(parent).as_posix()
    return "" if relative == "." else relative


def _rules_of(folder: str, names: set[str], *, base: str = "", below: str = "") -> list[_Rules]:
    found = (name for name in IGNORE_FILES if name in names)
    return [rule for name in found for rule in _read_rules(Path(folder, name), base, below)]


def _read_rules(path: Path, base: str = "", below: str = "") -> list[_Rules]:
    from pathspec import GitIgnoreSpec

    try:
        content = read_regular_file(path, name=str(path), max_bytes=_MAX_IGNORE_BYTES)
    except UnreadableSource:
        return []
    lines = content.decode("utf-8", "surrogateescape").splitlines()
    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except ValueError:
        # Git passes over a pattern that it cannot read and keeps the others.
        spec = GitIgnoreSpec.from_lines(filter(_is_pattern, lines))
    return [_Rules(spec, base, below)]


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
