"""Filters: the grammar, what it lets through, and that every retriever keeps to it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from psycopg import sql

from vademecum.app import App
from vademecum.errors import BadFilter
from vademecum.profiles.profile import load_profile, parse_profile
from vademecum.search.filters import met, parse_filters
from vademecum.store import facets
from vademecum.types import CollectionId, Condition, Mode, Query

Write = Callable[[dict[str, str | bytes]], Path]

DECLARED = """
[chunks]
max_tokens = 100
overlap_tokens = 0
header = "{title}"
[facets.tier]
type = "integer"
minimum = 1
maximum = 4
front_matter = "tier"
[facets.level]
type = "level"
values = ["A1", "A2", "B1", "B2"]
front_matter = "level"
[facets.module]
type = "keyword"
front_matter = "module"
[facets.tags]
type = "keyword"
many = true
front_matter = "tags"
[facets.draft]
type = "boolean"
front_matter = "draft"
[facets.day]
type = "date"
front_matter = "day"
"""
PROFILE = parse_profile("mine", DECLARED)
DOCUMENTS: dict[str, dict[str, object]] = {
    "a": {"tier": 1, "level": "A1", "module": "ros2", "draft": False, "day": "2024-01-31"},
    "b": {"tier": 2, "level": "A2", "module": "gazebo, the simulator", "tags": ["x", "y"]},
    "c": {"tier": 3, "level": "B1", "draft": True, "day": "2024-02-01", "tags": ["y", "z"]},
    "d": {"tier": 4, "level": "B2", "module": "ros2", "day": "2025-06-01"},
    "e": {},
}
FILTERS = {
    ("tier<=2",): "ab",
    ("tier<2",): "a",
    ("tier>2",): "cd",
    ("tier>=1",): "abcd",
    ("tier=1,3",): "ac",
    ("tier=1,3..4",): "acd",
    ("tier=..2",): "ab",
    ("tier=3..",): "cd",
    ("tier!=1..2",): "cde",
    ("tier<=9",): "abcd",
    ("level<=A2",): "ab",
    ("level<b1",): "ab",
    ("level=A2,B1",): "bc",
    ("level=A2..B2",): "bcd",
    ("level>=B1",): "cd",
    ("module=ros2",): "ad",
    ('module="gazebo, the simulator"',): "b",
    ('module=ros2,"gazebo, the simulator"',): "abd",
    ("module=*",): "abd",
    ("module!=*",): "ce",
    ("module!=ros2",): "bce",
    ("tags=y",): "bc",
    ("tags=x,z",): "bc",
    ("tags!=x",): "acde",
    ("draft=true",): "c",
    ("draft = no",): "a",
    ("day>=2024-02-01",): "cd",
    ("day<2024-02-01",): "a",
    ("day=2024-01-01..2024-12-31",): "ac",
    ("tier<=3", "level>=A2"): "bc",
    ("tier>=2", "tier<=3"): "bc",
    ("module=ros2", "tier!=1"): "d",
    ("tier<2", "tier>2"): "",
}


@pytest.fixture
async def filled(fake_app: App, write: Write, tmp_path: Path) -> App:
    def lesson(name: str, declared: dict[str, object]) -> str:
        front = "".join(f"{key}: {value!r}\n" for key, value in declared.items())
        return f"---\ntitle: {name}\n{front}---\n\nThe lighthouse keeper of {name} lights it.\n"

    folder = write({f"{n}.md": lesson(n, d) for n, d in DOCUMENTS.items()})
    mine = tmp_path / "mine.toml"
    mine.write_text(DECLARED)
    report = await fake_app.ingest.bulk_index(folder, collection="book", profile=str(mine))
    assert report.failed == []
    return fake_app


async def test_every_retriever_keeps_to_every_filter(filled: App) -> None:
    found: dict[tuple[tuple[str, ...], Mode], str] = {}
    modes: tuple[Mode, ...] = ("hybrid", "dense", "lexical")
    for filters in FILTERS:
        for mode in modes:
            result = await filled.search(
                Query(text="lighthouse", collection="book", mode=mode, filters=filters)
            )
            found[filters, mode] = "".join(sorted(hit.title for hit in result.results))
    assert found == {(f, mode): names for f, names in FILTERS.items() for mode in modes}


def test_what_is_read_at_last_is_held_to_the_same() -> None:
    """`met` guards hits against a change between the steps: it agrees with the index."""
    for filters, names in FILTERS.items():
        conditions = parse_filters(filters, PROFILE)
        passing = [n for n, d in DOCUMENTS.items() if all(met(c, d) for c in conditions)]
        assert "".join(passing) == names, filters


async def test_hits_show_their_facets(filled: App) -> None:
    result = await filled.search(Query(text="keeper", collection="book", filters=("tier=1",)))
    assert [hit.facets for hit in result.results] == [DOCUMENTS["a"]]


async def test_answers_keep_to_the_filter(filled: App) -> None:
    answer = await filled.answer("Who lights it?", collection="book", filters=("tier=2",))
    assert {source.path for source in answer.sources} == {"b.md"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tier", "not FACET=VALUE"),
        ("", "not FACET=VALUE"),
        ("=3", "not FACET=VALUE"),
        ("tier=", "lacks a value"),
        ("tier=a", "whole number"),
        ("tier=5", "1 to 4, not 5"),
        ("tier=3..2", "empty"),
        ("tier=..", "bound"),
        ("tier=1,,2", "empty value"),
        ("tier=1,", "empty value"),
        ("tier<=1,2", "one value"),
        ("tier==2", "whole number"),
        ("level=C9", "one of A1, A2, B1, B2"),
        ("level<A1", "no level is < A1"),
        ("module<ros2", "no order"),
        ('module="ros2', "quote"),
        ('module="a"b', "quote"),
        ("draft>=true", "no order"),
        ("day=tomorrow", "YYYY-MM-DD"),
        ("day>9999-12-31", "beyond"),
        ("colour=red", "has no facet 'colour'"),
    ],
)
def test_a_filter_that_cannot_be_understood(text: str, reason: str) -> None:
    with pytest.raises(BadFilter, match=re.escape(reason)) as caught:
        parse_filters([text], PROFILE)
    assert str(caught.value).startswith(f"filter {text!r}: ")


def test_the_hint_of_an_unknown_facet_names_those_there_are() -> None:
    with pytest.raises(BadFilter) as caught:
        parse_filters(["colour=red"], PROFILE)
    assert "tier (integer from 1 to 4); level (A1 < A2 < B1 < B2)" in str(caught.value.hint)
    with pytest.raises(BadFilter) as caught:
        parse_filters(["colour=red"], load_profile("docs"))
    assert "It declares none" in str(caught.value.hint)


async def test_the_indexes_of_facets_are_used(fake_app: App) -> None:
    async with fake_app.database.connection() as connection:
        await connection.execute(
            "INSERT INTO collections (name, profile, embedder) VALUES ('a', 'docs', 'none')"
        )
        await connection.execute(
            "INSERT INTO crawled_documents (collection_id, path, file_path, title, format, content,"
            " content_hash, source_hash)"
            " SELECT 1, n::text, n::text, '', 'text', '', '', '' FROM generate_series(1, 5000) n"
        )
        await connection.execute(
            "UPDATE crawled_documents SET facets = jsonb_build_object("
            "'tier', id % 100, 'level', 'L' || id % 100)"
        )
        await connection.execute("ANALYZE")
        for condition, index in (
            (Condition(facet="tier", ranges=((None, 2),), numeric=True), "document_facets_number"),
            (Condition(facet="level", values=("L1", "L2")), "document_facets_keyword"),
        ):
            query, values = facets.matching_query(CollectionId(1), [condition])
            cursor = await connection.execute(sql.SQL("EXPLAIN ") + query, values, prepare=False)
            plan = "\n".join(line for (line,) in await cursor.fetchall())
            assert index in plan, plan
            assert "Seq Scan" not in plan, plan


async def test_a_filter_reaches_no_other_collection(filled: App, write: Write) -> None:
    mine = write({"secret.md": "---\ntier: 1\n---\n\nThe lighthouse secret.\n"})
    await filled.ingest.bulk_index(mine, collection="other", profile=None)
    modes: tuple[Mode, ...] = ("hybrid", "dense", "lexical")
    for mode in modes:
        for filters in ((), ("tier=1",), ("tier!=*",), ("module!=*",)):
            result = await filled.search(
                Query(text="lighthouse secret", collection="book", mode=mode, filters=filters)
            )
            assert result.results
            assert {hit.collection for hit in result.results} == {"book"}
    for name in ("collection", "collection_id", "path"):
        with pytest.raises(BadFilter, match="has no facet"):
            await filled.search(Query(text="x", collection="book", filters=(f"{name}=other",)))
