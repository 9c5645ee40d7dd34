"""What of a passage can be quoted."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.answer.sentences import MAX_SENTENCE, units


def quotable(text: str) -> list[tuple[str, str]]:
    return [(unit.kind, text[unit.start : unit.end]) for unit in units(text)]


def test_sentences_end_at_full_stops_and_not_at_abbreviations() -> None:
    text = (
        "# Ports\n\nOpen the ports, e.g. No. 8080, on Mr. Smith's host first. "
        "Version 3.11.2 needs both of them! Is that so? The U.S. mirror needs none of them."
    )
    assert quotable(text) == [
        ("sentence", "Open the ports, e.g. No. 8080, on Mr. Smith's host first."),
        ("sentence", "Version 3.11.2 needs both of them!"),
        ("sentence", "The U.S. mirror needs none of them."),
    ]


def test_wrapped_lines_run_on_and_meant_breaks_do_not() -> None:
    wrapped = "The server keeps every lease for a minute and gives\nIt back when asked for it."
    assert quotable(wrapped) == [("sentence", wrapped)]
    linked = f"{'Wait ' * 30}for the port or use a\n[startup probe](#startup-probe)."
    assert quotable(linked) == [("sentence", linked)]
    meant = (
        "Register before the course starts\n"
        "Join the channel with the announcements of the course, it is free of charge for all"
    )
    assert [text for _, text in quotable(meant)] == meant.split("\n")


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        ("code", "```bash\nvade db start\n\n# and then\nvade doctor\n```"),
        ("list", "- the first of them is here\n- the second of them is here\n  and goes on"),
        ("list", "1. open the first valve\n\n2. close the second valve"),
        ("table", "| port | what it is for |\n|---|---|\n| 80 | plain |\n| 443 | secret |"),
    ],
)
def test_a_block_is_whole_and_has_its_introduction(kind: str, block: str) -> None:
    text = f"## How\n\nNothing of this matters here. Do it as follows:\n\n{block}\n\nThen stop."
    found = [stretch for of, stretch in quotable(text) if of == kind]
    assert found == [f"Do it as follows:\n\n{block}"]
    assert "Do it as follows:" not in [stretch for _, stretch in quotable(text)]


def test_a_block_without_introduction_stands_alone() -> None:
    assert quotable("## Run\n\n```\nmake test\n```") == [("code", "```\nmake test\n```")]


def test_indented_code_is_quoted_behind_what_announces_it() -> None:
    text = (
        "On a Mac this is the easiest way:\n\n    brew install it\n\n"
        "You can also use `pip`:\n\n    python -m venv x\n\n    pip install it\n\n"
        "It wants Python 3.7 or higher.\n\n    an indented note that nothing announces\n"
    )
    assert quotable(text) == [
        ("code", "On a Mac this is the easiest way:\n\n    brew install it"),
        ("code", "You can also use `pip`:\n\n    python -m venv x\n\n    pip install it"),
        ("sentence", "It wants Python 3.7 or higher."),
        ("sentence", "an indented note that nothing announces"),
    ]


def test_code_that_the_passage_cuts_off_is_not_quoted() -> None:
    assert quotable("Run this now please:\n\n```python\nfor x in y:\n    print(") == []
    tail = "    print(x)\n    y += 1\n```\n\nNow the loop has come to its end."
    assert quotable(tail) == [("sentence", "Now the loop has come to its end.")]


def test_headings_navigation_images_and_labels_are_not_sentences() -> None:
    text = (
        "# A long heading with quite a few words\n\n![A picture of it](x.png)\n\n"
        "<!-- overview of the page -->\n\n[Home](/) \n\nSee also\n\nhttps://example.org/a/b/c/d\n\n---"
    )
    assert quotable(text) == []


def test_a_long_item_comes_apart_but_not_its_code() -> None:
    code = "```shell\n   kubectl get pods\n   ```"
    item = f"1. First look at the pods that run.\n\n   {code}\n\n   {'Wait for it to end. ' * 40}"
    text = f"{item}\n2. Then go home for today."
    assert ("code", f"First look at the pods that run.\n\n   {code}") in quotable(text)


def test_rows_only_of_tables_too_long_to_quote() -> None:
    row = "| --flag | it does what a flag does in a table |\n"
    text = "| name | meaning |\n|---|---|\n" + row * 60
    assert {kind for kind, _ in quotable(text)} == {"row"}


@given(st.text(alphabet=st.sampled_from("aB .!?\n-*`~#|>1)：。語\t\r\\[]()"), max_size=300))
def test_whatever_the_text_units_lie_within_it(text: str) -> None:
    for unit in units(text):
        assert 0 <= unit.start <= unit.lead <= unit.end <= len(text)
        assert text[unit.start : unit.end].strip()
        if unit.kind == "sentence":
            assert unit.end - unit.start <= MAX_SENTENCE


def test_japanese_sentences_need_no_spaces() -> None:
    text = "設定を変更する。サーバーを再起動する。"
    assert [stretch for _, stretch in quotable(text)] == [
        "設定を変更する。",
        "サーバーを再起動する。",
    ]


@pytest.mark.parametrize(
    "piece",
    ["|", "|-", "-", "<", "e.g. ", "1. ", "`", "```\n", "[", "](", "> ", "- ", "*", "a", "。", " "],
)
def test_a_passage_without_words_takes_no_time(piece: str) -> None:
    started = time.process_time()
    units("x\n" + piece * 200_000 + "x")
    assert time.process_time() - started < 1
