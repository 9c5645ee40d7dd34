import subprocess
import sys

import pytest

from vademecum.context.errors import read_failure


def test_a_real_traceback() -> None:
    code = "def f(n):\n    return [][n]\n\ntry:\n    f(3)\nexcept IndexError:\n    f(40)\n"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    ).stderr
    failure = read_failure(shown)
    assert failure is not None
    assert failure.pattern == "IndexError: list index out of range"
    assert failure.language == "python"
    assert failure.frames[-1] == ("<string>", 2)


@pytest.mark.parametrize(
    ("text", "pattern", "language"),
    [
        (
            'Traceback (most recent call last):\n  File "/a/b.py", line 3, in f\n    import yaml\n'
            "ModuleNotFoundError: No module named 'yaml'\n",
            "ModuleNotFoundError: No module named 'yaml'",
            "python",
        ),
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
            "psycopg.errors.DiskFull: /var/lib/pg/base/1 at 0xdeadbeef, 12 of 40\n",
            "DiskFull: <path> at <id>, <n> of <n>",
            "python",
        ),
        (
            "TypeError: x.map is not a function\n    at render (/app/src/a.js:10:5)\n"
            "    at main (/app/src/b.js:2:1)\n",
            "TypeError: x.map is not a function",
            "javascript",
        ),
        ("ValueError: bad 17", "ValueError: bad <n>", ""),
    ],
)
def test_what_differs_each_time_is_left_out(text: str, pattern: str, language: str) -> None:
    failure = read_failure(text)
    assert failure is not None
    assert (failure.pattern, failure.language) == (pattern, language)


@pytest.mark.parametrize("text", ["", "all good", "\0\0", "Error without colon and case"])
def test_no_failure(text: str) -> None:
    assert read_failure(text) is None
