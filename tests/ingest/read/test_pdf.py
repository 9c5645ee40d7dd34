import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from vademecum.errors import UnreadableSource
from vademecum.ingest.read import read_bytes


def pdf(*pages: list[str], title: str = "", encrypt: bool = False) -> bytes:
    """A PDF of these lines of text, one font, written by hand."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        drawn = "".join(
            f"BT /F1 10 Tf 50 {750 - 14 * i} Td ({_escaped(line)}) Tj ET\n"
            for i, line in enumerate(lines)
        )
        stream = zlib.compress(drawn.encode("latin-1"))
        objects.append(
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(stream)
            + stream
            + b"\nendstream"
        )
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(kids))
    objects.append(b"<< /Title (%s) >>" % _escaped(title).encode())
    trailer = b"/Root 1 0 R /Info %d 0 R" % len(objects)
    if encrypt:
        owner, user = b"<" + b"41" * 32 + b">", b"<" + b"42" * 32 + b">"
        objects.append(b"<< /Filter /Standard /V 1 /R 2 /O %s /U %s /P -44 >>" % (owner, user))
        trailer += b" /Encrypt %d 0 R /ID [<00> <00>]" % len(objects)
    out = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d %s >>\nstartxref\n%d\n%%%%EOF"
        % (len(objects) + 1, table, len(objects) + 1, trailer, len(out))
    )


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


WIDE = "This line is as wide as a line of running text in this document is, more or less."


def test_pages_are_sections() -> None:
    document = read_bytes(
        pdf(["First words."], ["Second (words)."], title="The Manual"), name="a.pdf"
    )
    assert (document.title, document.format) == ("The Manual", "pdf")
    assert document.text == "## Page 1\n\nFirst words.\n\n## Page 2\n\nSecond (words)."
    assert document.metadata == {"pages": 2}


@pytest.mark.parametrize(
    ("declared", "first_line", "title"),
    [
        ("", "The Manual", "The Manual"),
        ("manual.tex", "The Manual", "The Manual"),
        ("", "i" * 130, "A file"),
        ("A Title", "The Manual", "A Title"),
    ],
)
def test_title(declared: str, first_line: str, title: str) -> None:
    assert read_bytes(pdf([first_line], title=declared), name="a-file.pdf").title == title


def test_words_broken_at_the_end_of_a_line_are_joined() -> None:
    document = read_bytes(
        pdf(["A docu-", "ment in Post-", "Script of well-", "known size"]), name="a.pdf"
    )
    assert document.text == "## Page 1\n\nA document in PostScript of wellknown size"


def test_paragraphs_end_where_a_short_line_ends_a_sentence() -> None:
    document = read_bytes(pdf([WIDE, "The end.", WIDE, WIDE, "- item", WIDE]), name="a.pdf")
    assert document.text == f"## Page 1\n\n{WIDE}\nThe end.\n\n{WIDE}\n{WIDE}\n\n- item\n{WIDE}"


def test_what_runs_over_the_pages_is_dropped() -> None:
    words = ["Apples and pears.", "A house.", "Some rivers.", "Nothing else.", "The end."]
    pages = [["The Manual", line, f"Page {i} of 5"] for i, line in enumerate(words, 1)]
    document = read_bytes(pdf(*pages), name="a.pdf")
    assert document.text == "\n\n".join(f"## Page {i}\n\n{line}" for i, line in enumerate(words, 1))


def test_a_chapter_name_runs_over_its_own_pages_only() -> None:
    pages = [["Chapter " + "ABC"[i // 4], f"{'xyzt'[i % 4] * 9} words"] for i in range(12)]
    text = read_bytes(pdf(*pages), name="a.pdf").text
    assert "Chapter" not in text
    assert text.count("words") == 12


def test_pages_that_are_alike_stay() -> None:
    assert read_bytes(pdf(*[["A form"]] * 5), name="a.pdf").text.count("A form") == 5


def test_leaders_of_a_table_of_contents_are_shortened() -> None:
    assert "1. Use … 7" in read_bytes(pdf(["1. Use " + ". " * 40 + "7"]), name="a.pdf").text


def test_lines_that_look_like_headings_are_none() -> None:
    assert "\\# not a heading" in read_bytes(pdf(["# not a heading", "x"]), name="a.pdf").text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf([]), "it holds pictures only, no text (it needs OCR)"),
        (pdf(["secret"], encrypt=True), "it is locked by a password"),
        (b"%PDF-1.4 nonsense", "it is not a readable PDF"),
        (b"not a pdf", "it is not a readable PDF"),
        (pdf(["words"])[:200], "it is not a readable PDF"),
    ],
)
def test_what_cannot_be_read(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableSource) as failure:
        read_bytes(data, name="a.pdf")
    assert failure.value.reason == reason


def test_known_by_its_first_bytes_or_its_type() -> None:
    data = pdf(["words"])
    assert read_bytes(data, name="download").format == "pdf"
    assert read_bytes(data, name="https://e.org/x", content_type="application/pdf").format == "pdf"


def test_from_several_threads() -> None:
    files = [pdf([f"words {i}"]) for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda data: read_bytes(data, name="a.pdf").text, files))
    assert texts == [f"## Page 1\n\nwords {i}" for i in range(40)]
