"""The embedder of an Ollama server, over a real socket."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import ollama
import pytest

from ollama_server import DIGEST, OllamaServer
from vademecum.app import App
from vademecum.errors import BadInput, EmbedderUnreachable, ModelUnavailable
from vademecum.inference.bound import ByteTokenizer
from vademecum.inference.ollama import OllamaEmbedder
from vademecum.inference.wordpiece import LocalTokenizer
from vademecum.settings import Settings
from vademecum.types import Query

Write = Callable[[dict[str, str | bytes]], Path]


@pytest.fixture
def served() -> Iterator[OllamaServer]:
    server = OllamaServer()
    yield server
    server.stop()


@pytest.fixture
def nomic(served: OllamaServer) -> OllamaEmbedder:
    return OllamaEmbedder("nomic-embed-text", url=served.url)


@pytest.fixture
def settings_of_ollama(settings: Settings, served: OllamaServer) -> Settings:
    return replace(settings, embedder="ollama:nomic-embed-text", ollama_url=served.url)


def units(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_vendors_client_understands_the_server_of_these_tests(served: OllamaServer) -> None:
    client = ollama.Client(served.url)
    answer = client.embed("nomic-embed-text", ["build the graph", "two"], truncate=False)
    assert np.allclose(answer.embeddings[0], served.vector("build the graph"))
    assert answer.prompt_eval_count == 4
    shown = client.show("nomic-embed-text").modelinfo
    assert shown is not None
    assert shown["nomic-bert.embedding_length"] == 768
    [model] = client.list().models
    assert (model.model, model.digest) == ("nomic-embed-text:latest", DIGEST)
    with pytest.raises(ollama.ResponseError, match="not found") as refused:
        client.embed("other", "text")
    assert refused.value.status_code == 404


async def test_our_vectors_are_the_vendors_clients_of_prefixed_texts(
    served: OllamaServer, nomic: OllamaEmbedder
) -> None:
    texts = [f"text {n}" for n in range(70)]
    ours = await nomic.embed(texts)
    client = ollama.AsyncClient(served.url)
    theirs = await client.embed("nomic-embed-text", [f"search_document: {t}" for t in texts])
    assert np.allclose(ours, units(np.array(theirs.embeddings)), atol=1e-6)
    query = await nomic.embed_query("graph")
    theirs = await client.embed("nomic-embed-text", "search_query: graph")
    assert np.allclose(query, units(np.array(theirs.embeddings))[0], atol=1e-6)


def test_the_space_holds_what_changes_vectors(nomic: OllamaEmbedder) -> None:
    space = nomic.space
    assert (space.model, space.dimensions) == ("ollama:nomic-embed-text", 768)
    assert DIGEST.startswith(space.digest)
    assert (space.document_prefix, space.query_prefix) == ("search_document: ", "search_query: ")
    assert 2000 < nomic.max_tokens < 2048
    assert isinstance(nomic.tokenizer, LocalTokenizer)


def test_other_models_are_counted_by_an_upper_bound() -> None:
    server = OllamaServer(model="bge-m3", dimensions=8)
    server.context = 512
    try:
        embedder = OllamaEmbedder("bge-m3", url=server.url)
        assert (embedder.space.dimensions, embedder.max_tokens) == (8, 510)
        assert isinstance(embedder.tokenizer, ByteTokenizer)
    finally:
        server.stop()
    assert ByteTokenizer().counts(["graph", "né", "한"]) == [5, 3, 3]
    assert ByteTokenizer().starts("né") == [0, 1, 1]


async def test_a_text_too_long_is_refused_and_a_query_keeps_its_beginning(
    served: OllamaServer, nomic: OllamaEmbedder
) -> None:
    with pytest.raises(BadInput, match="text 2 of 2 has up to 3000 tokens"):
        await nomic.embed(["short", "word " * 3000])
    assert served.asked == []
    await nomic.embed_query("word " * 3000)
    assert served.asked == [["search_query: " + "word " * (nomic.max_tokens)]]


async def test_what_the_server_finds_too_long_is_halved_and_nothing_is_lost(
    served: OllamaServer, nomic: OllamaEmbedder
) -> None:
    served.words = 60
    words = [f"word{n}" for n in range(100)]
    vectors = await nomic.embed(["short", " ".join(words)])
    [short] = await nomic.embed(["short"])
    assert np.allclose(vectors[0], short)
    accepted = [a[0] for a in served.asked if len(a) == 1 and len(a[0].split()) <= 60]
    read = [word for text in accepted for word in text.split() if word.startswith("word")]
    assert read == words
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-5)


async def test_a_server_that_stumbles_is_asked_again(
    served: OllamaServer, nomic: OllamaEmbedder
) -> None:
    served.failures.extend([500, 503])
    assert (await nomic.embed(["text"])).shape == (1, 768)
    assert len(served.asked) == 3


async def test_it_gives_up_and_says_what_to_do(
    served: OllamaServer, nomic: OllamaEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vademecum.inference.served.TRIES", 2)
    served.failures.extend([500, 500])
    with pytest.raises(EmbedderUnreachable, match="the runner has stopped"):
        await nomic.embed(["text"])


def test_a_server_that_is_away_and_a_model_that_is_not_there(served: OllamaServer) -> None:
    missing = OllamaEmbedder("other", url=served.url)
    with pytest.raises(ModelUnavailable, match="no model 'other'") as raised:
        _ = missing.space
    assert "ollama pull other" in str(raised.value.hint)
    served.stop()
    try:
        with pytest.raises(EmbedderUnreachable, match="does not answer at http") as away:
            _ = OllamaEmbedder("nomic-embed-text", url=served.url).space
        assert "ollama serve" in str(away.value.hint)
    finally:
        served.start()


async def test_one_bad_text_fails_its_own_document_alone(
    settings_of_ollama: Settings, served: OllamaServer, write: Write
) -> None:
    served.poison = "poison"
    folder = write({f"{n}.md": f"# Page {n}\n\nGraph number{n}." for n in range(4)})
    (folder / "bad.md").write_text("# Bad\n\nSome poison here.")
    async with App.open(settings_of_ollama) as app:
        report = await app.ingest.bulk_index(folder)
        assert [failure.path for failure in report.failed] == ["bad.md"]
        assert report.embedded == 4
        found = await app.search(Query(text="number3", collection="docs", mode="dense"))
        assert len(found.results) == 4


async def test_while_the_server_is_away_vectors_stay_and_searches_are_lexical(
    settings_of_ollama: Settings, served: OllamaServer, write: Write
) -> None:
    folder = write({"a.md": "# Graph\n\nBuild the graph."})
    query = Query(text="build graph", collection="docs")
    async with App.open(settings_of_ollama) as app:
        await app.ingest.bulk_index(folder)
        served.stop()
        try:
            found = await app.search(query)
            assert found.mode == "lexical"
            assert len(found.results) == 1
            assert "does not answer" in found.notices[0]
            (folder / "b.md").write_text("# More\n\nAnother page.")
        finally:
            served.start()
    served.stop()
    try:
        async with App.open(settings_of_ollama) as app:
            with pytest.raises(EmbedderUnreachable):
                await app.ingest.bulk_index(folder)
    finally:
        served.start()
    async with App.open(settings_of_ollama) as app:
        found = await app.search(query)
        assert found.mode == "hybrid"
        assert {c.retriever for hit in found.results for c in hit.contributions} >= {"dense"}
