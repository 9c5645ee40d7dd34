"""Splitting: what every document keeps, whatever it is, and what particular documents become."""

from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from uuid import UUID, uuid5

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vademecum.errors import BadInput
from vademecum.inference.embedder import Tokenizer
from vademecum.inference.local import LocalEmbedder
from vademecum.ingest.split import ChunkPolicy, split
from vademecum.types import Chunk, Document

NAMESPACE = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
WORDPIECE: Tokenizer = LocalEmbedder(home=Path("unused")).tokenizer


class Utf8Tokenizer:
    """A token for each byte, as byte-level models have: several may be of one character."""

    def starts(self, text: str) -> list[int]:
        return [
            at for at, letter in enumerate(text) for _ in letter.encode("utf-8", "surrogatepass")
        ]

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(self.starts(text)) for text in texts]


class LeadingTokenizer:
    """One token for four characters, and two more for every text that begins within a word."""

    def starts(self, text: str) -> list[int]:
        extra = [0, 0] if text[:1].islower() else []
        return [*extra, *range(0, len(text), 4)]

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(self.starts(text)) for text in texts]


TOKENIZERS: list[Tokenizer] = [WORDPIECE, Utf8Tokenizer(), LeadingTokenizer()]

WORDS = """
    a the Session of café naïve pg_stat_activity --no-verify Foo.bar() e.g. 3.14 日本語 文章です。
    다람쥐 🙂 x😀y **bold** `code` [link](http://a.b/c) antidisestablishmentarianism # > | - \u200b
"""
words = st.sampled_from(WORDS.split())
sentences = st.builds(
    lambda inner, end: " ".join(inner) + end,
    st.lists(words, min_size=1, max_size=14),
    st.sampled_from([".", "!", "?", ":", "", "。"]),
)
paragraphs = st.builds(
    lambda parts, glue: glue.join(parts),
    st.lists(sentences, min_size=1, max_size=5),
    st.sampled_from([" ", "\n", "  \n"]),
)
headings = st.builds(
    lambda level, text, closing: f"{'#' * level} {text}{closing}",
    st.integers(1, 6),
    st.one_of(st.sampled_from(["Scope", "Notes", "Setup"]), st.builds(" ".join, st.lists(words))),
    st.sampled_from(["", " ##"]),
)
code_lines = st.lists(
    st.sampled_from(["x = 1", "# a comment", "    return y", "", "- no item", "| no | table |"]),
    max_size=12,
)
fences = st.builds(
    lambda mark, indent, language, lines, closed: "\n".join(
        indent + line for line in [mark + language, *lines, *([mark] if closed else [])]
    ),
    st.sampled_from(["```", "~~~", "`````"]),
    st.sampled_from(["", "  ", "    "]),
    st.sampled_from(["", "sh", "python"]),
    code_lines,
    st.booleans(),
)
tables = st.builds(
    lambda rows: "| name | what |\n|---|---|\n" + "\n".join(f"| {a} | {b} |" for a, b in rows),
    st.lists(st.tuples(words, sentences), max_size=8),
)
items = st.builds(
    lambda parts: "\n".join(f"{' ' * indent}{mark} {text}" for indent, mark, text in parts),
    st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from(["-", "*", "1.", "10)", "- -"]), sentences),
        min_size=1,
        max_size=10,
    ),
)
others = st.sampled_from(
    [
        "<!-- a\n# comment\n-->",
        "<pre>\n# listing\n</pre>",
        "<pre>\n",
        "---",
        "***",
        "> a quotation\n> of two lines",
        "    indented code\n\n    and more",
        "\u200b\u200b",
        "\x00",
        "hi",
        "nowhitespace" * 60,
        "文" * 70,
    ]
)
markdown = st.builds(
    lambda parts, newline: "\n\n".join(parts).replace("\n", newline),
    st.lists(st.one_of(paragraphs, headings, fences, tables, items, others), max_size=12),
    st.sampled_from(["\n", "\n", "\n", "\r\n"]),
)
documents = st.one_of(
    markdown,
    st.text(max_size=400),
    st.text(alphabet="#`~-|>* \n\ta1.<!", max_size=400),
)
policies = st.builds(
    lambda limit, share, by_headings: ChunkPolicy(
        max_tokens=limit, overlap_tokens=limit * share // 100, by_headings=by_headings
    ),
    st.sampled_from([16, 24, 64, 300]),
    st.sampled_from([0, 10, 25, 50]),
    st.booleans(),
)
properties = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def document(text: str, title: str = "Title") -> Document:
    return Document(title=title, text=text, format="markdown", source_hash="0" * 64)


def chunks(
    text: str,
    max_tokens: int = 1000,
    overlap: int = 0,
    *,
    by_headings: bool = True,
    title: str = "Title",
    tokenizer: Tokenizer = WORDPIECE,
) -> list[Chunk]:
    policy = ChunkPolicy(max_tokens=max_tokens, overlap_tokens=overlap, by_headings=by_headings)
    return split(document(text, title), identity="kb:a.md", policy=policy, tokenizer=tokenizer)


@properties
@given(documents, policies, st.sampled_from(TOKENIZERS))
def test_chunks_are_verbatim_within_the_limit_and_counted(
    text: str, policy: ChunkPolicy, tokenizer: Tokenizer
) -> None:
    found = split(document(text), identity="i", policy=policy, tokenizer=tokenizer)
    assert [chunk.token_count for chunk in found] == tokenizer.counts([c.text for c in found])
    for chunk in found:
        assert chunk.text in text
        assert chunk.text == chunk.text.strip()
        assert 1 <= chunk.token_count <= policy.max_tokens
        assert chunk.word_count == len(chunk.text.split()) >= 1
        assert chunk.char_count == len(chunk.text) >= 1


@properties
@given(documents, policies, st.sampled_from(TOKENIZERS))
def test_nothing_is_lost_and_order_is_kept(
    text: str, policy: ChunkPolicy, tokenizer: Tokenizer
) -> None:
    found = split(document(text), identity="i", policy=policy, tokenizer=tokenizer)
    if not found:
        assert tokenizer.counts([text.strip()]) == [0]
        return
    reached = 0
    for chunk in found:
        reached += len(text[reached:]) - len(text[reached:].lstrip())
        # Equal texts may stand in several places: the last that leaves no gap reaches furthest.
        at = text.rfind(chunk.text, 0, reached + len(chunk.text))
        if at < 0:  # a gap, then, of what the model cannot see
            at = text.index(chunk.text, reached)
            assert tokenizer.counts([text[reached:at].strip()]) == [0]
        reached = max(reached, at + len(chunk.text))
    assert tokenizer.counts([text[reached:].strip()]) == [0]


@properties
@given(documents, policies)
def test_ids_and_chain(text: str, policy: ChunkPolicy) -> None:
    found = split(document(text), identity="i", policy=policy, tokenizer=WORDPIECE)
    ids = [chunk.id for chunk in found]
    assert len(set(ids)) == len(ids)
    assert [chunk.ordinal for chunk in found] == list(range(len(found)))
    assert [chunk.previous_id for chunk in found] == [None, *ids[:-1]][: len(ids)]
    assert [chunk.next_id for chunk in found] == [*ids[1:], None][: len(ids)]
    assert {chunk.parent_id for chunk in found} <= {uuid5(NAMESPACE, "i:parent")}
    seen: list[str] = []
    for chunk in found:
        assert chunk.content_hash == sha256(chunk.text.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"i:{chunk.content_hash[:16]}"
        repetition = seen.count(chunk.content_hash)
        assert chunk.id == uuid5(NAMESPACE, f"{name}:{repetition}" if repetition else name)
        seen.append(chunk.content_hash)


@properties
@given(documents, policies)
def test_the_same_document_has_the_same_chunks(text: str, policy: ChunkPolicy) -> None:
    first, second = (
        split(document(text), identity="i", policy=policy, tokenizer=WORDPIECE) for _ in range(2)
    )
    assert first == second


@properties
@given(documents, policies)
def test_chunks_are_long_enough(text: str, policy: ChunkPolicy) -> None:
    found = split(document(text), identity="i", policy=policy, tokenizer=WORDPIECE)
    if len(found) > 1:
        assert min(chunk.char_count for chunk in found) >= 10


@properties
@given(st.lists(st.tuples(headings, paragraphs), min_size=2, max_size=6), st.data(), paragraphs)
def test_an_edit_changes_no_other_section(
    parts: list[tuple[str, str]], data: st.DataObject, edit: str
) -> None:
    def texts(numbered: list[tuple[str, str]]) -> list[set[str]]:
        """Chunk texts of each section."""
        body = "\n\n".join(
            f"{heading.rstrip('# ')} n{number}\n\nSome text of {number}.\n\n{text}"
            for number, (heading, text) in enumerate(numbered)
        )
        sections: dict[str, set[str]] = {}
        for chunk in chunks(body, 32, 8):
            sections.setdefault(chunk.section_id, set()).add(chunk.text)
        return list(sections.values())

    edit, at = edit.replace("#", "+"), data.draw(st.integers(0, len(parts) - 1))
    parts = [
        ("#" * heading.count("#", 0, 6) + " Part", text.replace("#", "+"))
        for heading, text in parts
    ]
    before, after = texts(parts), texts([*parts[:at], (parts[at][0], edit), *parts[at + 1 :]])
    assert len(before) == len(after) == len(parts)
    assert [b for i, b in enumerate(before) if i != at] == [
        a for i, a in enumerate(after) if i != at
    ]


def told(found: list[Chunk]) -> list[tuple[str, tuple[str, ...], str]]:
    return [(chunk.section_id, chunk.heading_path, chunk.text) for chunk in found]


@pytest.mark.parametrize("text", ["", " \n\t\r\n ", "\x00\x01", "\u200b" * 500])
def test_a_document_without_text_has_no_chunks(text: str) -> None:
    assert chunks(text) == []


def test_a_document_by_its_headings() -> None:
    text = (
        "Some words before.\n\n# SQL #\n\n## Temporary *Tables*\n\n### Scope\n\nOne session.\n\n"
        "## Notes\n\nFirst notes.\n\n## Notes {#more}\n\nMore notes.\n"
    )
    assert told(chunks(text, title="SQL")) == [
        ("sql", (), "Some words before."),
        (
            "temporary-tables-scope",
            ("SQL", "Temporary Tables", "Scope"),
            "# SQL #\n\n## Temporary *Tables*\n\n### Scope\n\nOne session.",
        ),
        ("notes", ("SQL", "Notes"), "## Notes\n\nFirst notes."),
        ("notes-1", ("SQL", "Notes"), "## Notes {#more}\n\nMore notes."),
    ]


def test_a_whole_chunk() -> None:
    text = "# Café\n\nTwo tables."
    digest = sha256(text.encode()).hexdigest()
    assert chunks(text) == [
        Chunk(
            id=uuid5(NAMESPACE, f"kb:a.md:{digest[:16]}"),
            parent_id=uuid5(NAMESPACE, "kb:a.md:parent"),
            previous_id=None,
            next_id=None,
            ordinal=0,
            text=text,
            heading_path=("Café",),
            section_id="café",
            content_hash=digest,
            token_count=5,
            word_count=4,
            char_count=19,
        )
    ]


def test_equal_texts_have_ids_of_their_own() -> None:
    text = "## Note\n\nAlways the same.\n\n" * 3
    digest = sha256(b"## Note\n\nAlways the same.").hexdigest()[:16]
    assert [(chunk.id, chunk.section_id) for chunk in chunks(text)] == [
        (uuid5(NAMESPACE, f"kb:a.md:{digest}"), "note"),
        (uuid5(NAMESPACE, f"kb:a.md:{digest}:1"), "note-1"),
        (uuid5(NAMESPACE, f"kb:a.md:{digest}:2"), "note-2"),
    ]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("```sh\n# no\n```\n\n# Yes\n\nSome text", [(), ("Yes",)]),
        ("~~~~\n# no\n~~~\n# no\n~~~~\n# Yes\n\nSome text", [(), ("Yes",)]),
        ("```` md\n```\n# no\n```\n````\n# Yes\n\nSome text", [(), ("Yes",)]),
        ("- ```sh\n  # no\n  ```\n\n# Yes\n\nSome text", [(), ("Yes",)]),
        ("Words\n\n    # no, code\n\n# Yes\n\nSome text", [(), ("Yes",)]),
        ("Some text\n\n```sh\n# no, nobody closed it", [()]),
        ("<!-- a\n# no\n-->\n# Yes\n\nSome text", [(), ("Yes",)]),
        ("<pre>\n# no\n</pre>\n# Yes\n\nSome text", [(), ("Yes",)]),
        ("<pre> nobody closed\n# Yes\n\nSome text", [(), ("Yes",)]),
        ("#no heading\n\n####### nor this\n\n# Yes\r\n\r\nSome text", [(), ("Yes",)]),
        ("# One\n\nSome text\n\n#### Four\n\nSome text", [("One",), ("One", "Four")]),
        ("### Three\n\nSome text\n\n# One\n\nSome text", [("Three",), ("One",)]),
        ("## Page 3\n\nSome text", [("Page 3",)]),
    ],
)
def test_what_is_a_heading(text: str, paths: list[tuple[str, ...]]) -> None:
    assert [chunk.heading_path for chunk in chunks(text)] == paths


@pytest.mark.parametrize(
    ("heading", "shown", "section_id"),
    [
        ("## Page 3", "Page 3", "page-3"),
        (
            "## The `pg_stat_activity` view ##",
            "The pg_stat_activity view",
            "the-pg_stat_activity-view",
        ),
        (
            "## `__init__` and _this_ or __that__",
            "__init__ and this or that",
            "__init__-and-this-or-that",
        ),
        ("## [![logo](a.png) Guide](b.html)", "logo Guide", "logo-guide"),
        ("## Use \\*args &amp; more", "Use *args & more", "use-args-more"),
        ("## C#", "C#", "c"),
        ("## 安装 指南", "安装 指南", "安装-指南"),
        ("## हिन्दी", "हिन्दी", "हिन्दी"),
        ("## ???", "???", "section"),
        ("## Install {#setup}", "Install", "install"),
        ("## <a name='x'></a>Anchored", "Anchored", "anchored"),
    ],
)
def test_how_a_heading_reads(heading: str, shown: str, section_id: str) -> None:
    found = chunks(f"{heading}\n\nSome text here.")
    assert [(c.heading_path, c.section_id) for c in found] == [((shown,), section_id)]


def test_section_ids_are_bounded_and_unique() -> None:
    long = " ".join(f"word{number}" for number in range(60))
    names = ["A-1", "A", "A", long, long]
    ids = [c.section_id for c in chunks("".join(f"## {n}\n\nSome text\n\n" for n in names))]
    assert ids[:3] == ["a-1", "a", "a-2"]
    assert ids[4] == f"{ids[3]}-1"
    assert len(ids[3]) <= 80
    assert ids[3].endswith("word29")


def test_bare_headings_join_what_follows_or_what_was_before() -> None:
    text = "## Empty\n\n## Full\n\nSome text here.\n\n## See also\n"
    assert told(chunks(text)) == [
        ("full", ("Full",), "## Empty\n\n## Full\n\nSome text here.\n\n## See also")
    ]


def test_only_headings() -> None:
    assert told(chunks("# One\n\n## Two")) == [("two", ("One", "Two"), "# One\n\n## Two")]


def test_blocks_stay_whole_and_the_end_is_repeated() -> None:
    prose = "It lives for one session. Nobody else sees it."
    fence = "```sql\nCREATE TEMP TABLE t (a int);\n\n# no heading\n```"
    after = "Then it is gone. So is its index."
    found = chunks(f"{prose}\n\n{fence}\n\n{after}", 28, 8)
    assert [chunk.text for chunk in found] == [
        prose,
        f"Nobody else sees it.\n\n{fence}",
        after,
    ]


def test_items_stay_whole() -> None:
    first = "- one thing to do\n  that goes on here\n\n  ```\n  - no item\n  ```"
    second = "- another thing\n  - with a part\n  - and another part"
    assert [chunk.text for chunk in chunks(f"{first}\n{second}", 24, 0)] == [first, second]


def test_an_item_that_is_too_long_comes_apart_by_its_items() -> None:
    parts = [f"- part {n} of the whole, which is\n    long" for n in range(4)]
    text = "- one\n  " + "\n  ".join(parts)
    assert [chunk.text for chunk in chunks(text, 24, 0)] == [
        f"- one\n  {parts[0]}\n  {parts[1]}",
        f"{parts[2]}\n  {parts[3]}",
    ]


def test_a_table_is_cut_at_rows_and_its_head_keeps_a_row() -> None:
    rows = [f"| name {n} | value {n} |" for n in range(5)]
    text = "Words that stand before it.\n\n| a | b |\n|---|---|\n" + "\n".join(rows)
    found = chunks(text, 26, 6)
    assert [chunk.text for chunk in found] == [
        "Words that stand before it.",
        f"| a | b |\n|---|---|\n{rows[0]}",
        "\n".join(rows[1:3]),
        "\n".join(rows[3:]),
    ]


def test_a_fence_that_is_too_long_is_cut_at_lines_without_repeating() -> None:
    lines = [f"value_{n} = {n}" for n in range(12)]
    text = "```\n" + "\n".join(lines) + "\n```"
    found = chunks(text, 24, 12)
    assert "\n".join(chunk.text for chunk in found) == text


def test_a_line_that_is_too_long_is_cut_between_words() -> None:
    text = " ".join(f"w{n}" for n in range(100))
    found = chunks(text, 32, 8)
    numbers = [chunk.text.split() for chunk in found]
    assert all(set(before) & set(after) for before, after in pairwise(numbers))
    assert all(set(group) <= set(text.split()) for group in numbers)


def test_without_headings_chunks_run_on_and_name_the_section_they_begin_in() -> None:
    text = "".join(f"## Part {n}\n\nSome words on part {n}.\n\n" for n in range(4))
    found = chunks(text, 24, 0, by_headings=False)
    assert [(chunk.section_id, chunk.text) for chunk in found] == [
        ("part-0", "## Part 0\n\nSome words on part 0.\n\n## Part 1\n\nSome words on part 1."),
        ("part-2", "## Part 2\n\nSome words on part 2.\n\n## Part 3\n\nSome words on part 3."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "word " * 100_000,
        "文" * 50_000,
        "- " * 50_000,
        "\n".join(" " * n + "- x" for n in range(500)),
        "# " + "[" * 100_000,
        "# a" + " " * 200_000 + "b",
        "`" * 100_000,
        "a" + "\n" * 200_000 + "b",
        "<pre>\n" * 20_000,
        "\n".join("    " + "`" * (400 - n) + " x" for n in range(390)),
    ],
    ids=[
        "line",
        "han",
        "markers",
        "deep",
        "brackets",
        "spaces",
        "ticks",
        "blanks",
        "pre",
        "fences",
    ],
)
def test_hostile_text_takes_no_longer_than_its_length(text: str) -> None:
    started = perf_counter()
    found = chunks(text, 400, 40)
    assert all(chunk.text in text for chunk in found)
    assert perf_counter() - started < 20  # a quadratic step would take minutes


@pytest.mark.parametrize(("limit", "overlap"), [(0, 0), (15, 0), (100, -1), (100, 51)])
def test_a_policy_that_cannot_be(limit: int, overlap: int) -> None:
    with pytest.raises(BadInput, match="token"):
        ChunkPolicy(max_tokens=limit, overlap_tokens=overlap)
