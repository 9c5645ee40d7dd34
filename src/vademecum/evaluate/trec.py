"""Runs in the form of TREC, which trec_eval and its kin read: `query Q0 document rank score tag`.

Fields are separated by white space, so white space in an id or a path is percent-encoded, and `%`
itself, as in a URL: `my notes.md` is `my%20notes.md`.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from vademecum.errors import BadInput
from vademecum.types import Hit

MAX_DOCUMENTS = 100
"""Lines of one question."""


def documents(hits: Iterable[Hit]) -> list[Hit]:
    """The best hit of each document, in order: a ranking of documents."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.path, hit)
    return list(best.values())


def run_lines(question: str, hits: Sequence[Hit], *, tag: str) -> Iterator[str]:
    """The lines of one question, each document once at its best rank."""
    ranking = documents(hits)[:MAX_DOCUMENTS]
    scores = descending([hit.score for hit in ranking])
    for rank, (hit, score) in enumerate(zip(ranking, scores, strict=True), start=1):
        yield f"{field(question)} Q0 {field(hit.path)} {rank} {score} {field(tag)}\n"


def read_run(path: Path) -> dict[str, list[str]]:
    """The document paths of each question, best first: by score, ties as trec_eval breaks them.

    Raises BadInput for a file that is no run.
    """
    scored: dict[str, list[tuple[float, str]]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read the run {path}: {error}") from None
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields:
            continue
        try:
            question, _, document, _, score, _ = fields
            scored.setdefault(unquote(question), []).append((float(score), document))
        except ValueError:
            raise BadInput(
                f"{path}:{number}: no line of a run",
                hint="A run has lines of six fields: `question Q0 document rank score tag`.",
            ) from None
    return {
        question: [unquote(document) for _, document in sorted(found, reverse=True)]
        for question, found in scored.items()
    }


def field(text: str) -> str:
    """The text as one field: without white space, and reversible."""
    return "".join(
        quote(letter, safe="") if letter == "%" or letter.isspace() or ord(letter) < 32 else letter
        for letter in text
    )


def descending(scores: Sequence[float]) -> list[str]:
    """Scores in order as text, equal ones made a trifle less than those before them.

    trec_eval sorts by score, kept as a 32-bit float, and breaks ties by name: a tie, also one of
    rounding, would change the ranking.
    """
    written: list[str] = []
    last = np.float32(np.inf)
    for score in scores:
        last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
        written.append(f"{last:.9g}")
    return written


def check_target(path: Path, *, inputs: Sequence[Path] = ()) -> Path:
    """The file that a run may be written to, links followed; raises BadInput before any work."""
    target = path.resolve()
    if not target.parent.is_dir():
        raise BadInput(f"there is no folder {target.parent} to write the run to")
    if target.exists() and not target.is_file():
        raise BadInput(f"{path} is no file: the run cannot be written there")
    if target.exists() and any(target.samefile(other) for other in inputs if other.exists()):
        raise BadInput(f"{path} is the file to read: the run would overwrite it")
    if not os.access(target.parent, os.W_OK):
        raise BadInput(f"the folder {target.parent} cannot be written to")
    return target


def write_run(target: Path, lines: Iterable[str]) -> None:
    """Write all of it or nothing: the file is replaced at once. Raises BadInput."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        try:
            with partial.open("x", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write the run {target}: {error.strerror}") from None
