"""Windows: all of a chunk, each part within what the embedder reads."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vademecum.inference.embedder import Tokenizer
from vademecum.inference.local import LocalEmbedder
from vademecum.inference.words import WordTokenizer
from vademecum.ingest.windows import windows

WORDPIECE: Tokenizer = LocalEmbedder(home=Path("unused")).tokenizer
TOKENIZERS = [WORDPIECE, WordTokenizer()]

WORDS = """
    a the Session of café pg_stat_activity e.g. end. End! 日本語 文章です。 🙂 x😀y `code` | -
    \u200b antidisestablishmentarianism xxxxxxxxxxxxxxxxxxxxxxxx
"""
pieces = st.sampled_from([*WORDS.split(), "\n", "\n\n"])
texts = st.one_of(st.builds(" ".join, st.lists(pieces, max_size=250)), st.text(max_size=300))
headers = st.one_of(
    st.sampled_from(["", "Title > Heading", "[kb | file | MISC | Title > Heading]"]),
    st.builds(" > ".join, st.lists(st.text(max_size=60), max_size=6)),
)
properties = settings(max_examples=300, deadline=None)


def bodies(found: list[str]) -> list[str]:
    return [window.partition("\n")[2] for window in found]


@properties
@given(
    headers,
    texts,
    st.sampled_from(TOKENIZERS),
    st.sampled_from([32, 64, 254]),
    st.integers(0, 30),
    st.booleans(),
)
def test_windows_are_within_the_limit_and_lose_nothing(
    header: str, text: str, tokenizer: Tokenizer, limit: int, overlap: int, known: bool
) -> None:
    header = " ".join(header.split())
    tokens = tokenizer.counts([text])[0] if known else None
    found = windows(header, text, tokenizer=tokenizer, limit=limit, overlap=overlap, tokens=tokens)
    assert max(tokenizer.counts(found)) <= limit
    # A shortened header is the end of the header after an ellipsis, or nothing.
    tops = {window.partition("\n")[0] for window in found if "\n" in window}
    short = [top for top in tops if header.endswith(top.partition("… ")[2] or "\n")]
    shown = header if any(top == header for top in tops) else short[0] if short else ""
    reached = 0
    for window in found:
        body = window.removeprefix(f"{shown}\n")
        reached += len(text[reached:]) - len(text[reached:].lstrip())
        at = text.rfind(body, 0, reached + len(body))
        assert at >= 0
        reached = max(reached, at + len(body))
    assert not text[reached:].strip()


def test_one_window_where_it_fits() -> None:
    assert windows("T > H", " It fits. ", tokenizer=WORDPIECE, limit=32, overlap=8) == [
        "T > H\nIt fits."
    ]
    assert windows("", "It fits.", tokenizer=WORDPIECE, limit=32, overlap=8) == ["It fits."]


def test_windows_are_of_like_length_and_end_with_sentences() -> None:
    text = " ".join(f"Sentence number {n} says little." for n in range(12))
    found = windows("T", text, tokenizer=WORDPIECE, limit=33, overlap=8)
    assert [body.split()[2] for body in bodies(found)] == ["0", "4", "8"]
    assert all(body.endswith("little.") for body in bodies(found))


def test_windows_repeat_the_end_of_the_one_before() -> None:
    text = " ".join(f"w{n}" for n in range(200))
    found = windows("T", text, tokenizer=WORDPIECE, limit=64, overlap=16)
    for before, after in pairwise(bodies(found)):
        shared = set(before.split()) & set(after.split())
        assert 1 <= len(shared) <= 8
    counts = WORDPIECE.counts(found)
    assert max(counts) - min(counts) <= 16


def test_no_more_windows_than_needed() -> None:
    text = "word " * 1000
    for limit, overlap, needed in [(254, 0, 4), (254, 32, 5), (101, 20, 13), (101, 0, 10)]:
        found = windows("H", text, tokenizer=WORDPIECE, limit=limit, overlap=overlap)
        assert len(found) == needed


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("A short one > Heading", "A short one > Heading"),
        (
            "[kb | file | MISC | " + "A very long title indeed " * 5 + "> Heading]",
            "[… Heading]",
        ),
        ("word " * 100 + "end", "… word word word word word word word word word word word end"),
        ("x" * 90 + "-" * 90, ""),
    ],
    ids=["short", "long title", "long heading", "no words"],
)
def test_a_long_header_keeps_its_end(header: str, shown: str) -> None:
    found = windows(header, "word " * 100, tokenizer=WORDPIECE, limit=32, overlap=4)
    assert {window.partition("\n")[0] if "\n" in window else "" for window in found} == {shown}


def test_a_header_is_whole_where_everything_fits() -> None:
    header = "A very long title indeed " * 3 + "> Heading"
    assert windows(header, "Text.", tokenizer=WORDPIECE, limit=32, overlap=4) == [
        f"{header}\nText."
    ]
