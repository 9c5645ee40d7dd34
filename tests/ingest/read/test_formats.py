import subprocess
import sys

import pytest

from vademecum.errors import UnreadableSource
from vademecum.ingest.read import read_bytes


@pytest.mark.parametrize(
    ("name", "content_type", "data", "expected"),
    [
        ("a.md", None, b"x", "markdown"),
        ("A.MARKDOWN", None, b"x", "markdown"),
        ("a.htm", None, b"x", "html"),
        ("a.rst", None, b"x", "rst"),
        ("a.txt", None, b"<html>x", "text"),
        ("a.adoc", None, b"x", "text"),
        ("README", None, b"x", "text"),
        ("README", None, b"\xef\xbb\xbf\n<!DOCTYPE html><p>x", "html"),
        ("https://e.org/a.md?b=c.html#d", None, b"x", "markdown"),
        ("https://e.org/a.md", "text/html; charset=utf-8", b"<p>x", "html"),
        ("https://e.org/a.md", "text/plain", b"# x", "markdown"),
        ("https://e.org/", "text/plain", b"<html>x", "text"),
        ("https://e.org/", "TEXT/MARKDOWN", b"x", "markdown"),
        ("https://e.org/", None, b"<html><p>x", "html"),
        ("https://[::1", None, b"x", "text"),
    ],
)
def test_format(name: str, content_type: str | None, data: bytes, expected: str) -> None:
    assert read_bytes(data, name=name, content_type=content_type).format == expected


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("The Title\n=========\n\nwords", "The Title"),
        ("\n*** Release notes ***\nwords", "Release notes"),
        ("-----\n\nReally?\n", "Really?"),
        ("A sentence that goes on,\nand on", "Notes"),
        ("words " * 30, "Notes"),
    ],
)
def test_title_of_plain_text(text: str, title: str) -> None:
    assert read_bytes(text.encode(), name="notes.txt").title == title


def test_plain_text_stays_as_it_is() -> None:
    text = "Title\n\n  indented\n\n\n# comment\n* star   \n"
    expected = "Title\n\n  indented\n\n\n# comment\n* star"
    assert read_bytes(text.encode(), name="a.txt").text == expected


def test_empty() -> None:
    with pytest.raises(UnreadableSource, match=r"a\.md: it is empty"):
        read_bytes(b"", name="a.md")


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys, vademecum.ingest.read; "
        "print([m for m in ('lxml', 'docutils', 'pypdfium2', 'httpx', 'yaml', 'numpy', 'pathspec',"
        " 'charset_normalizer') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
