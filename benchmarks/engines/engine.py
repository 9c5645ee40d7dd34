"""What an engine of the latency benchmark is."""

import importlib
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, cast

from engines.handover import Handover
from vademecum.inference.embedder import Embedder

LIMIT = 8

Found = list[tuple[str, str]]
"""Id and text of each hit, best first."""


class Engine(Protocol):
    """One that is open and can be asked."""

    modes: tuple[str, ...]
    embedder: Embedder

    async def search(self, text: str, mode: str) -> Found: ...

    async def server_memory(self) -> int | None:
        """Bytes of other processes that serve it: 0 without any, None where they are not seen."""
        ...


class Adapter(Protocol):
    """The module of an engine."""

    async def build(self, handover: Handover, folder: Path) -> None: ...

    def connect(self, handover: Handover, folder: Path) -> AbstractAsyncContextManager[Engine]: ...


_MODULES = {
    "vademecum": "engines.ours",
    "lancedb": "engines.lance",
    "qdrant-edge": "engines.qdrant",
}
ENGINES = tuple(_MODULES)
PACKAGES = {"lancedb": "lancedb", "qdrant-edge": "qdrant_edge"}
"""What an engine has to be installed for."""


def adapter(engine: str) -> Adapter:
    return cast(Adapter, importlib.import_module(_MODULES[engine]))
