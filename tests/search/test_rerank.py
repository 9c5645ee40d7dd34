"""Reranking: by a cross-encoder's graph, by a language model, within a time."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client

from cross_encoder import write_cross_encoder
from model_server import Asked, ModelServer
from vademecum.app import App
from vademecum.errors import BadSetting
from vademecum.inference.cross_encoder import CrossEncoder, in_hub, in_package
from vademecum.search.facade import SearchResult
from vademecum.search.rerank import SHORTLIST, rerank
from vademecum.settings import Settings
from vademecum.surfaces.mcp import build
from vademecum.types import Query

Write = Callable[[dict[str, str | bytes]], Path]
QUERY = "gate opens dawn stone"
# The later the page, the more it says of the query, and the longer it goes on about the rain: BM25
# likes the first ones, and a count of common words the last.
PAGES: dict[str, str | bytes] = {
    f"{n:02}.md": f"# Gate {n}\n\n"
    + "Opens dawn stone. " * (1 + n // 3)
    + "Rain at night. " * 4 * n
    for n in range(25)
}


@pytest.fixture
def served() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_cross_encoder(tmp_path / "encoder")


@pytest.fixture
async def apps(
    settings: Settings, served: ModelServer, write: Write
) -> AsyncIterator[Callable[..., App]]:
    own = replace(settings, embedder="none", ollama_url=served.url)
    async with App.open(own) as app:
        await app.ingest.bulk_index(write(PAGES), collection="docs")
        yield lambda **more: App(replace(own, **more), app.database)


async def search(app: App, limit: int = 8, *, reranked: bool = True) -> SearchResult:
    return await app.search(Query(text=QUERY, collection="docs", limit=limit, rerank=reranked))


def paths(result: SearchResult) -> list[str]:
    return [hit.path for hit in result.results]


async def test_a_cross_encoder_orders_the_shortlist(apps: Callable[..., App], folder: Path) -> None:
    app = apps(reranker=f"local:{folder}")
    fused = await search(app, SHORTLIST, reranked=False)
    result = await search(app, SHORTLIST)
    said = {
        hit.path: part.score
        for hit in result.results
        for part in hit.contributions
        if part.retriever == "rerank"
    }
    assert set(paths(result)) == set(paths(fused))
    assert paths(result) != paths(fused)
    fused_order = paths(fused)
    assert paths(result) == sorted(fused_order, key=lambda path: -said[path])
    assert (result.reranked_by, result.notices) == (f"local:{folder}", [])


async def test_scores_are_dealt_out_anew_and_explained(
    apps: Callable[..., App], folder: Path
) -> None:
    app = apps(reranker=f"local:{folder}")
    fused = await search(app, SHORTLIST, reranked=False)
    result = await search(app, SHORTLIST)
    assert [hit.score for hit in result.results] == [hit.score for hit in fused.results]
    for rank, hit in enumerate(result.results, start=1):
        assert sum(part.share for part in hit.contributions) == pytest.approx(hit.score)
        assert hit.contributions[-1].rank == rank


async def test_the_shortlist_is_looked_at_whatever_k_is(
    apps: Callable[..., App], folder: Path
) -> None:
    app = apps(reranker=f"local:{folder}")
    long = await search(app, SHORTLIST)
    assert paths(await search(app, 3)) == paths(long)[:3]
    longer = await search(app, 25)
    fused = await search(app, 25, reranked=False)
    assert paths(longer)[:SHORTLIST] == paths(long)
    assert paths(longer)[SHORTLIST:] == paths(fused)[SHORTLIST:]


async def test_it_is_off_unless_asked_for(apps: Callable[..., App], tmp_path: Path) -> None:
    app = apps(reranker=f"local:{tmp_path}/nothing")
    assert (await search(app, reranked=False)).reranked_by is None


async def test_when_the_time_ends_the_fused_order_stands(
    apps: Callable[..., App], tmp_path: Path
) -> None:
    slow = write_cross_encoder(tmp_path / "slow", slow=200)
    app = apps(reranker=f"local:{slow}", rerank_ms=1)
    result = await search(app)
    assert paths(result) == paths(await search(app, SHORTLIST, reranked=False))[:8]
    assert result.notices == [f"local:{slow} took longer than 1 ms: the fused order stands"]
    assert result.reranked_by is None
    assert all(part.retriever != "rerank" for hit in result.results for part in hit.contributions)


async def test_without_a_reranker_the_result_says_so(
    apps: Callable[..., App], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for settings in ({}, {"reranker": "none"}):
        result = await search(apps(**settings))
        assert len(result.results) == 8
        [notice] = result.notices
        assert notice.startswith("no reranker is here")


async def test_a_hub_cache_and_a_package_are_places_too(
    apps: Callable[..., App], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    snapshot = tmp_path / "hub/models--cross-encoder--ms-marco-MiniLM-L6-v2/snapshots/abc"
    write_cross_encoder(snapshot)
    (snapshot / "onnx").mkdir()
    (snapshot / "model.onnx").rename(snapshot / "onnx/model.onnx")
    result = await search(apps())
    assert result.reranked_by == "hub:cross-encoder/ms-marco-MiniLM-L6-v2"
    assert in_hub("other/model") is None

    package = tmp_path / "packages/some_reranker"
    write_cross_encoder(package / "weights")
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    assert in_package("some_reranker") == package / "weights"
    assert in_package("vademecum") is None
    result = await search(apps(reranker="package:some_reranker"))
    assert result.reranked_by == "package:some_reranker"


@pytest.mark.parametrize("setting", ["local:/nowhere", "package:nothing", "hub:a/b", "x", "x:y"])
async def test_a_setting_that_names_nothing(apps: Callable[..., App], setting: str) -> None:
    with pytest.raises(BadSetting, match="VADE_RERANKER") as bad:
        await search(apps(reranker=setting))
    assert bad.value.hint


async def test_files_that_are_no_model(apps: Callable[..., App], folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"not a model")
    result = await search(apps(reranker=f"local:{folder}"))
    assert len(result.results) == 8
    [notice] = result.notices
    assert notice.startswith(f"the reranker {folder} cannot be used")
    assert notice.endswith("the fused order stands")


@pytest.mark.parametrize("outputs", [1, 2])
async def test_scores_are_of_query_and_passage(tmp_path: Path, outputs: int) -> None:
    encoder = CrossEncoder(write_cross_encoder(tmp_path, outputs=outputs), name="x")
    passages = ["the gate opens at dawn", "rain", "guards sleep", "", "key"]
    assert await encoder.scores("when does the gate open: dawn", passages) == [2, 0, 0, 0, 0]
    assert await encoder.scores("key bread", passages) == [0, 0, 0, 0, 1]


async def test_a_long_passage_counts_by_its_best_window(tmp_path: Path) -> None:
    encoder = CrossEncoder(write_cross_encoder(tmp_path), name="x")
    far = "rain " * 700 + "gate opens dawn"
    assert await encoder.scores("gate opens dawn", [far]) == [3]


async def test_a_long_query_keeps_its_beginning(tmp_path: Path) -> None:
    encoder = CrossEncoder(write_cross_encoder(tmp_path), name="x")
    assert await encoder.scores("gate " + "night " * 3000, ["the gate", "bread"]) == [1, 0]


async def test_few_hits_need_no_model(folder: Path) -> None:
    done = await rerank([], CrossEncoder(folder, name="x"), "gate", milliseconds=100)
    assert done.hits == []


async def test_agents_ask_for_it_over_mcp(apps: Callable[..., App], folder: Path) -> None:
    app, without = apps(reranker=f"local:{folder}"), apps(reranker="none")
    asked = {"query": QUERY, "k": 5}

    async def found(app: App, **more: object) -> tuple[list[str], object]:
        async def opened() -> App:
            return app

        async with Client(build(opened)) as client:
            told = (await client.call_tool("search_knowledge", asked | more)).structured_content
        assert told is not None
        return [one["ref"] for one in told["passages"]], told.get("notices")

    fused, reranked = await search(app, 10, reranked=False), await search(app, 10)
    assert await found(app) == ([hit.reference for hit in fused.results[:5]], None)
    again = [hit.reference for hit in reranked.results]
    assert await found(app, rerank=True) == (again[:5], None)
    assert await found(app, rerank=True, page=2) == (again[5:], None)
    refs, notices = await found(without, rerank=True)
    assert refs == [hit.reference for hit in fused.results[:5]]
    assert notices == ["no reranker is here, VADE_RERANKER names one: the fused order stands"]


# --- by a language model ----------------------------------------------------------------------


def graded(asked: Asked) -> str:
    """The later the page, the better."""
    passages = asked.text.split("<passage number=")[1:]
    grades = [
        {"passage": n, "grade": int(passage.split("Gate ")[1].split()[0]) // 3}
        for n, passage in enumerate(passages, start=1)
    ]
    return json.dumps({"grades": grades})


async def test_a_language_model_grades_in_one_call(
    apps: Callable[..., App], served: ModelServer
) -> None:
    served.reply = graded
    app = apps(reranker="ollama:llama3.2", rerank_ms=20_000)
    result = await search(app, SHORTLIST)
    grades = [hit.contributions[-1].score for hit in result.results]
    assert grades == sorted(grades, reverse=True)
    assert len(set(grades)) > 3
    assert (result.reranked_by, len(served.asked)) == ("ollama:llama3.2", 1)


@pytest.mark.parametrize("reply", ["{}", "Sure!", '{"grades": [{"passage": 99, "grade": 1}]}'])
async def test_a_language_model_that_does_not_grade(
    apps: Callable[..., App], served: ModelServer, reply: str
) -> None:
    served.reply = lambda asked: reply
    result = await search(apps(reranker="ollama:llama3.2", rerank_ms=20_000))
    assert len(result.results) == 8
    assert result.notices[0].endswith("the fused order stands")


async def test_a_language_model_that_is_slow(apps: Callable[..., App], served: ModelServer) -> None:
    served.delay = 3
    result = await search(apps(reranker="ollama:llama3.2", rerank_ms=200))
    assert result.notices == ["ollama:llama3.2 took longer than 200 ms: the fused order stands"]
