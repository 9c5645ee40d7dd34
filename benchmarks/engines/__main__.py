"""One step of one engine; prints one JSON document."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from engines.engine import Found, adapter
from engines.handover import Handover, Question
from engines.memory import own_peak


async def build(engine: str, handover: Handover) -> dict[str, Any]:
    started = time.perf_counter()
    await adapter(engine).build(handover, handover.folder / engine)
    return {"seconds": time.perf_counter() - started, "peak_bytes": own_peak()}


async def search(engine: str, handover: Handover) -> dict[str, Any]:
    """Milliseconds of each question: embedded only, and searched for in every mode."""
    warm_up, questions = handover.questions
    first = len(warm_up)
    async with adapter(engine).connect(handover, handover.folder / engine) as opened:
        _, embedding = await _timed([*warm_up, *questions], opened.embedder.embed_query)
        modes = {}
        for mode in opened.modes:
            ask = partial(opened.search, mode=mode)
            answers, times = await _timed([*warm_up, *questions], ask)
            found = _share_found(questions, answers[first:])
            modes[mode] = {"milliseconds": times[first:], "found": found}
        server = await opened.server_memory()
    return {
        "embedding": embedding[first:],
        "modes": modes,
        "peak_bytes": own_peak(),
        "server_bytes": server,
    }


async def _timed(
    questions: Sequence[Question], ask: Callable[[str], Awaitable[Any]]
) -> tuple[list[Any], list[float]]:
    """The answers, and how many milliseconds each took."""
    answers, times = [], []
    for question in questions:
        started = time.perf_counter()
        answers.append(await ask(question.text))
        times.append((time.perf_counter() - started) * 1000)
    return answers, times


def _share_found(questions: Sequence[Question], answers: Sequence[Found]) -> float:
    """How many questions find the chunk whose words they are: does it really search?"""
    found = [q.chunk_id in dict(a) for q, a in zip(questions, answers, strict=True)]
    return sum(found) / max(len(found), 1)


def main() -> None:
    step, engine, folder = sys.argv[1:]
    run = {"build": build, "search": search}[step]
    json.dump(asyncio.run(run(engine, Handover(Path(folder)))), sys.stdout)


if __name__ == "__main__":
    main()
