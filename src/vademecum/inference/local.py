"""all-MiniLM-L6-v2 on this machine: no server, no key, no torch.

Each text runs alone through the graph, so its vector is the same, to the bit, whatever else is
embedded with it; texts run side by side, one on each core. In a batch, the quantised activations
would share one scale: the same text's vectors then differ by a cosine down to 0.975 with the
texts beside it, and from 30 tokens on a batch is hardly faster.
"""

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vademecum.errors import BadInput
from vademecum.inference.embedder import EmbeddingSpace
from vademecum.inference.graph import DIGEST, DIMENSIONS, POSITIONS, open_session
from vademecum.inference.weights import MODEL, find_weights
from vademecum.inference.wordpiece import LocalTokenizer
from vademecum.types import Vector

if TYPE_CHECKING:
    import onnxruntime

SPACE = EmbeddingSpace(model=f"local:{MODEL}", dimensions=DIMENSIONS, digest=DIGEST)
START, END = 101, 102
"""Ids of the special tokens that stand around each text."""
MAX_TOKENS = POSITIONS - 2


class LocalEmbedder:
    """The Embedder of this machine. Nothing is read or built before it is asked for."""

    def __init__(self, *, home: Path, folder: Path | None = None, threads: int = 0) -> None:
        self._home, self._folder = home, folder
        self._threads = threads or physical_cores()
        self._lock = threading.RLock()
        self._loaded: onnxruntime.InferenceSession | None = None
        self._tokenizer: LocalTokenizer | None = None

    @property
    def space(self) -> EmbeddingSpace:
        return SPACE

    @property
    def max_tokens(self) -> int:
        return MAX_TOKENS

    @property
    def tokenizer(self) -> LocalTokenizer:
        """Raises ModelUnavailable where the model's files are not on this machine."""
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = LocalTokenizer(find_weights(self._folder))
            return self._tokenizer

    async def warm(self) -> None:
        """Load now what the first text would wait for."""
        await asyncio.to_thread(self._embed_query, "")

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of document texts, shape (len(texts), 384).

        Raises BadInput for a text of more than `max_tokens` tokens, ModelUnavailable.
        """
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)
        if not texts:
            return vectors
        run = asyncio.get_running_loop().run_in_executor
        token_ids = await run(self._pool, self._checked_ids, texts)
        # Longest first, and each thread takes the next one: all end at about the same time,
        # however busy their cores are with something else.
        order = iter(sorted(range(len(texts)), key=lambda index: -len(token_ids[index])))
        stop = threading.Event()
        shares = [
            run(self._pool, self._embed_some, token_ids, order, vectors, stop)
            for _ in range(min(self._threads, len(texts)))
        ]
        try:
            await asyncio.gather(*shares)
        finally:
            stop.set()
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """Unit vector of a query, shape (384,); a longer query keeps its first tokens.

        Raises ModelUnavailable.
        """
        return await asyncio.to_thread(self._embed_query, text)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._threads, thread_name_prefix="embed")

    def _session(self) -> "onnxruntime.InferenceSession":
        with self._lock:
            if self._loaded is None:
                self._loaded = open_session(find_weights(self._folder), self._home)
            return self._loaded

    def _checked_ids(self, texts: Sequence[str]) -> list[list[int]]:
        token_ids = self.tokenizer.ids(texts)
        for index, ids in enumerate(token_ids):
            if len(ids) > MAX_TOKENS:
                raise BadInput(
                    f"text {index + 1} of {len(texts)} has {len(ids)} tokens; "
                    f"one vector of {MODEL} covers {MAX_TOKENS}"
                )
        return token_ids

    def _embed_some(
        self,
        token_ids: list[list[int]],
        order: Iterator[int],
        vectors: NDArray[np.float32],
        stop: threading.Event,
    ) -> None:
        session = self._session()
        for index in order:
            if stop.is_set():
                return
            vectors[index] = _run(session, token_ids[index])

    def _embed_query(self, text: str) -> Vector:
        [ids] = self.tokenizer.ids([text])
        return _run(self._session(), ids[:MAX_TOKENS])


def physical_cores() -> int:
    """Cores this process may use, not counting hyper-threads: they add nothing to matrix work."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            cores.add(siblings.read_text())
        except OSError:
            cores.add(str(cpu))
    return max(1, min(len(cores), _container_cores()))


def _container_cores() -> int:
    """What the control group of a container allows; a large number where it does not say."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return int(quota) // int(period)
    except (OSError, ValueError):  # ValueError: the quota is "max"
        return 1 << 16


def _run(session: "onnxruntime.InferenceSession", ids: list[int]) -> Vector:
    [vectors] = session.run(None, {"ids": np.array([[START, *ids, END]], np.int64)})
    vector: Vector = vectors[0]
    return vector
