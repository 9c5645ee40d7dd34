"""BM25 in PostgreSQL against an independent implementation, on real text."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from pydoc_data import topics

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum import worker
from vademecum.app import App
from vademecum.ranking import scored
from vademecum.search.lexical import K1, B, best_matches, matches
from vademecum.search.terms import query_terms
from vademecum.store import lexical
from vademecum.store.db import Connection, Database
from vademecum.types import CollectionId, Scored

Write = Callable[[dict[str, str | bytes]], Path]

QUESTIONS = [
    "how does the with statement call __enter__ and __exit__",
    "operator precedence of not and in",
    "what is the default value of a parameter",
    "yield from a generator expression",
    "format specification mini language alignment",
    "BaseException ValueError except*",
    "the",
    "import import import",
]


async def index(app: App, folder: Path) -> None:
    await app.ingest.bulk_index(folder, collection="python")


@pytest.fixture
async def reference(lexical_app: App, write: Write) -> App:
    """Python's language reference, lexical index only."""
    files: dict[str, str | bytes] = {f"{name}.txt": text for name, text in topics.topics.items()}
    await index(lexical_app, write(files))
    return lexical_app


async def stored_postings(database: Database) -> dict[object, Counter[str]]:
    """Term frequencies of every chunk, from its own row; the packed ones must say the same."""
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT id, term FROM terms")
        names = dict(await cursor.fetchall())
        cursor = await connection.execute(
            "SELECT number, chunk_id, document_id, length, term_ids, frequencies FROM chunk_terms"
        )
        rows = await cursor.fetchall()
        cursor = await connection.execute("SELECT term_id, entries FROM postings")
        packed = {
            (term, *entry.tolist())
            for term, entries in await cursor.fetchall()
            for entry in np.frombuffer(entries, lexical.POSTING)
        }
        cursor = await connection.execute("SELECT dropped FROM segments")
        gone = [n for (d,) in await cursor.fetchall() for n in np.frombuffer(d, lexical.NUMBER)]
    assert {entry for entry in packed if entry[1] not in gone} == {
        (term, number, document, frequency, length)
        for number, _, document, length, terms, frequencies in rows
        for term, frequency in zip(terms, frequencies, strict=True)
    }
    assert all(length == sum(frequencies) for *_, length, _, frequencies in rows)
    return {
        chunk: Counter({names[term]: count for term, count in zip(terms, frequencies, strict=True)})
        for _, chunk, _, _, terms, frequencies in rows
    }


async def lexical_hits(
    connection: Connection,
    collection: CollectionId,
    text: str,
    kept: lexical.KeptEntries | None = None,
) -> list[Scored]:
    found = await matches(connection, collection, text, kept or lexical.KeptEntries())
    assert found is not None
    return scored((await best_matches(connection, collection, found, limit=8)).hits)


@pytest.mark.parametrize("question", QUESTIONS)
async def test_scores_are_those_of_an_independent_bm25(reference: App, question: str) -> None:
    postings = await stored_postings(reference.database)
    ids = list(postings)
    retriever = bm25s.BM25(method="lucene", k1=K1, b=B)
    retriever.index([list(postings[chunk].elements()) for chunk in ids], show_progress=False)
    expected = retriever.get_scores(list(query_terms(question).elements()))

    async with reference.database.connection() as connection:
        collection = await reference.collection("python")
        hits = await lexical_hits(connection, collection.id, question)

    best = sorted((float(score) for score in expected if score > 0), reverse=True)[:8]
    assert [hit.score for hit in hits] == pytest.approx(best, rel=1e-5)
    by_id = dict(zip(ids, expected, strict=True))
    for hit in hits:
        assert hit.score == pytest.approx(float(by_id[hit.chunk_id]), rel=1e-5)


async def test_document_frequencies_follow_every_change(
    lexical_app: App, write: Write, tmp_path: Path
) -> None:
    kept = lexical.KeptEntries()

    async def frequencies() -> dict[str, int]:
        async with lexical_app.database.connection() as connection:
            cursor = await connection.execute("SELECT collection_id, term FROM terms")
            rows = await cursor.fetchall()
            terms = [term for _, term in rows]
            found = await lexical.postings(connection, rows[0][0], terms, kept)
        if found is None:
            return {}
        counted = [one.term.chunk_count for one in found[1]]
        assert counted == sorted(counted)
        return {one.term.term: one.term.chunk_count for one in found[1]}

    async def counted() -> dict[str, int]:
        found = await stored_postings(lexical_app.database)
        return dict(Counter(term for posting in found.values() for term in posting))

    await index(
        lexical_app, write({"a.md": "# Alpha\n\nzebra crossing", "b.md": "# Beta\n\nzebra stripes"})
    )
    assert (await frequencies())["zebra"] == 2
    await index(
        lexical_app, write({"a.md": "# Alpha\n\nlion crossing", "c.md": "# Gamma\n\na zebra again"})
    )
    assert (await frequencies())["zebra"] == 1
    assert await frequencies() == await counted()
    async with lexical_app.database.connection() as connection:
        await connection.execute("DELETE FROM crawled_documents WHERE path = 'a.md'")
    assert await frequencies() == await counted()
    await index(lexical_app, write({}))
    assert await frequencies() == {}


@pytest.mark.parametrize(
    "identifier",
    ["pg_stat_activity", "--no-verify", "Foo.bar()", "E0308", "ORA-00942", "HTTPServer", "3.11.2",
     "__init__", "std::vector"],
)  # fmt: skip
async def test_identifiers_are_found_by_their_exact_form(
    lexical_app: App, write: Write, identifier: str
) -> None:
    parts = " ".join(re.findall(r"[A-Z]?[a-z]+|[0-9]+", identifier))
    await index(
        lexical_app,
        write(
            {
                "exact.md": f"# One\n\nHere {identifier} is explained at some length, once.",
                **{
                    f"near{n}.md": f"# Near {n}\n\nHere {parts} is explained, once."
                    for n in range(5)
                },
            }
        ),
    )
    collection = await lexical_app.collection("python")
    async with lexical_app.database.connection() as connection:
        hits = await lexical_hits(connection, collection.id, f"what is {identifier}?")
        cursor = await connection.execute(
            "SELECT d.path FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id"
            " WHERE k.id = %s",
            [hits[0].chunk_id],
        )
        assert await cursor.fetchone() == ("exact.md",)


async def test_the_index_on_terms_is_used(reference: App) -> None:
    async def scans() -> dict[str, tuple[int, int]]:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        cursor = await connection.execute(
            "SELECT i.indexrelname, t.seq_scan, i.idx_scan FROM pg_stat_user_tables t"
            " JOIN pg_stat_user_indexes i USING (relid)"
            " WHERE indexrelname IN ('postings_pkey', 'chunk_terms_number')"
        )
        return {name: (whole, index) for name, whole, index in await cursor.fetchall()}

    collection = await reference.collection("python")
    async with reference.database.connection() as connection:
        before = await scans()
        async with connection.transaction():
            await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
            await lexical_hits(connection, collection.id, "generator expression")
        after = await scans()
    assert all(after[name][0] == before[name][0] for name in before), "no table is read whole"
    assert all(after[name][1] > before[name][1] for name in before)


async def test_few_segments_remain_and_hold_what_there_is(lexical_app: App, write: Write) -> None:
    async def segments() -> list[tuple[int, int, int]]:
        async with lexical_app.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT first, after, chunks FROM segments ORDER BY first"
            )
            return await cursor.fetchall()

    names = [f"{n}.md" for n in range(12)]
    for count in range(1, len(names) + 1):
        await index(lexical_app, write({n: f"# {n}\n\nzebra number {n}" for n in names[:count]}))
        await stored_postings(lexical_app.database)
    assert len(await segments()) <= 4, "as many as twelve has binary digits"
    assert sum(chunks for _, _, chunks in await segments()) == 12

    await index(lexical_app, write({"0.md": "# One\n\na lion alone"}))
    assert [chunks for _, _, chunks in await segments()] == [1]
    assert sum((await stored_postings(lexical_app.database)).values(), Counter())["zebra"] == 0
    async with lexical_app.database.connection() as connection:
        collection = await lexical_app.collection("python")
        found = await matches(connection, collection.id, "zebra", lexical.KeptEntries())
        assert found is None


async def test_what_is_kept_of_the_words_is_what_is_stored(lexical_app: App, write: Write) -> None:
    kept, small = lexical.KeptEntries(), lexical.KeptEntries(most=3)
    names = [f"{n}.md" for n in range(12)]
    texts = {n: f"# {n}\n\nzebra and lion number {n}" for n in names}
    edits: list[dict[str, str]] = [
        {name: texts[name] for name in names[:6]},
        texts,  # a segment more
        texts | {"3.md": "# 3\n\na lion alone"},  # one is gone from the first
        {"11.md": "# 11\n\nzebra and lion"},  # and now nearly all: merged
    ]
    for edit in edits:
        await index(lexical_app, write(dict(edit)))
        collection = (await lexical_app.collection("python")).id
        async with lexical_app.database.connection() as connection:
            for text in ("zebra", "lion", "zebra lion number 3"):
                fresh = await lexical_hits(connection, collection, text)
                assert fresh
                for one in (kept, small, kept):
                    assert await lexical_hits(connection, collection, text, one) == fresh


async def test_what_is_kept_of_the_words_is_not_read_again(reference: App) -> None:
    kept = lexical.KeptEntries()
    collection = (await reference.collection("python")).id
    async with reference.database.connection() as connection:
        fresh = await lexical_hits(connection, collection, "import statement", kept)
        # Not what the entries are, and nobody who has them needs to know.
        await connection.execute("UPDATE postings SET entries = ''")
        assert await lexical_hits(connection, collection, "import statement", kept) == fresh
        assert await matches(connection, collection, "import", lexical.KeptEntries()) is None


@given(st.integers(2, 8), st.integers(1, 300))
def test_merging_more_at_once_leaves_few_and_seldom_merges(fan_in: int, batches: int) -> None:
    segments: list[lexical.Segment] = []
    merged = 0
    for first in range(batches):
        segments.append(lexical.Segment(first, first + 1, 1, 1))
        if due := lexical.to_merge(segments, fan_in=fan_in):
            size = sum(segment.chunks for segment in due)
            merged += size
            del segments[len(segments) - len(due) :]
            segments.append(lexical.Segment(due[0].first, first + 1, size, size))
    times = math.ceil(math.log(batches + 1, fan_in))
    assert len(segments) <= fan_in * times
    assert merged <= times * batches


@given(st.lists(st.integers(1, 50), max_size=40))
def test_merging_leaves_each_segment_larger_than_all_newer_ones(sizes: list[int]) -> None:
    segments: list[lexical.Segment] = []
    for chunks in sizes:
        first = segments[-1].after if segments else 0
        segments.append(lexical.Segment(first, first + chunks, chunks, chunks))
        if due := lexical.to_merge(segments):
            merged = sum(segment.left for segment in due)
            del segments[len(segments) - len(due) :]
            segments.append(lexical.Segment(due[0].first, due[-1].after, merged, merged))
    left = [segment.left for segment in segments]
    assert sum(left) == sum(sizes)
    assert all(size > sum(left[place + 1 :]) for place, size in enumerate(left))


async def test_a_long_drain_merges_on_its_way(
    lexical_app: App, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "BATCH_JOBS", 1)
    monkeypatch.setattr(lexical, "FAN_IN", 4)
    folder = write({f"{n}.md": f"# {n}\n\nzebra number {n}" for n in range(20)})
    seen: list[int] = []

    async def look() -> None:
        async with lexical_app.database.connection() as connection:
            while True:
                cursor = await connection.execute("SELECT count(*) FROM segments")
                [(count,)] = await cursor.fetchall()
                seen.append(count)
                await asyncio.sleep(0.001)

    looking = asyncio.create_task(look())
    await index(lexical_app, folder)
    looking.cancel()
    assert 4 <= max(seen) <= 8
    assert await stored_postings(lexical_app.database)


def test_a_segment_of_which_half_is_gone_is_merged_with_all_newer_ones() -> None:
    old, hollow, new = (
        lexical.Segment(0, 100, 100, 51),
        lexical.Segment(100, 110, 10, 5),
        lexical.Segment(110, 111, 1, 1),
    )
    assert lexical.to_merge([old, hollow, new]) == [hollow, new]
    assert lexical.to_merge([old, hollow]) == [hollow]
    assert lexical.to_merge([old, new]) == []


def test_same_terms_from_any_thread() -> None:
    async def many() -> list[Counter[str]]:
        return await asyncio.gather(
            *(asyncio.to_thread(query_terms, "running runners ran") for _ in range(16))
        )

    assert len({tuple(sorted(counts.items())) for counts in asyncio.run(many())}) == 1
