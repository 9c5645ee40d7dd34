"""Does what agents report change what they are given? A simulated stream of uses, with a seed.

    uv run benchmarks/feedback.py [--documents 60] [--uses 600] [--seed 7] [--json]

Documents of all sources have a hidden quality: the chance that following them succeeds. It has
nothing to do with the trust of their source. In each step an agent takes one of the five documents
that rank best (one step in ten any document) and reports what came of it: success with the
document's chance, else failure, or in three of ten that it misled. nDCG@10 of the top list with the
qualities as gains is measured along the way, in a fresh database, against the same stream in which
agents report nothing but the use. Mean of three streams.
"""

import argparse
import asyncio
import json
import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from scratch import scratch_app
from vademecum.app import App
from vademecum.graph.nodes import ExternalDoc
from vademecum.graph.sources import SOURCES
from vademecum.types import EntityId

STEPS = 6
STREAMS = 3
MISLED = 0.3
ANY = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--uses", type=int, default=600)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true", dest="as_json")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments))
    if arguments.as_json:
        print(json.dumps(found, indent=2))
        return
    print(f"nDCG@10 of the top list, {arguments.documents} documents, seed {arguments.seed}")
    print(f"{'uses':>8}{'outcomes told':>16}{'uses only':>12}{'ratio':>8}")
    for uses, told, only in zip(found["uses"], found["told"], found["only"], strict=True):
        print(f"{uses:8}{told:16.3f}{only:12.3f}{told / only:8.2f}")


async def measure(arguments: argparse.Namespace) -> dict[str, list[float]]:
    told, only = [], []
    async with scratch_app(embedder="none") as app:
        for stream in range(STREAMS):
            seed = arguments.seed + stream
            told.append(await run(app, arguments, seed, tell=True))
            only.append(await run(app, arguments, seed, tell=False))
    every = arguments.uses // STEPS
    return {
        "uses": [float(every * step) for step in range(STEPS + 1)],
        "told": [sum(values) / STREAMS for values in zip(*told, strict=True)],
        "only": [sum(values) / STREAMS for values in zip(*only, strict=True)],
    }


async def run(app: App, arguments: argparse.Namespace, seed: int, *, tell: bool) -> list[float]:
    """nDCG@10 at the beginning and after each sixth of the stream."""
    chance = random.Random(seed)
    arm = f"{seed} {tell}"
    docs = [made(number, arm, chance) for number in range(arguments.documents)]
    quality = {doc.id: chance.betavariate(2, 2) for doc in docs}
    await app.graph.retract("stream")
    await app.graph.state("stream", "all", nodes=docs)
    measured = [ndcg(await ranked(app, docs), quality)]
    for use in range(1, arguments.uses + 1):
        best = await ranked(app, docs)
        taken = chance.choice(best[:5] if chance.random() > ANY else best)
        good = chance.random() < quality[taken]
        bad = "misled" if chance.random() < MISLED else "failure"
        outcome = ("success" if good else bad) if tell else "unknown"
        await app.graph.record_usage(
            taken, agent_id="simulated", outcome=outcome, use=f"{seed} {use}"
        )
        if use % (arguments.uses // STEPS) == 0:
            measured.append(ndcg(await ranked(app, docs), quality))
    return measured


def made(number: int, arm: str, chance: random.Random) -> ExternalDoc:
    doc = ExternalDoc(
        source=chance.choice(sorted(SOURCES)),
        source_url=f"https://docs.example/{arm}/{number}",
        title=f"Document {number}",
        content_hash=f"{number:064}",
        last_updated=datetime.now(UTC) - timedelta(days=chance.randrange(700)),
        language="Python",
        category="guide",
    )
    return replace(doc, summary=f"What document {number} says.")


async def ranked(app: App, docs: list[ExternalDoc]) -> list[EntityId]:
    scores = await app.graph.scores([doc.id for doc in docs])
    return sorted(scores, key=lambda number: (-scores[number].relevance.relevance, str(number)))


def ndcg(order: list[EntityId], quality: dict[EntityId, float], depth: int = 10) -> float:
    def gain(values: list[float]) -> float:
        return sum(value / math.log2(place + 2) for place, value in enumerate(values[:depth]))

    return gain([quality[number] for number in order]) / gain(
        sorted(quality.values(), reverse=True)
    )


if __name__ == "__main__":
    main()
