"""What an engine of the latency benchmark is, and the process that measures one.

    python -m engines.engine build|search ENGINE FOLDER

prints one JSON document. FOLDER is a handover; what an engine builds it keeps in there.
"""

import asyncio
import importlib
import json
import shutil
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from engines.handover import Handover, Question
from engines.memory import own_peak
from vademecum.inference.embedder import Embedder
from vademecum.inference.open import open_embedder

WARM_UP = 20
LIMIT = 8

Found = list[tuple[str, str]]
"""Id and text of each hit, best first."""


class Engine(Protocol):
    """One that is open and can be asked."""

    modes: tuple[str, ...]

    async def search(self, text: str, mode: str) -> Found: ...

    async def server_memory(self) -> int | None:
        """Bytes of other processes that serve it; 0 where there are none."""
        ...


class Adapter(Protocol):
    """The module of an engine."""

    PACKAGES: tuple[str, ...]

    async def build(self, handover: Handover, folder: Path) -> None: ...

    def connect(
        self, handover: Handover, folder: Path, embedder: Embedder
    ) -> AbstractAsyncContextManager[Engine]: ...


MODULES = {
    "vademecum": "engines.ours",
    "lancedb": "engines.lance",
    "qdrant-edge": "engines.qdrant",
}


def adapter(engine: str) -> Any:
    return importlib.import_module(MODULES[engine])


async def build(engine: str, handover: Handover) -> dict[str, Any]:
    folder = handover.folder / engine
    shutil.rmtree(folder, ignore_errors=True)
    started = time.perf_counter()
    await adapter(engine).build(handover, folder)
    return {"seconds": time.perf_counter() - started, "peak_bytes": own_peak()}


async def search(engine: str, handover: Handover) -> dict[str, Any]:
    """Milliseconds of each question: embedded only, and searched for in every mode."""
    about = handover.about
    embedder = open_embedder(about["embedder"], home=Path(about["home"]))
    assert embedder is not None
    questions = handover.questions
    async with adapter(engine).connect(handover, handover.folder / engine, embedder) as opened:
        embedding = await _timed(questions, lambda text: embedder.embed_query(text))
        modes = {}
        for mode in opened.modes:
            answers: list[Found] = []

            async def ask(text: str, mode: str = mode, answers: list[Found] = answers) -> None:
                answers.append(await opened.search(text, mode))

            times = await _timed(questions, ask)
            modes[mode] = {"milliseconds": times, "found": _share_found(questions, answers)}
        server = await opened.server_memory()
    return {
        "embedding": embedding,
        "modes": modes,
        "peak_bytes": own_peak(),
        "server_bytes": server,
    }


async def _timed(
    questions: list[Question], ask: Callable[[str], Awaitable[object]]
) -> list[float]:
    """Milliseconds of each question but those to warm up with."""
    times = []
    for question in questions:
        started = time.perf_counter()
        await ask(question.text)
        times.append((time.perf_counter() - started) * 1000)
    return times[WARM_UP:]


def _share_found(questions: list[Question], answers: list[Found]) -> float:
    """How many questions found the chunk whose words they are: does it search at all?"""
    asked = list(zip(questions, answers, strict=True))[WARM_UP:]
    return sum(question.chunk_id in dict(found) for question, found in asked) / max(len(asked), 1)


def main() -> None:
    step, engine, folder = sys.argv[1:]
    handover = Handover(Path(folder))
    run = {"build": build, "search": search}[step]
    json.dump(asyncio.run(run(engine, handover)), sys.stdout)


if __name__ == "__main__":
    main()
