"""Failures as patterns: the exception and its message, without what differs each time."""

import re
from dataclasses import dataclass
from typing import Literal

from vademecum.errors import BadInput
from vademecum.graph.sources.adapter import Subject

MAX_TEXT = 200_000
"""Characters of an error that are looked at; the end counts."""
MAX_PATTERN = 300
_PYTHON_END = re.compile(
    r"^(?P<kind>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Exit|Interrupt|Iteration|\w*))"
    r"(?::[ \t]*(?P<message>.*))?$"
)
_PYTHON_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)
_SCRIPT_END = re.compile(
    r"^(?:Uncaught\s+)?(?:\[?\w+\]?\s)?(?P<kind>[A-Z]\w*(?:Error|Exception))"
    r"(?:\s\[\w+\])?:[ \t]*(?P<message>.*)$",
    re.MULTILINE,
)
_SCRIPT_FRAME = re.compile(r"^\s+at .*?\(?(?P<file>[^()\s]+):(?P<line>\d+):\d+\)?$", re.MULTILINE)
_DIFFERS = (
    (re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{16,}\b"), "<id>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@-]+){2,}[\\/]?"), "<path>"),
    (re.compile(r"https?://\S+"), "<url>"),
    (re.compile(r"\b\d+(?:\.\d+)*\b"), "<n>"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error as it is known again."""

    pattern: str
    """`ModuleNotFoundError: No module named 'yaml'`: names in quotes stay, they are the point."""
    kind: str
    message: str
    language: Literal["python", "javascript", ""]
    frames: tuple[tuple[str, int], ...]
    """Files with lines, the innermost last."""


def subject_of(text: str, *, package: str = "", repository: str = "") -> Subject:
    """What is looked up of a traceback or an error message. Raises BadInput."""
    failure = read_failure(text)
    if failure is None:
        raise BadInput(
            "the error shows no exception that could be known again",
            hint="Give the traceback, or its last line such as `ValueError: …`.",
        )
    return Subject(
        kind="error",
        name=failure.pattern,
        language=failure.language,
        package=package,
        repository=repository,
    )


def read_failure(text: str) -> Failure | None:
    """The failure that a traceback or an error message shows; None where it shows none."""
    text = text[-MAX_TEXT:].replace("\0", "")
    frames = [(m["file"], int(m["line"])) for m in _PYTHON_FRAME.finditer(text)]
    if frames or "Traceback (most recent call last)" in text:
        for line in reversed(text.rstrip().splitlines()):
            match = _PYTHON_END.match(line)
            if match and not line.startswith((" ", "\t")):
                return _failure(match["kind"], match["message"] or "", "python", frames)
    script_frames = [(m["file"], int(m["line"])) for m in _SCRIPT_FRAME.finditer(text)]
    found = _SCRIPT_END.search(text)
    if found and script_frames:
        return _failure(found["kind"], found["message"], "javascript", script_frames[::-1])
    for line in reversed(text.strip().splitlines()):
        match = re.match(
            r"^(?:\w+\s+)?(?P<kind>(?:\w+\.)*\w*(?:Error|Exception))(?::\s*(?P<m>.*))?$", line
        )
        if match:
            return _failure(match["kind"], match["m"] or "", "", [])
    return None


def _failure(
    kind: str,
    message: str,
    language: Literal["python", "javascript", ""],
    frames: list[tuple[str, int]],
) -> Failure:
    kind, message = kind.rpartition(".")[2], message.strip()
    general = message
    for differs, word in _DIFFERS:
        general = differs.sub(word, general)
    pattern = f"{kind}: {general}" if general else kind
    return Failure(
        pattern=pattern[:MAX_PATTERN],
        kind=kind,
        message=message,
        language=language,
        frames=tuple(frames),
    )
