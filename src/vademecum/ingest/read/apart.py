"""Reading in a process of its own, which the kernel ends when a document takes too long.

    parent --> child:  length, JSON {name, format, charset, seconds, size}, the bytes
    child --> parent:  length, JSON {title, text, metadata} or {unreadable: reason}

Neither a thread nor a regular expression can be stopped from outside, and a fault in native code
takes its process along. The limit is processor time, so that a busy machine refuses nothing.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from vademecum.errors import UnreadableSource
from vademecum.garbage import look_rarely
from vademecum.ingest.read.content import Content

if TYPE_CHECKING:
    from vademecum.types import Format

IDLE_SECONDS = 60
"""A child with nothing to read ends itself after so long."""

_idle: list["_Child"] = []
_lock = threading.Lock()


def read_apart(
    data: bytes, *, name: str, format_: "Format", charset: str | None, seconds: int
) -> Content:
    """What the reader of a format makes of the bytes, in at most `seconds` of processor time.

    Children are kept for the next document; any number of threads may call. Raises
    UnreadableSource, also where the reader took too long or crashed.
    """
    request = {"format": format_, "charset": charset, "seconds": seconds, "name": name}
    while True:
        with _lock:
            child, kept = (_idle.pop(), True) if _idle else (_Child(), False)
        answer = child.ask(request, data)
        if answer is not None:
            break
        code = child.end()
        if kept and code == 0:  # it had gone idle
            continue
        raise UnreadableSource(name, _reason(code, seconds))
    with _lock:
        _idle.append(child)
    if "unreadable" in answer:
        raise UnreadableSource(name, answer["unreadable"])
    return Content(title=answer["title"], text=answer["text"], metadata=answer["metadata"])


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()


def _reason(code: int, seconds: int) -> str:
    if code == -signal.SIGPROF:
        return f"reading it took longer than {seconds} s"
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"the reader crashed ({how})"


class _Child:
    def __init__(self) -> None:
        # -P: a file of the current folder must not pass for a module.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, request: dict[str, Any], data: bytes) -> dict[str, Any] | None:
        """Its answer, None where it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _write(self._process.stdin, request, data)
        except OSError:
            return None
        received = _read(self._process.stdout)
        return received[0] if received else None

    def end(self) -> int:
        """Its exit code, negative for a signal."""
        for stream in (self._process.stdin, self._process.stdout):
            try:
                if stream is not None:
                    stream.close()
            except OSError:  # what it was sent last cannot be flushed
                pass
        return self._process.wait()


def serve() -> None:
    """The child: read documents until there is nobody left who asks."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Where memory runs out the kernel ends a reader, not the server. A limit of our own would not
    # do: a native parser that is refused memory can pass off half a document as the whole.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    look_rarely()
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        received = _read(requests)
        if received is None:
            return
        request, data = received
        # The default action of the signal is to end the process.
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
        answer = _answer(request, data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(answers, answer)


def _answer(request: dict[str, Any], data: bytes) -> dict[str, Any]:
    from vademecum.ingest.read.formats import read_content

    try:
        content = read_content(
            data, name=request["name"], format_=request["format"], charset=request["charset"]
        )
    except UnreadableSource as error:
        return {"unreadable": error.reason}
    except Exception as error:  # noqa: BLE001 - a reader's fault is told, not lost with the child
        return {"unreadable": f"the reader failed: {type(error).__name__}: {error}"}
    return {"title": content.title, "text": content.text, "metadata": dict(content.metadata)}


def _write(stream: IO[bytes], head: dict[str, Any], data: bytes = b"") -> None:
    encoded = json.dumps(head | {"size": len(data)}).encode()
    stream.write(len(encoded).to_bytes(8, "big") + encoded)
    stream.write(data)
    stream.flush()


def _read(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    length = stream.read(8)
    if len(length) < 8:
        return None
    encoded = stream.read(int.from_bytes(length, "big"))
    try:
        head: dict[str, Any] = json.loads(encoded)
    except ValueError:  # cut short: it ended meanwhile
        return None
    data = stream.read(head["size"])
    return (head, data) if len(data) == head["size"] else None
