"""What embedders behind an HTTP server share: lengths minded, batches, tries, and halves.

Nothing is cut: a server's own way with a text that is too long is to drop its end, or to refuse it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import httpx
import numpy as np
from numpy.typing import NDArray

from vademecum.errors import BadInput, EmbedderUnreachable, ModelUnavailable
from vademecum.inference.bound import ByteTokenizer
from vademecum.inference.embedder import EmbeddingSpace, Tokenizer
from vademecum.inference.prefixes import family
from vademecum.inference.weights import find_weights
from vademecum.inference.wordpiece import LocalTokenizer
from vademecum.types import Vector

BERT_UNCASED = {"nomic-embed-text", "all-minilm", "mxbai-embed-large", "snowflake-arctic-embed"}
"""Models with the vocabulary of bert-base-uncased, which the local model's package holds."""

TRIES = 4
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 60.0
"""However long the server asks to be left alone."""
LOOK_AGAIN_SECONDS = 5
LEAST_HALF = 64
"""Characters of a text that is not halved any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a served model."""

    space: EmbeddingSpace
    max_tokens: int
    tokenizer: Tokenizer


class TooLong(Exception):
    """The server counts more tokens than it reads at once."""


class Passing(Exception):
    """What another try may mend. `wait` is how many seconds the server asks for, if it does."""

    def __init__(self, failure: EmbedderUnreachable, *, wait: float | None = None) -> None:
        self.failure, self.wait = failure, wait
        super().__init__(str(failure))


class ServedEmbedder:
    """The Embedder of a server, which is first asked when something is needed.

    Everything raises EmbedderUnreachable while the server does not answer, and ModelUnavailable
    where it lacks the model or does not let us in.
    """

    batch_texts = 32
    """Texts of one request."""
    batch_tokens: int | None = None
    """Tokens of one request, by the tokenizer's count."""
    requests = 1
    """Requests under way at a time."""

    def __init__(self, model: str, *, url: str) -> None:
        self.model, self.url = model, url.rstrip("/")
        self._known: Facts | None = None
        self._failed: tuple[float, ModelUnavailable] | None = None

    def look(self) -> Facts:
        """Ask the server about its model. Raises EmbedderUnreachable, ModelUnavailable."""
        raise NotImplementedError

    async def ask(self, client: httpx.AsyncClient, inputs: list[str]) -> NDArray[np.float32]:
        """The vectors of one request as they come, shape (len(inputs), any).

        Raises TooLong, Passing, and BadInput for a text that the server refuses.
        """
        raise NotImplementedError

    def client(self) -> httpx.AsyncClient:
        # The first text may wait until the server has loaded its model.
        timeout = httpx.Timeout(300, connect=5)
        return httpx.AsyncClient(base_url=self.url, timeout=timeout, trust_env=False)

    @property
    def space(self) -> EmbeddingSpace:
        return self._facts().space

    @property
    def max_tokens(self) -> int:
        return self._facts().max_tokens

    @property
    def tokenizer(self) -> Tokenizer:
        """Exact for models with BERT's vocabulary where that is here, else an upper bound."""
        return self._facts().tokenizer

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of document texts, shape (len(texts), dimensions).

        Raises BadInput for a text longer than `max_tokens`, EmbedderUnreachable, ModelUnavailable.
        """
        space = self.space
        counts = self.tokenizer.counts(texts)
        for index, tokens in enumerate(counts):
            if tokens > self.max_tokens:
                raise BadInput(
                    f"text {index + 1} of {len(texts)} has up to {tokens} tokens; "
                    f"one vector of {self.model} covers {self.max_tokens}"
                )
        vectors = np.empty((len(texts), space.dimensions), np.float32)
        free = asyncio.Semaphore(self.requests)
        prefix_tokens = self.tokenizer.counts([space.document_prefix])[0]
        async with self.client() as client:

            async def fill(first: int, last: int) -> None:
                async with free:
                    batch = [space.document_prefix + text for text in texts[first:last]]
                    vectors[first:last] = await self._batch(client, batch)

            await _together(
                fill(first, last)
                for first, last in self._batches([count + prefix_tokens for count in counts])
            )
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """Unit vector of a query, shape (dimensions,); a longer query keeps its first tokens."""
        space = self.space
        starts = self.tokenizer.starts(text)
        if len(starts) > self.max_tokens:
            text = text[: starts[self.max_tokens]]
        async with self.client() as client:
            [vector] = await self._batch(client, [space.query_prefix + text])
        return np.asarray(vector, np.float32)

    def _batches(self, counts: Sequence[int]) -> Iterator[tuple[int, int]]:
        """First and last of the texts that go into each request."""
        first = tokens = 0
        for index, count in enumerate(counts):
            full = index - first == self.batch_texts
            heavy = self.batch_tokens is not None and tokens + count > self.batch_tokens
            if index > first and (full or heavy):
                yield first, index
                first, tokens = index, 0
            tokens += count
        if first < len(counts):
            yield first, len(counts)

    async def _batch(self, client: httpx.AsyncClient, inputs: list[str]) -> NDArray[np.float32]:
        """All at once; where the server refuses that, one by one, so that one text fails alone."""
        try:
            return self._checked(await self._again(lambda: self.ask(client, inputs)), len(inputs))
        except BadInput:
            if len(inputs) > 1:
                return np.concatenate([await self._batch(client, [text]) for text in inputs])
            raise
        except TooLong as error:
            if len(inputs) > 1:
                return np.concatenate([await self._batch(client, [text]) for text in inputs])
            return await self._halves(client, inputs[0], error)

    async def _halves(
        self, client: httpx.AsyncClient, text: str, error: TooLong
    ) -> NDArray[np.float32]:
        """The mean of both halves' vectors: the server counts otherwise, and nothing is dropped."""
        both = (self.space.document_prefix, self.space.query_prefix)
        prefix = next((known for known in both if known and text.startswith(known)), "")
        body = text.removeprefix(prefix)
        if len(body) < LEAST_HALF:
            raise BadInput(f"{self.model} refuses a text of {len(body)} characters: {error}")
        middle = body.rfind(" ", 1, len(body) // 2) + 1 or len(body) // 2
        halves = [prefix + body[:middle], prefix + body[middle:]]
        parts = np.concatenate([await self._batch(client, [half]) for half in halves])
        return _units(parts.sum(axis=0, keepdims=True))

    def _checked(self, vectors: NDArray[np.float32], texts: int) -> NDArray[np.float32]:
        if vectors.shape != (texts, self.space.dimensions):
            raise ModelUnavailable(
                f"{self.model} made vectors of shape {vectors.shape}, "
                f"not {(texts, self.space.dimensions)}",
                hint="Another model has taken its name: restart, and rebuild the collection.",
            )
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise BadInput(f"{self.model} made a vector that cannot be used")
        return _units(vectors)

    async def _again(
        self, request: Callable[[], Awaitable[NDArray[np.float32]]]
    ) -> NDArray[np.float32]:
        for attempt in range(TRIES):
            try:
                return await request()
            except Passing as error:
                if attempt == TRIES - 1:
                    raise error.failure from None
                wait = error.wait if error.wait is not None else FIRST_WAIT_SECONDS * 2**attempt
            await asyncio.sleep(min(wait, LONGEST_WAIT_SECONDS))
        raise AssertionError("unreachable")

    def _facts(self) -> Facts:
        if self._known is None:
            if self._failed is not None and time.monotonic() < self._failed[0]:
                raise self._failed[1]
            try:
                self._known = self.look()
            except ModelUnavailable as error:
                self._failed = (time.monotonic() + LOOK_AGAIN_SECONDS, error)
                raise
        return self._known


def tokenizer_for(model: str) -> Tokenizer:
    """The model's own where that is on this machine, else an upper bound."""
    if family(model) in BERT_UNCASED:
        try:
            return LocalTokenizer(find_weights())
        except ModelUnavailable:
            pass
    return ByteTokenizer()


async def _together(work: Iterator[Awaitable[None]]) -> None:
    """All at once; the first failure ends the others and is raised as it is."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    units: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units
