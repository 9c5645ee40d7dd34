import pytest

from vademecum.errors import UnreadableSource
from vademecum.ingest.read import read_bytes

GUESSED = {
    "cp1252": (
        "Les élèves français étaient à l’école ; où était le garçon ?",
        "Die Datei muß zunächst geöffnet werden, bevor „Änderungen“ möglich sind.",
        "¿Dónde está el niño? ¡Aquí! El año pasado.",
        "São Paulo é uma cidade; não há opções.",
        "Blåbærgrød på øen, så æder vi.",
        "It’s the user’s “home” folder – don’t delete it… © 2020",
        "The café is open.",
    ),
    "cp1250": (
        "Příliš žluťoučký kůň úpěl ďábelské ódy. Tato příručka popisuje systém.",
        "Każdy plik może być zmieniony, zażółć gęślą jaźń.",
        "Árvíztűrő tükörfúrógép, őszi hűvös.",
    ),
    "iso8859-2": ("Každý soubor může být změněn, žluťoučký kůň.", "Każdy plik może być zmieniony."),
    "cp1254": ("Değiştirilen dosyalar için şu komutu çalıştırın, sayfa açıklar.",),
    "cp1251": ("Эта страница описывает работу системы.",),
    "koi8-r": ("Эта страница описывает работу системы.",),
    "cp866": ("Эта страница описывает работу системы.",),
    "cp1253": ("Αυτή η σελίδα περιγράφει τη χρήση του συστήματος.",),
    "shift_jis": ("これは日本語の文書です。検索のテスト。",),
    "euc-jp": ("これは日本語の文書です。検索のテスト。",),
    "euc-kr": ("이 문서는 한국어 문서입니다. 검색 테스트",),
    "big5": ("這是一個中文文件，用於測試搜尋功能。",),
    "gb18030": ("这是一个中文文档，用于测试。",),
}


@pytest.mark.parametrize(
    ("encoding", "text"),
    [(encoding, text) for encoding, texts in GUESSED.items() for text in texts],
)
def test_guessed_by_the_letters_that_come_out(encoding: str, text: str) -> None:
    assert read_bytes(text.encode(encoding), name="a.txt").text == text


@pytest.mark.parametrize("encoding", ["cp437", "mac-roman", "cp500"])
def test_rather_no_text_than_a_wrong_one(encoding: str) -> None:
    with pytest.raises(UnreadableSource):
        read_bytes("le café crémeux, déjà vu à l'hôtel".encode(encoding), name="a.txt")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks(encoding: str) -> None:
    assert read_bytes("漢字 é\n".encode(encoding), name="a.txt").text == "漢字 é"


@pytest.mark.parametrize(
    ("data", "name", "content_type"),
    [
        ("ß Привет".encode("koi8-r", "ignore"), "a.txt", "text/plain; charset=KOI8-R"),
        ('<meta charset="koi8-r"><p> Привет'.encode("koi8-r"), "a.html", None),
        (
            '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p> Привет'.encode(
                "koi8-r"
            ),
            "a.html",
            None,
        ),
        ('<?xml version="1.0" encoding="koi8-r"?><p> Привет</p>'.encode("koi8-r"), "a.xhtml", None),
        (".. -*- coding: koi8-r -*-\n\nПривет".encode("koi8-r"), "a.rst", None),
        ("Привет".encode("iso2022_jp", "replace") + "漢".encode("iso2022_jp"), "a.txt", None),
    ],
)
def test_declared(data: bytes, name: str, content_type: str | None) -> None:
    if b"\x1b" in data:
        data, content_type = "Привет 漢".encode("iso2022_jp"), "text/plain; charset=iso-2022-jp"
    assert "Привет" in read_bytes(data, name=name, content_type=content_type).text


def test_utf8_that_is_declared_as_something_else_is_utf8() -> None:
    data = '<meta charset="iso-8859-1"><p>déjà vu’s'.encode()
    assert read_bytes(data, name="a.html").text == "déjà vu’s"


def test_latin_1_means_what_browsers_take_it_for() -> None:
    document = read_bytes(b"\x93quoted\x94", name="a.txt", content_type="text/plain;charset=latin1")
    assert document.text == "“quoted”"


@pytest.mark.parametrize("charset", ["utf-7", "rot13", "nonsense", "unicode_escape", "base64", ""])
def test_declared_encodings_that_are_none(charset: str) -> None:
    document = read_bytes(
        b"+ADw- \\u0041", name="a.txt", content_type=f"text/plain; charset={charset}"
    )
    assert document.text == "+ADw- \\u0041"


def test_a_few_broken_bytes_are_shown() -> None:
    data = ("Ünïcödé text " * 20).encode() + b"\xff end"
    assert read_bytes(data, name="a.txt").text.endswith("\ufffd end")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b" \n\t\n", "it is empty"),
        ("\ufeff".encode("utf-16"), "it is empty"),
        (b"\x89PNG\r\n\x1a\n....", "it is binary (an image)"),
        (b"PK\x03\x04 office", "it is binary (a zip archive)"),
        (b"\x7fELF", "it is binary (a program)"),
        (b"words\x00words", "it is binary"),
        (bytes(range(1, 32)) * 9, "it is binary"),
        (b"\xff\xfeA", "it is marked as utf-16-le but is not"),
        (bytes(range(128, 256)) * 8, "its text encoding cannot be told; convert it to UTF-8"),
    ],
)
@pytest.mark.parametrize("extension", ["md", "txt", "html", "rst"])
def test_what_is_no_text(data: bytes, reason: str, extension: str) -> None:
    with pytest.raises(UnreadableSource) as failure:
        read_bytes(data, name=f"a.{extension}")
    assert failure.value.reason == reason


def test_invisible_characters_and_line_ends() -> None:
    data = "a\u200bb\u00adc\ufeff\r\nd\u202ee\re\x0cf\x07 \U000e0041g\u2028h".encode()
    assert read_bytes(data, name="a.txt").text == "abc\nde\ne\nf g\nh"


def test_joiners_stay_where_scripts_need_them() -> None:
    text = "می\u200cخواهم 👩\u200d💻"
    assert read_bytes((text + " pass\u200cword").encode(), name="a.txt").text == text + " password"
