"""Splitting: what every document keeps, whatever it is, and what particular documents become."""

from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
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

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [
            (at, at + 1)
            for at, letter in enumerate(text)
            for _ in letter.encode("utf-8", "surrogatepass")
        ]

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(self.offsets(text)) for text in texts]


class LeadingTokenizer:
    """One token for four characters, and two more for every text that begins within a word."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        starts = [0, 0, *range(0, len(text), 4)] if text[:1].islower() else range(0, len(text), 4)
        return [(start, min(start + 4, len(text))) for start in starts]

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(self.offsets(text)) for text in texts]


TOKENIZERS: list[Tokenizer] = [WORDPIECE, Utf8Tokenizer(), LeadingTokenizer()]

words = st.sampled_from(
    "a the Session of café naïve pg_stat_activity --no-verify Foo.bar() e.g. 3.14 日本語 文章です。 "
    "다람쥐 🙂 x😀y **bold** `code` [link](http://a.b/c) antidisestablishmentarianism # > | - \u200b".split(
        " "
    )
)
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
