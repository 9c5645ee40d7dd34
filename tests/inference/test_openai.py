"""The embedder of OpenAI, and of servers like it, over a real socket."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import openai
import pytest

from openai_server import KEY, OpenAIServer, tokens_of
from vademecum.app import App
from vademecum.errors import (
    BadInput,
    BadSetting,
    CostCapReached,
    EmbedderUnreachable,
    ModelUnavailable,
)
from vademecum.inference.cost import Budget, estimate
from vademecum.inference.openai import OpenAIEmbedder
from vademecum.settings import Settings, load_settings
from vademecum.types import Query

Write = Callable[[dict[str, str | bytes]], Path]
SMALL = "text-embedding-3-small"


@pytest.fixture
def vendor() -> Iterator[OpenAIServer]:
    vendor = OpenAIServer()
    yield vendor
    vendor.stop()


@pytest.fixture
def small(vendor: OpenAIServer) -> OpenAIEmbedder:
    return OpenAIEmbedder(SMALL, url=vendor.base, key=KEY, cap=1.0)


@pytest.fixture
def settings_of_openai(home: Path, database_url: str, vendor: OpenAIServer) -> Settings:
    return Settings(
        home=home,
        database_url=database_url,
        embedder=f"openai:{SMALL}",
        openai_url=vendor.base,
        openai_key=KEY,
    )


def test_the_vendors_client_understands_the_server_of_these_tests(vendor: OpenAIServer) -> None:
    with openai.OpenAI(base_url=vendor.base, api_key=KEY, max_retries=0) as client:
        answer = client.embeddings.create(model=SMALL, input=["build the graph", "two"])
        assert [one.index for one in answer.data] == [1, 0]
        by_index = {one.index: one.embedding for one in answer.data}
        assert np.allclose(by_index[0], vendor.vector("build the graph", 1536), atol=1e-6)
        assert answer.usage.total_tokens == 6
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="other", input="text")
        with pytest.raises(openai.BadRequestError, match="must not be empty"):
            client.embeddings.create(model=SMALL, input=["text", ""])
        with pytest.raises(openai.BadRequestError, match="too long"):
            client.embeddings.create(model=SMALL, input=["text"] * 2049)
    with (
        openai.OpenAI(base_url=vendor.base, api_key="sk-wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.embeddings.create(model=SMALL, input="text")


async def test_our_vectors_are_the_vendors_clients(
    vendor: OpenAIServer, small: OpenAIEmbedder
) -> None:
    texts = [f"text {n}" for n in range(50)]
    ours = await small.embed(texts)
    with openai.OpenAI(base_url=vendor.base, api_key=KEY) as client:
        answer = client.embeddings.create(model=SMALL, input=texts)
    theirs = {one.index: one.embedding for one in answer.data}
    assert np.allclose(ours, np.array([theirs[n] for n in range(50)]), atol=1e-6)


async def test_fewer_dimensions_are_asked_for_and_made_units(vendor: OpenAIServer) -> None:
    large = OpenAIEmbedder("text-embedding-3-large?dimensions=1024", url=vendor.base, key=KEY)
    assert large.space.dimensions == 1024
    [vector] = await large.embed(["build the graph"])
    expected = vendor.vector("build the graph", 3072)[:1024]
    assert np.allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)


async def test_requests_hold_to_both_limits_and_go_side_by_side(
    vendor: OpenAIServer, small: OpenAIEmbedder
) -> None:
    vendor.seconds = 0.05
    await small.embed([f"word{n}" for n in range(5000)])
    assert sorted(len(inputs) for inputs in vendor.asked) == [904, 2048, 2048]
    assert vendor.busiest > 1
    vendor.asked.clear()
    await small.embed(["x" * 8000] * 100)
    assert sorted(len(inputs) for inputs in vendor.asked) == [26, 37, 37]
    assert max(sum(tokens_of(t) for t in inputs) for inputs in vendor.asked) <= 300_000


async def test_a_busy_server_is_waited_for_as_long_as_it_asks(
    vendor: OpenAIServer, small: OpenAIEmbedder
) -> None:
    vendor.failures.extend(
        [(429, "rate_limit_exceeded", {"retry-after": "0.01"}), (500, "", {}), (503, "", {})]
    )
    assert (await small.embed(["text"])).shape == (1, 1536)
    assert len(vendor.asked) == 4


async def test_an_account_without_credit_is_not_asked_again(
    vendor: OpenAIServer, small: OpenAIEmbedder
) -> None:
    vendor.failures.append((429, "insufficient_quota", {}))
    with pytest.raises(EmbedderUnreachable) as refused:
        await small.embed(["text"])
    assert "billing" in str(refused.value.hint)
    assert len(vendor.asked) == 1


async def test_a_wrong_key_and_an_unknown_model_say_what_to_do(vendor: OpenAIServer) -> None:
    with pytest.raises(ModelUnavailable, match="does not let us in") as refused:
        await OpenAIEmbedder(SMALL, url=vendor.base, key="sk-wrong").embed(["text"])
    assert "OPENAI_API_KEY" in str(refused.value.hint)
    with pytest.raises(ModelUnavailable, match="no model 'other'"):
        _ = OpenAIEmbedder("other", url=vendor.base, key=KEY).space


async def test_a_text_the_server_finds_too_long_is_halved_and_nothing_is_lost(
    vendor: OpenAIServer, small: OpenAIEmbedder
) -> None:
    vendor.most_tokens = 100
    words = [f"word{n}" for n in range(100)]
    vectors = await small.embed(["short", " ".join(words)])
    accepted = [i[0] for i in vendor.asked if len(i) == 1 and tokens_of(i[0]) <= 100]
    assert [w for text in accepted for w in text.split() if w.startswith("word")] == words
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-5)


async def test_a_server_of_another_kind_tells_its_dimensions_and_context() -> None:
    vendor = OpenAIServer(served="intfloat/e5-base", dimensions=12)
    try:
        silent = OpenAIEmbedder("intfloat/e5-base", url=vendor.base)
        assert (silent.space.dimensions, silent.space.document_prefix) == (12, "passage: ")
        assert silent.max_tokens == 512 - 2 - len("passage: ")
        told = OpenAIEmbedder("intfloat/e5-base?tokens=1024", url=vendor.base)
        assert told.max_tokens == 1024 - 2 - len("passage: ")
        vendor.context = 4096
        asked = OpenAIEmbedder("intfloat/e5-base", url=vendor.base)
        assert asked.max_tokens == 4096 - 2 - len("passage: ")
        await asked.embed(["text"])
        assert vendor.asked[-1] == ["passage: text"]
    finally:
        vendor.stop()


@pytest.mark.parametrize(
    "model",
    [
        f"{SMALL}?dimensions=2000",
        f"{SMALL}?dimensions=x",
        f"{SMALL}?size=3",
        "text-embedding-ada-002?dimensions=512",
        "served?dimensions=5000",
    ],
)
def test_a_setting_that_cannot_be_is_refused(model: str) -> None:
    with pytest.raises(BadSetting):
        OpenAIEmbedder(model, url="http://127.0.0.1:1")


def test_the_key_is_for_its_own_server_only_and_is_never_shown(tmp_path: Path) -> None:
    environment = {"OPENAI_API_KEY": "sk-secret", "VADE_HOME": str(tmp_path)}
    settings = load_settings(environment)
    assert settings.openai_key == "sk-secret"
    assert "sk-secret" not in repr(settings)
    elsewhere = load_settings({**environment, "VADE_OPENAI_URL": "http://127.0.0.1:8000/v1"})
    assert elsewhere.openai_key is None


def test_estimates_and_budgets() -> None:
    about = estimate(SMALL, 100_000_000)
    assert about is not None
    assert (about.tokens, round(about.dollars, 2)) == (30_000_000, 0.6)
    assert estimate("served", 100) is None
    budget = Budget(SMALL, cap=0.02)
    budget.spend(1_000_000)
    budget.check()
    budget.spend(1)
    with pytest.raises(CostCapReached, match=r"has cost \$0.02, more than \$0.02"):
        budget.check()
    budget.begin()
    budget.check()


async def test_documents_are_indexed_and_found(
    settings_of_openai: Settings, vendor: OpenAIServer, write: Write
) -> None:
    vendor.poison = "poison"
    folder = write({f"{n}.md": f"# Page {n}\n\nGraph number{n}." for n in range(4)})
    (folder / "bad.md").write_text("# Bad\n\nSome poison here.")
    async with App.open(settings_of_openai) as app:
        report = await app.ingest.bulk_index(folder)
        assert [failure.path for failure in report.failed] == ["bad.md"]
        found = await app.search(Query(text="Graph number3.", collection="docs", mode="dense"))
        assert found.results[0].path == "3.md"
        assert app.embedders.opened[f"openai:{SMALL}"].space.dimensions == 1536


async def test_a_run_that_would_cost_too_much_embeds_nothing_and_waits(
    settings_of_openai: Settings, vendor: OpenAIServer, write: Write
) -> None:
    folder = write({"a.md": "# Graph\n\n" + "Build the graph. " * 2000})
    async with App.open(replace(settings_of_openai, max_cost=0.0001)) as app:
        with pytest.raises(CostCapReached, match="would cost about") as refused:
            await app.ingest.bulk_index(folder)
        assert "VADE_MAX_COST" in str(refused.value.hint)
        assert vendor.asked == []
        assert (await app.open_jobs("docs")).pending == 1
    async with App.open(settings_of_openai) as app:
        progress, left = await app.process_queue()
        assert (progress.done, left.pending) == (1, 0)


async def test_a_run_ends_where_its_cost_passes_the_cap(
    settings_of_openai: Settings, vendor: OpenAIServer, write: Write
) -> None:
    folder = write({f"{n}.md": f"# Page {n}\n\nBuild the graph of {n}." for n in range(40)})
    vendor.charge = 1000  # a text of more tokens than an estimate takes it to have
    async with App.open(replace(settings_of_openai, max_cost=0.0001)) as app:
        with pytest.raises(CostCapReached, match="has cost"):
            await app.ingest.bulk_index(folder)
        left = await app.open_jobs("docs")
        assert left.pending > 0
        assert left.processing == left.failed == 0
        vendor.charge = 1
        progress, left = await app.process_queue()
        assert (left.pending, left.failed) == (0, 0)
        assert progress.done < 40


async def test_a_collection_has_an_embedder_of_its_own(
    settings_of_openai: Settings, write: Write
) -> None:
    folder = write({"a.md": "# Graph\n\nBuild the graph."})
    async with App.open(replace(settings_of_openai, embedder="none")) as app:
        await app.ingest.bulk_index(folder, collection="one")
        await app.ingest.bulk_index(
            folder, collection="two", embedder=f"openai:{SMALL}?dimensions=512"
        )
        with pytest.raises(BadInput, match="is embedded by none"):
            await app.ingest.bulk_index(folder, collection="one", embedder=f"openai:{SMALL}")
        with pytest.raises(BadSetting):
            await app.ingest.bulk_index(folder, collection="three", embedder="closed:model")
        assert {c.name: c.embedder for c in await app.list_collections()} == {
            "one": "none",
            "two": f"openai:{SMALL}?dimensions=512",
        }
