"""One behaviour of every embedder, whatever is behind it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from fastembed_model import make_model
from ollama_server import OllamaServer
from openai_server import KEY, OpenAIServer
from vademecum.errors import BadInput
from vademecum.inference.embedder import Embedder
from vademecum.inference.fastembed import FastembedEmbedder
from vademecum.inference.local import LocalEmbedder
from vademecum.inference.ollama import OllamaEmbedder
from vademecum.inference.openai import OpenAIEmbedder

Make = Callable[[], Embedder]


@pytest.fixture(scope="module")
def hub_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("hub") / "all-MiniLM-L6-v2")


@pytest.fixture(
    params=[
        "local",
        "fastembed",
        "ollama",
        "ollama-unknown",
        "openai-small",
        "openai-large-256",
        "compatible",
    ]
)
def make(request: pytest.FixtureRequest, home: Path, hub_model: Path) -> Iterator[Make]:
    """Makes the embedder, each time from nothing."""
    ollama, openai = OllamaServer(), OpenAIServer()
    unknown = OllamaServer(model="bge-m3", dimensions=8)
    compatible = OpenAIServer(served="BAAI/bge-m3")
    makers: dict[str, Make] = {
        "local": lambda: LocalEmbedder(home=home, threads=1),
        "fastembed": lambda: FastembedEmbedder(str(hub_model), home=home, threads=1),
        "ollama": lambda: OllamaEmbedder("nomic-embed-text", url=ollama.url),
        "ollama-unknown": lambda: OllamaEmbedder("bge-m3", url=unknown.url),
        "openai-small": lambda: OpenAIEmbedder("text-embedding-3-small", url=openai.base, key=KEY),
        "openai-large-256": lambda: OpenAIEmbedder(
            "text-embedding-3-large?dimensions=256", url=openai.base, key=KEY
        ),
        "compatible": lambda: OpenAIEmbedder("BAAI/bge-m3", url=compatible.base),
    }
    yield makers[request.param]
    for server in (ollama, unknown, openai, compatible):
        server.stop()


async def test_vectors_have_length_one_and_the_spaces_dimensions(make: Make) -> None:
    embedder = make()
    vectors = await embedder.embed(["build the graph", "rotate the keys", "한국어 text"])
    assert vectors.shape == (3, embedder.space.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)


async def test_the_order_and_the_batch_do_not_matter(make: Make) -> None:
    embedder = make()
    texts = [f"word{n % 7} and graph{n}" for n in range(70)]
    together = await embedder.embed(texts)
    for index in (0, 33, 69):
        [alone] = await embedder.embed([texts[index]])
        assert float(alone @ together[index]) > 0.98


async def test_nothing_to_embed_is_no_vector(make: Make) -> None:
    embedder = make()
    assert (await embedder.embed([])).shape == (0, embedder.space.dimensions)


async def test_like_texts_are_nearer_than_others(make: Make) -> None:
    embedder = make()
    query = await embedder.embed_query("build the graph")
    assert query.shape == (embedder.space.dimensions,)
    same, other = await embedder.embed(["build the graph", "lunch is served at noon"])
    assert float(query @ same) > float(query @ other)


async def test_a_text_that_is_too_long_is_refused_and_a_query_is_not(make: Make) -> None:
    embedder = make()
    long = "word " * (embedder.max_tokens + 10)
    with pytest.raises(BadInput, match="tokens"):
        await embedder.embed(["short", long])
    assert (await embedder.embed_query(long)).shape == (embedder.space.dimensions,)


def test_counts_are_the_starts_and_never_below_the_words(make: Make) -> None:
    tokenizer = make().tokenizer
    texts = ["build the graph", "", "naïve 한국어 --no-verify"]
    counts = tokenizer.counts(texts)
    assert counts == [len(tokenizer.starts(text)) for text in texts]
    assert counts[0] >= 3
    assert counts[1] == 0


def test_equal_embedders_share_a_space(make: Make) -> None:
    assert make().space.key == make().space.key
