"""Gold files: what they may say, and the line that says what they may not."""

from pathlib import Path
from uuid import uuid4

import pytest

from vademecum.errors import BadGold, BadInput
from vademecum.evaluate.gold import Expectation, Question, read_gold
from vademecum.types import ChunkId, DocumentId, Hit

GOOD = '{"query": "q", "expect": [{"path_contains": "a"}]}'


def found(path: str, section: str = "top", headings: tuple[str, ...] = ()) -> Hit:
    return Hit(
        chunk_id=ChunkId(uuid4()),
        document_id=DocumentId(1),
        score=1.0,
        title="",
        collection="c",
        path=path,
        url=None,
        heading_path=headings,
        section_id=section,
        ordinal=0,
        text="",
        snippet="",
        contributions=(),
    )


def test_questions_are_read_with_their_ids_or_line_numbers(tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_bytes(
        b"\xef\xbb\xbf"
        b'{"query": "one\xe2\x80\xa8two", "expect": [{"path_contains": "a.md"}]}\r\n'
        b"\r\n"
        b'{"query": "three", "expect": [{"section_contains": "S", "rel": 2.5}]}\n'
        b'{"id": 17, "query": "4", "expect": [{"path_contains": "b", "section_contains": "c"}]}\n'
        b'{"id": "x y", "query": "5", "expect": [{"path_contains": "b"}, {"path_contains": "d"}]}'
    )

    assert read_gold(gold) == [
        Question(id="1", query="one\u2028two", expect=(Expectation(path_contains="a.md"),)),
        Question(id="3", query="three", expect=(Expectation(section_contains="S", rel=2.5),)),
        Question(
            id="17",
            query="4",
            expect=(Expectation(path_contains="b", section_contains="c"),),
        ),
        Question(
            id="x y",
            query="5",
            expect=(Expectation(path_contains="b"), Expectation(path_contains="d")),
        ),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no valid JSON"),
        ("[1]", "the line is no JSON object"),
        ("[" * 100_000, "nested too deeply"),
        (b'{"query": "\xff"}', "not UTF-8"),
        ('{"expect": [{"path_contains": "a"}]}', '"query" is missing'),
        ('{"query": " ", "expect": [{"path_contains": "a"}]}', '"query" is empty'),
        ('{"query": 7, "expect": [{"path_contains": "a"}]}', '"query" must be a text'),
        ('{"query": "\\u0000", "expect": [{"path_contains": "a"}]}', "zero byte"),
        ('{"query": "\\ud800", "expect": [{"path_contains": "a"}]}', "lone surrogate"),
        ('{"query": "' + "x" * 20_000 + '", "expect": [{"path_contains": "a"}]}', "longer than"),
        ('{"query": "q"}', '"expect" must be a list'),
        ('{"query": "q", "expect": []}', '"expect" must be a list'),
        ('{"query": "q", "expect": {"path_contains": "a"}}', '"expect" must be a list'),
        ('{"query": "q", "expect": ["a"]}', "an expectation is no JSON object"),
        ('{"query": "q", "expect": [{}]}', 'needs "path_contains", "section_contains" or both'),
        ('{"query": "q", "expect": [{"rel": 1}]}', 'needs "path_contains"'),
        ('{"query": "q", "expect": [{"path_contains": ""}]}', '"path_contains" is empty'),
        ('{"query": "q", "expect": [{"section_contains": 1}]}', '"section_contains" must be'),
        ('{"query": "q", "expect": [{"path": "a"}]}', "unknown key 'path'"),
        ('{"question": "q", "expect": [{"path_contains": "a"}]}', "unknown key 'question'"),
        ('{"query": "q", "expect": [{"path_contains": "a", "rel": 0}]}', '"rel" must be'),
        ('{"query": "q", "expect": [{"path_contains": "a", "rel": -1}]}', '"rel" must be'),
        ('{"query": "q", "expect": [{"path_contains": "a", "rel": true}]}', '"rel" must be'),
        ('{"query": "q", "expect": [{"path_contains": "a", "rel": "1"}]}', '"rel" must be'),
        ('{"query": "q", "expect": [{"path_contains": "a", "rel": NaN}]}', '"rel" must be'),
        ('{"query": "q", "expect": [{"path_contains": "a", "rel": 1e999}]}', '"rel" must be'),
        (
            '{"query": "q", "expect": [{"path_contains": "a", "rel": 1' + "0" * 400 + "}]}",
            '"rel" must be',
        ),
        ('{"id": "", "query": "q", "expect": [{"path_contains": "a"}]}', '"id" is empty'),
        ('{"id": 1.5, "query": "q", "expect": [{"path_contains": "a"}]}', '"id" must be'),
        ('{"id": true, "query": "q", "expect": [{"path_contains": "a"}]}', '"id" must be'),
        (
            '{"id": 1, "query": "q", "expect": [{"path_contains": "a"}]}',
            "the id '1' is already that of line 1",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_line_that_cannot_be_used_is_named(
    tmp_path: Path, line: str | bytes, reason: str
) -> None:
    gold = tmp_path / "gold.jsonl"
    raw = line if isinstance(line, bytes) else line.encode()
    gold.write_bytes(GOOD.encode() + b"\n\n" + raw + b"\n")

    with pytest.raises(BadGold) as caught:
        read_gold(gold)

    assert (caught.value.path, caught.value.line) == (str(gold), 3)
    assert str(caught.value).startswith(f"{gold}:3: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_no_evaluation(tmp_path: Path, content: bytes) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_bytes(content)

    with pytest.raises(BadInput, match="holds no question"):
        read_gold(gold)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read_gold(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match="Is a directory"):
        read_gold(tmp_path)


@pytest.mark.parametrize(
    ("expectation", "hit", "met"),
    [
        (Expectation(path_contains="ops/keys"), found("docs/ops/keys.md"), True),
        (Expectation(path_contains="Keys"), found("docs/ops/keys.md"), False),
        (Expectation(section_contains="Rotate"), found("a", "ops-rotate-now"), True),
        (Expectation(section_contains="ops > rot"), found("a", "x", ("Ops", "Rotate now")), True),
        (Expectation(section_contains="store"), found("a", "x", ("Ops", "Rotate now")), False),
        (Expectation(path_contains="b", section_contains="x"), found("a", "x"), False),
        (Expectation(path_contains="a", section_contains="x"), found("a", "x"), True),
    ],
)
def test_all_that_is_given_has_to_be_there(expectation: Expectation, hit: Hit, met: bool) -> None:
    assert expectation.met_by(hit) is met
