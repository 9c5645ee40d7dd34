"""Whatever the bytes: a document, or UnreadableSource with a reason."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from vademecum.errors import UnreadableSource
from vademecum.ingest.read import FORMATS, read_bytes
from vademecum.types import Document

_WORDS = """
    --- +++ title: : [ ] { } &a *a !!set !!binary !!float .nan 2024-13-45 "\\0" # ## === ---- ```
    ~~~ ` `` <!-- --> <pre> </pre> <table> <tr> <td> </td> </table> <a href= > </a> <br> <details>
    <summary> {{< note >}} {{< /note >}} {{% tab name="x" %}} {% raw %} {% endraw %} {{ ::: [!NOTE]
    import export .. :: code-block versionadded include /etc/passwd csv-table raw html :ref:`x`
    :func:`~a.b <c>` `_ |x| _`t` [1]_ * - + 1. | +--+ <ul> <li> <dl> <dt> <dd> <blockquote> <h1>
    <math> <main> <article> <nav> &#0; &#xD800; &amp; \u200b \u202e \U0001f468\u200d\U0001f469
    !!! ??? === <Tabs> {/* */} \x0c \r \x0b é 漢 \ud7ff <script> <code> <b> <i> <sup> <p> <div>"""
_TEXT_PARTS = st.sampled_from(_WORDS.split())
_SPACE = st.sampled_from(["", " ", "\n", "\n\n", "    ", "\n   "])
_MARKUP = st.lists(st.tuples(_TEXT_PARTS, _SPACE), max_size=40).map(
    lambda parts: "".join(word + space for word, space in parts)
)
_SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


def _read(data: bytes, name: str) -> None:
    try:
        document = read_bytes(data, name=name)
    except UnreadableSource as error:
        facts = (error.source, bool(error.reason))
    else:
        facts = (name, True)
        _check(document)
    assert facts == (name, True)


def _check(document: Document) -> None:
    assert document.title.strip()
    assert document.text.strip()
    assert "\x00" not in document.text + document.title
    document.text.encode("utf-8")
    assert "\r" not in document.text
    json.dumps(dict(document.metadata), allow_nan=False).encode("utf-8")


@pytest.mark.parametrize("extension", [*FORMATS, ""])
@_SLOW
@given(data=st.binary(max_size=400))
@example(data=b"")
@example(data=b"%PDF-1.7\n%%EOF")
@example(data=b"\xff\xfe\x00")
@example(data=b"---\n\xff\n---")
def test_arbitrary_bytes(extension: str, data: bytes) -> None:
    _read(data, f"file{extension}")


@pytest.mark.parametrize("extension", [".md", ".mdx", ".html", ".rst", ".txt"])
@_SLOW
@given(text=_MARKUP)
def test_arbitrary_markup(extension: str, text: str) -> None:
    _read(text.encode("utf-8"), f"file{extension}")


@pytest.mark.parametrize("extension", [".md", ".html", ".rst", ".txt"])
@_SLOW
@given(text=st.text(max_size=300), encoding=st.sampled_from(["utf-16", "utf-8", "utf-32"]))
def test_arbitrary_text(extension: str, text: str, encoding: str) -> None:
    _read(text.encode(encoding), f"file{extension}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep.html", "<div>" * 10_000 + "<p>bottom</p>"),
        ("deep.html", "<ul><li>" * 5_000 + "bottom"),
        ("deep.html", "<blockquote>" * 900 + "bottom"),
        ("deep.html", "<table><tr><td>" * 400 + "bottom"),
        ("deep.html", "<b>" * 10_000 + "bottom"),
        ("deep.html", "<dl><dd>" * 500 + "bottom"),
        ("deep.html", "<x>" * 50_000 + "bottom"),
        ("deep.md", "> " * 3_000 + "bottom"),
        ("deep.md", "---\na: " + "[" * 50_000 + "\n---\nbottom"),
        ("deep.md", "[" * 20_000 + "bottom"),
        ("deep.md", "<b>" * 20_000 + "bottom"),
        ("deep.md", "`" * 20_000 + " bottom"),
        ("deep.md", "<!--" * 20_000 + " bottom"),
        ("deep.md", "{{< x " * 20_000 + " bottom"),
        ("deep.md", "<a href=x>" * 5_000 + " bottom"),
        ("deep.md", "* a " * 5_000 + "\n" + "<table>" * 5_000 + " bottom"),
        ("deep.mdx", "<Tabs {" * 5_000 + " bottom"),
        ("deep.rst", "\n".join(" " * i + "* x" for i in range(300)) + "\n\nbottom"),
        ("deep.rst", "`" * 5_000 + " bottom"),
        ("deep.txt", "bottom " * 100_000),
    ],
    ids=lambda value: value[:12] if "." not in value else value,
)
def test_extreme_nesting_keeps_its_words(name: str, text: str) -> None:
    assert "bottom" in read_bytes(text.encode(), name=name).text
