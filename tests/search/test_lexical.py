"""BM25 in PostgreSQL against an independent implementation, on real text."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from pydoc_data import topics

import bm25s
import numpy as np
import pytest

from vademecum.app import App
from vademecum.search.lexical import lexical_hits, weighted_terms
from vademecum.search.terms import query_terms
from vademecum.store import lexical
from vademecum.store.db import Database

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
    await app.bulk_index(folder, collection="python")


@pytest.fixture
async def reference(lexical_app: App, write: Write) -> App:
    """Python's language reference, lexical index only."""
    files: dict[str, str | bytes] = {f"{name}.txt": text for name, text in topics.topics.items()}
    await index(lexical_app, write(files))
    return lexical_app


async def stored_postings(database: Database) -> dict[object, Counter[str]]:
    """Term frequencies of every chunk, recovered from the index."""
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT id, term FROM terms")
        names = dict(await cursor.fetchall())
        cursor = await connection.execute("SELECT pivot FROM lexical_statistics")
        [(pivot,)] = await cursor.fetchall()
        cursor = await connection.execute("SELECT chunk_id, length, weights FROM chunk_terms")
        found = {}
        for chunk, length, vector in await cursor.fetchall():
            weights = np.array(vector.values())
            norm = lexical.K1 * (1 - lexical.B + lexical.B * length / pivot)
            counts = np.rint(weights * norm / (1 - weights)).astype(int)
            found[chunk] = Counter(
                {
                    names[index + 1]: int(count)
                    for index, count in zip(vector.indices(), counts, strict=True)
                }
            )
            assert sum(found[chunk].values()) == length
        return found


@pytest.mark.parametrize("question", QUESTIONS)
async def test_scores_are_those_of_an_independent_bm25(reference: App, question: str) -> None:
    postings = await stored_postings(reference.database)
    ids = list(postings)
    retriever = bm25s.BM25(method="lucene", k1=lexical.K1, b=lexical.B)
    retriever.index([list(postings[chunk].elements()) for chunk in ids], show_progress=False)
    expected = retriever.get_scores(list(query_terms(question).elements()))

    async with reference.database.connection() as connection:
        # The weights in force are made with the exact average length.
        collection = await reference.collection("python")
        await lexical.reweigh(connection, collection.id, tolerance=0)
        query = await weighted_terms(connection, collection.id, question)
        assert query is not None
        hits = await lexical_hits(connection, query, limit=8, ceiling=10**9)

    best = sorted((float(score) for score in expected if score > 0), reverse=True)[:8]
    assert [hit.score for hit in hits] == pytest.approx(best, rel=1e-4)
    by_id = dict(zip(ids, expected, strict=True))
    for hit in hits:
        assert hit.score == pytest.approx(float(by_id[hit.chunk_id]), rel=1e-4)


async def test_document_frequencies_follow_every_change(
    lexical_app: App, write: Write, tmp_path: Path
) -> None:
    async def frequencies() -> dict[str, int]:
        async with lexical_app.database.connection() as connection:
            cursor = await connection.execute("SELECT term, chunk_count FROM terms")
            return {term: count for term, count in await cursor.fetchall() if count}

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
        query = await weighted_terms(connection, collection.id, f"what is {identifier}?")
        assert query is not None
        hits = await lexical_hits(connection, query, limit=8)
        cursor = await connection.execute(
            "SELECT d.path FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id"
            " WHERE k.id = %s",
            [hits[0].chunk_id],
        )
        assert await cursor.fetchone() == ("exact.md",)


async def test_the_index_on_terms_is_used(reference: App) -> None:
    async def scans() -> tuple[int, int]:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        cursor = await connection.execute(
            "SELECT t.seq_scan, i.idx_scan FROM pg_stat_user_tables t"
            " JOIN pg_stat_user_indexes i USING (relid)"
            " WHERE indexrelname = 'chunk_terms_term_ids'"
        )
        [counts] = await cursor.fetchall()
        return counts

    collection = await reference.collection("python")
    async with reference.database.connection() as connection:
        query = await weighted_terms(connection, collection.id, "generator expression")
        assert query is not None
        whole_table, index = await scans()
        async with connection.transaction():
            await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
            await lexical_hits(connection, query, limit=8)
        assert await scans() == (whole_table, index + 1)


def test_same_terms_from_any_thread() -> None:
    async def many() -> list[Counter[str]]:
        return await asyncio.gather(
            *(asyncio.to_thread(query_terms, "running runners ran") for _ in range(16))
        )

    assert len({tuple(sorted(counts.items())) for counts in asyncio.run(many())}) == 1
