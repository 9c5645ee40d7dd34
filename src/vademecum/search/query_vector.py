"""The vector of a query, begun before its collection is looked up.

A collection seldom changes its embedder: the one of its last search is at work meanwhile, and what
it makes is thrown away where the collection has another one now.
"""

import asyncio
from asyncio import Task
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from vademecum.inference.embedder import Embedder
from vademecum.telemetry.spans import span
from vademecum.types import Query, Vector


class QueryVectors:
    """What one process knows of the embedders of collections."""

    def __init__(self) -> None:
        self._last: dict[str, Embedder] = {}

    @contextmanager
    def of(self, query: Query) -> Iterator["QueryVector"]:
        """The vector of a query while it is searched for, by somebody who may."""
        guess = None if query.mode == "lexical" else self._last.get(query.collection)
        with QueryVector(query.text) as vector:
            if guess is not None:
                vector.begin(guess)
            yield vector
        if vector.embedder is not None:
            self._last[query.collection] = vector.embedder
        elif guess is not None:
            self._last.pop(query.collection, None)


class QueryVector:
    """Of one query, by one embedder at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begun: Embedder | None = None
        self._task: Task[Vector] | None = None
        self.embedder: Embedder | None = None
        """Whose vector was asked for."""

    def by(self, embedder: Embedder) -> Task[Vector]:
        """The vector that this embedder makes; it may fail with ModelUnavailable."""
        self.embedder = embedder
        return self.begin(embedder)

    def begin(self, embedder: Embedder) -> Task[Vector]:
        """The same, by whom may turn out to be the wrong one."""
        if self._task is None or embedder is not self._begun:
            self._drop()
            self._begun = embedder
            self._task = asyncio.create_task(_embedded(embedder, self._text))
        return self._task

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._drop()

    def _drop(self) -> None:
        """Nobody waits for it any more, nor asks why it failed."""
        if self._task is not None:
            self._task.cancel()


async def _embedded(embedder: Embedder, text: str) -> Vector:
    provider, _, model = embedder.space.model.partition(":")
    with span("embed", provider, model=model, chunk_count=1) as traced:
        vector = await embedder.embed_query(text)
        if traced.recording:
            traced.set(
                tokens_processed=min(*embedder.tokenizer.counts([text]), embedder.max_tokens)
            )
    return vector
