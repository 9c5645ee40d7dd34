"""Search in the memory of a user: what it finds, and how long it and an update take.

    uv run benchmarks/memory.py LOCOMO [--database URL] [--versions 10 --versions 100 …]

LOCOMO has corpus.jsonl {"id", "title", "text", "conversation"}, queries.jsonl {"id", "text",
"conversation", "category"} and qrels.tsv (query, turn, relevance). Each turn becomes a passage, and
a question is asked among those of its own conversation, by the ranking that `vade memory search`
uses. The privacy gate is not part of it: the turns are full of names.

The latencies are of the whole call, on a database of the benchmark's own, with memories of so many
versions; embedding a query alone, and `SELECT 1`, stand beside them for reference.
"""

import argparse
import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

from retrieval import RetrievalSet, read_set
from scratch import scratch_app
from vademecum.app import App
from vademecum.evaluate.metrics import Met, ndcg, recall
from vademecum.inference.embedder import Embedder
from vademecum.memory.recall import Entry, Passage, entries, rank

CUTOFF = 10
USER = "someone@example.org"
TOPICS = ["leave policy", "travel claims", "parental leave", "promotion", "training", "pension"]
WISHES = ["concise", "detailed", "formal", "direct"]
QUERIES = ["what does the user ask about", "preferred form of answers", "travel", "pension rules"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("locomo", type=Path, nargs="?")
    parser.add_argument("--database", metavar="URL", help="a server to make a database on")
    parser.add_argument("--versions", type=int, action="append")
    parser.add_argument("--latency-only", action="store_true")
    arguments = parser.parse_args()
    asyncio.run(run(arguments))


async def run(arguments: argparse.Namespace) -> None:
    async with scratch_app(arguments.database) as app:
        embedder = app.embedders.named(app.settings.embedder)
        assert embedder is not None
        await embedder.embed_query("made before the clock runs")
        if arguments.locomo and not arguments.latency_only:
            questions = read_set(arguments.locomo)
            for name, used in (("words", None), ("words and meaning", embedder)):
                await quality(questions, name, used)
        for versions in arguments.versions or [10, 100, 300]:
            await latency(app, versions)


async def quality(questions: RetrievalSet, name: str, embedder: Embedder | None) -> None:
    by_kind: dict[str, list[tuple[float, float]]] = defaultdict(list)
    asked: dict[str, list[dict[str, str]]] = defaultdict(list)
    for question in questions.questions:
        asked[question["conversation"]].append(dict(question))
    for conversation, turns in questions.corpora.items():
        passages = [
            Passage(
                text=f"{turn['title']}: {turn['text']}", project="", section=turn["id"], version=1
            )
            for turn in turns
        ]
        among: list[Entry] = await entries(passages, embedder)
        for question in asked[conversation]:
            wanted = set(questions.judgments[question["id"]])
            found = await rank(among, question["text"], embedder=embedder, limit=CUTOFF)
            places = {hit.passage.section: place for place, hit in enumerate(found, start=1)}
            met = [Met(rank=places.get(turn), rel=1.0) for turn in wanted]
            by_kind[question["category"]].append((recall(met, k=CUTOFF), ndcg(met, k=CUTOFF)))
    print(f"LoCoMo by {name}: recall@{CUTOFF}, nDCG@{CUTOFF}")
    every = [pair for pairs in by_kind.values() for pair in pairs]
    for kind, pairs in [*sorted(by_kind.items()), ("all", every)]:
        means = [statistics.fmean(values) for values in zip(*pairs, strict=True)]
        print(f"  {kind:12} {means[0]:.3f} {means[1]:.3f}  ({len(pairs)} questions)")


async def latency(app: App, versions: int) -> None:
    user = f"v{versions}.{USER}"
    updates = []
    for number in range(versions):
        topic, wish = TOPICS[number % len(TOPICS)], WISHES[number % len(WISHES)]
        text = f"I have a question about {topic}. I prefer {wish} answers to those."
        began = time.perf_counter()
        await app.memory.update(user, message=text, exchange=str(number), agent="policy")
        updates.append((time.perf_counter() - began) * 1000)

    async def nothing(_: str) -> None:
        async with app.database.connection() as connection:
            await connection.execute("SELECT 1")

    embedder = app.embedders.named(app.settings.embedder)
    assert embedder is not None

    print(f"a memory of {versions} versions, ms p50 and p95")
    print(f"  {'update':22} {spread(updates)}")
    await app.memory.search(user, QUERIES[0])
    for name, call in (
        ("show", lambda _: app.memory.show(user)),
        ("search", lambda query: app.memory.search(user, query)),
        ("embed a query", embedder.embed_query),
        ("SELECT 1", nothing),
    ):
        print(f"  {name:22} {spread(await timed(call))}")


async def timed(call: Callable[[str], Awaitable[object]], times: int = 200) -> list[float]:
    took = []
    for number in range(times):
        began = time.perf_counter()
        await call(QUERIES[number % len(QUERIES)])
        took.append((time.perf_counter() - began) * 1000)
    return took


def spread(took: list[float]) -> str:
    ordered = sorted(took)
    return f"{statistics.median(ordered):7.2f} {ordered[int(len(ordered) * 0.95)]:7.2f}"


if __name__ == "__main__":
    main()
