"""A document that takes for ever, or takes its reader along, is named and nothing else suffers."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vademecum.errors import UnreadableSource
from vademecum.ingest.read import apart, read_bytes

ENDLESS = b"*a " * 30_000
"""docutils looks for the end of each emphasis: minutes."""


def test_a_document_that_takes_too_long_is_named() -> None:
    with pytest.raises(UnreadableSource, match=r"long\.rst: reading it took longer than 1 s"):
        read_bytes(ENDLESS, name="long.rst", seconds=1)
    assert read_bytes(b"Title\n=====\n\nText.", name="next.rst").title == "Title"


def test_several_are_read_at_once() -> None:
    def read(number: int) -> str:
        return read_bytes(f"Title {number}\n=======\n\nText.".encode(), name="a.rst").title

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, range(20))) == [f"Title {n}" for n in range(20)]


def test_a_reader_that_crashed_is_replaced() -> None:
    read_bytes(b"Title\n=====\n\nText.", name="a.rst")
    os.kill(apart._idle[-1]._process.pid, signal.SIGSEGV)
    with pytest.raises(UnreadableSource, match=r"b\.rst: the reader crashed \(signal 11\)"):
        read_bytes(b"Title\n=====\n\nText.", name="b.rst")
    assert read_bytes(b"Title\n=====\n\nText.", name="c.rst").title == "Title"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be told whom to end first")
def test_where_memory_runs_out_a_reader_goes_first() -> None:
    read_bytes(b"Title\n=====\n\nText.", name="a.rst")
    score = Path(f"/proc/{apart._idle[-1]._process.pid}/oom_score_adj").read_text()
    assert int(score) == 1000


def test_an_unreadable_document_is_told_as_elsewhere() -> None:
    with pytest.raises(UnreadableSource) as raised:
        read_bytes(b"%PDF-1.7\n%%EOF", name="a.pdf")
    assert raised.value.source == "a.pdf"
    assert raised.value.reason


def test_no_reader_outlives_its_parent() -> None:
    code = (
        "import os\n"
        "from vademecum.ingest.read import apart, read_bytes\n"
        "read_bytes(b'Title', name='a.rst')\n"
        "print(apart._idle[0]._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    # The child holds no output of its parent's, so it is waited for.
    child = int(done.stdout)
    for _ in range(1000):
        if not os.path.exists(f"/proc/{child}/cmdline") or not _command(child):
            return
        signal.sigtimedwait([], 0.01)
    pytest.fail("it is still there")


def _command(pid: int) -> bytes:
    """Empty for a process that has ended and that nobody has waited for."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return stream.read()
    except OSError:
        return b""
