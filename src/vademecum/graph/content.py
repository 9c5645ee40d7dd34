"""Whole texts of documents, as files of their owner only; the database holds what is searched."""

import os
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from vademecum.types import EntityId


class Content:
    """A file a document, named by its id, in folders of the first two digits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, number: UUID) -> Path:
        return self.folder / str(number)[:2] / f"{number}.md"

    def read(self, number: UUID) -> str | None:
        """None where it is not kept."""
        try:
            return self.path(number).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, number: UUID, text: str) -> None:
        """Whole or not at all: a reader never sees half of it."""
        write_private(self.path(number), text.encode("utf-8", "replace"))

    def unused(self, *, before: float) -> list[EntityId]:
        """Documents whose file was neither written nor read since a time, in seconds."""
        found = []
        for path in self.folder.glob("??/*.md"):
            with suppress(ValueError, FileNotFoundError):
                seen = path.stat()
                if max(seen.st_mtime, seen.st_atime) < before:
                    found.append(EntityId(UUID(path.stem)))
        return found

    def remove(self, ids: Collection[UUID]) -> None:
        for number in ids:
            self.path(number).unlink(missing_ok=True)


def remove_parts(folder: Path, *, before: float) -> int:
    """Remove what a killed process left of files that it wrote before a time; how many."""
    removed = 0
    for path in folder.rglob("*.part"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()
                removed += 1
    return removed


def write_private(path: Path, data: bytes) -> None:
    """A file that only its owner reads, in folders that only he enters; whole or not at all."""
    missing = []
    folder = path.parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent, suffix=".part")  # 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(part, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)
