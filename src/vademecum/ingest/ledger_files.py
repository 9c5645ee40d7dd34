"""The files of a knowledge base: its ledger, its task list and its summaries.

    document_ledger --rows--> .kb/status/status.jsonl, TASKS.md, .kb/summaries/*.summary6.md

The database holds the truth and the files follow it, each replaced in one step: a reader sees the
one before or the one after, and what a killed process left behind is put right by the next write.
"""

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from vademecum.store.ledger import LedgerRow

STEPS = ("discovered", "chunked", "embedded", "upserted", "summary6")
AUTO_GENERATED = "(auto-generated)"
SHARE_OF_TIME = 0.1
"""Of a run, that writing the files may take: in a very large folder not each step is shown."""


class LedgerFiles:
    """Writes the files of one knowledge base."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.root = name, root
        self._summaries: dict[str, str] | None = None
        self._rest_until = 0.0

    @property
    def due(self) -> bool:
        """Whether a step in the middle of a run is to be shown; the end of one always is."""
        return time.monotonic() >= self._rest_until

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """One writer at a time, from reading the rows to writing the files. Raises OSError."""
        (self.root / ".kb").mkdir(exist_ok=True)
        with open(self.root / ".kb" / ".lock", "wb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def write(self, rows: Sequence[LedgerRow]) -> list[str]:
        """Bring all files in step with the rows; what could not be done. Raises OSError."""
        started = time.monotonic()
        notices = []
        self._write_summaries(rows)
        _replace(self.root / ".kb" / "status" / "status.jsonl", ledger_text(rows))
        tasks = self.root / "TASKS.md"
        if _is_users(tasks):
            notices.append(f"{tasks} is not ours and was left as it is")
        else:
            _replace(tasks, tasks_text(self.name, rows))
        took = time.monotonic() - started
        self._rest_until = time.monotonic() + took / SHARE_OF_TIME
        return notices

    def _write_summaries(self, rows: Sequence[LedgerRow]) -> None:
        folder = self.root / ".kb" / "summaries"
        if self._summaries is None:
            self._summaries = {
                path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
                for path in folder.rglob("*.summary6.md")
            }
        summarised = [row for row in rows if row.summary6]
        names = summary_names([row.path for row in rows])
        wanted = {names[row.path]: summary_text(row) for row in summarised}
        for name in self._summaries.keys() - wanted.keys():
            (folder / name).unlink(missing_ok=True)
        for name, text in wanted.items():
            if self._summaries.get(name) != text:
                _replace(folder / name, text)
        self._summaries = wanted


def summary_names(paths: Sequence[str]) -> dict[str, str]:
    """The summary file of each document: its stem, or with its folder where stems are equal.

    Letter case does not tell two files apart everywhere, so it does not here.
    """
    pure = {path: PurePosixPath(path) for path in paths}
    stems = Counter(path.stem.casefold() for path in pure.values())
    longer = Counter(str(path.with_suffix("")).casefold() for path in pure.values())
    names = {}
    for path, parts in pure.items():
        name = parts.stem
        if stems[name.casefold()] > 1:
            name = str(parts.with_suffix(""))
            if longer[name.casefold()] > 1:
                name = path
        names[path] = f"{name}.summary6.md"
    return names


def ledger_text(rows: Sequence[LedgerRow]) -> str:
    """One JSON object a line, by path."""
    return "".join(json.dumps(ledger_fields(row), ensure_ascii=False) + "\n" for row in rows)


def ledger_fields(row: LedgerRow) -> dict[str, object]:
    return {
        "file_path": row.path,
        "sha256": row.sha256,
        **{f"{step}_at": _iso(getattr(row, f"{step}_at")) for step in STEPS},
        "sql_topic": row.topic,
        "vector_count": row.vector_count,
        "notes": row.notes,
    }


def tasks_text(name: str, rows: Sequence[LedgerRow]) -> str:
    """The task list; its date is that of the last step, so that an idle run changes nothing."""
    times = [at for row in rows for step in STEPS if (at := getattr(row, f"{step}_at"))]
    lines = [
        f"# Tasks — {name} {AUTO_GENERATED}",
        f"- Updated: {_iso(max(times, default=None)) or 'never'}",
        "",
        "| File | Discovered | Chunked | Embedded | Upserted | Summary-6 |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        marks = ["✓" if getattr(row, f"{step}_at") else "" for step in STEPS]
        path = row.path.replace("|", "\\|")
        lines.append("| " + " | ".join([path, *marks]) + " |")
    return "\n".join(lines) + "\n"


def summary_text(row: LedgerRow) -> str:
    lines = [f"# {row.title}", "", f"Summary of `{row.path}` {AUTO_GENERATED}", ""]
    for number, bullet in enumerate(row.summary6, start=1):
        label, _, body = bullet.partition(" — ")
        lines.append(f"{number}. **{label}** — {body}")
    return "\n".join(lines) + "\n"


def _iso(time: datetime | None) -> str | None:
    return time.astimezone(UTC).isoformat(timespec="seconds") if time else None


def _is_users(path: Path) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return AUTO_GENERATED not in stream.readline(4096)
    except FileNotFoundError:
        return False


def _replace(path: Path, text: str) -> None:
    """The whole file or none of it, as every other file of its folder may be read."""
    content = text.encode("utf-8", "surrogatepass")
    try:
        if path.read_bytes() == content:
            return
    except OSError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    number, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with open(number, "wb") as stream:
            stream.write(content)
            os.fchmod(number, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
