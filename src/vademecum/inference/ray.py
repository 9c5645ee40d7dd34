"""Embedding on the machines of a Ray cluster: the same vectors, made by one process for each CPU.

    [text] --length checked here--> shards --actors--> vectors, in the order of the texts

Only models that compute where they are opened are worth it: texts go to the cluster and vectors
come back, keys and the database stay here. An actor that dies with its machine is started
elsewhere, and what it had in hand is embedded again.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vademecum.errors import BadInput, BadSetting, MissingExtra, ModelUnavailable
from vademecum.inference.embedder import Embedder, EmbeddingSpace, Tokenizer
from vademecum.inference.open import open_embedder
from vademecum.types import Vector

HINT = "`ray start --head` begins one; name it by --ray-address HOST:6379."
CONNECT_SECONDS = 5.0
PROVIDERS = ("local", "fastembed")
SHARD = 32
"""Texts sent to an actor at once: a fraction of a second of work."""


class RayCluster:
    """A connected cluster; use `opened`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._embedders: dict[str, RayEmbedder] = {}

    @classmethod
    @asynccontextmanager
    async def opened(cls, address: str | None, *, home: Path) -> AsyncIterator["RayCluster"]:
        """Connect to `address`, else to RAY_ADDRESS, else begin one on this machine.

        Raises MissingExtra, BadSetting where no cluster answers.
        """
        # Ray would report its use to its makers, and pack this folder for its workers under uv.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        try:
            import ray
        except ImportError:
            raise MissingExtra("ray") from None
        address = address or os.environ.get("RAY_ADDRESS") or None
        if address is not None:
            await _answers(address)
        try:
            await asyncio.to_thread(
                ray.init,
                address=address,
                log_to_driver=False,
                logging_level="ERROR",
                include_dashboard=None if address else False,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise BadSetting(
                f"no Ray cluster at {address or 'this machine'}: {str(error).splitlines()[0]}",
                hint=HINT,
            ) from None
        try:
            yield cls(home)
        finally:
            await asyncio.to_thread(ray.shutdown)

    def embedder(self, setting: str, here: Embedder) -> Embedder:
        """The embedder of a setting, its documents embedded on the cluster.

        Raises BadSetting for one that is a server already.
        """
        if setting.partition(":")[0] not in PROVIDERS:
            raise BadSetting(
                f"{setting} is a server, which Ray makes no faster",
                hint=f"Ray is for {' and '.join(PROVIDERS)}; leave --engine out.",
            )
        if setting not in self._embedders:
            self._embedders[setting] = RayEmbedder(setting, here, self._home)
        return self._embedders[setting]


async def _answers(address: str) -> None:
    """Raises BadSetting where nothing listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        if address in ("auto", "local"):  # Ray's own words
            return
        raise BadSetting(f"{address!r} is no address of a Ray cluster", hint=HINT)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
    except (OSError, OverflowError, TimeoutError) as error:
        raise BadSetting(
            f"no Ray cluster at {address}: {str(error) or 'no answer'}", hint=HINT
        ) from None


class RayEmbedder:
    """The Embedder of a cluster. Tokens are counted, and queries embedded, on this machine."""

    def __init__(self, setting: str, here: Embedder, home: Path) -> None:
        self._setting, self._here, self._home = setting, here, home
        self._free: asyncio.Queue[Any] | None = None

    @property
    def space(self) -> EmbeddingSpace:
        return self._here.space

    @property
    def tokenizer(self) -> Tokenizer:
        return self._here.tokenizer

    @property
    def max_tokens(self) -> int:
        return self._here.max_tokens

    async def embed_query(self, text: str) -> Vector:
        return await self._here.embed_query(text)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (len(texts), dimensions). Raises BadInput, ModelUnavailable."""
        counts = await asyncio.to_thread(self.tokenizer.counts, texts)
        if (longest := max(counts, default=0)) > self.max_tokens:
            index = counts.index(longest)
            raise BadInput(
                f"text {index + 1} of {len(texts)} has {longest} tokens; one vector of"
                f" {self._setting} covers {self.max_tokens}"
            )
        if self._free is None:
            self._free = self._actors()
        free = self._free
        vectors = np.empty((len(texts), self.space.dimensions), np.float32)
        # Texts of like length together: shards then take about as long as each other.
        order = sorted(range(len(texts)), key=lambda index: -counts[index])

        async def fill(shard: Sequence[int]) -> None:
            actor = await free.get()
            try:
                vectors[shard] = await actor.embed.remote([texts[index] for index in shard])
            finally:
                free.put_nowait(actor)

        from ray.exceptions import RayError

        try:
            async with asyncio.TaskGroup() as group:
                for first in range(0, len(order), SHARD):
                    group.create_task(fill(order[first : first + SHARD]))
        except* RayError as errors:
            raise ModelUnavailable(
                f"the Ray cluster could not embed: {str(errors.exceptions[0]).splitlines()[-1]}",
                hint="Its machines need the same version of Vademecum, and the model's files.",
            ) from None
        return vectors

    def _actors(self) -> "asyncio.Queue[Any]":
        """An actor for each CPU of the cluster."""
        import ray

        remote = ray.remote(
            num_cpus=1, scheduling_strategy="SPREAD", max_restarts=-1, max_task_retries=-1
        )(_Actor)
        queue: asyncio.Queue[Any] = asyncio.Queue()
        for _ in range(max(1, int(ray.cluster_resources().get("CPU", 1)))):
            queue.put_nowait(remote.remote(self._setting, str(self._home)))
        return queue


class _Actor:
    """Embeds on one CPU of one machine."""

    def __init__(self, setting: str, home: str) -> None:
        place = Path(home)
        if not place.is_dir():  # another machine
            place = Path(tempfile.gettempdir()) / "vademecum-ray"
        embedder = open_embedder(setting, home=place, threads=1)
        assert embedder is not None
        self._embedder = embedder

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        return asyncio.run(self._embedder.embed(texts))
