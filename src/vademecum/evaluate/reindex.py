"""Collections made anew, with another embedder if one is named, while they are searched."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from vademecum.access import require
from vademecum.embedders import Embedders
from vademecum.errors import BadInput, ModelUnavailable
from vademecum.evaluate.gold import Question
from vademecum.evaluate.move import Judges, Move, Moves
from vademecum.ingest.facade import IngestCalls
from vademecum.ingest.report import QUIET, IngestReport, Listener
from vademecum.store import embeddings
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.types import CollectionId, EmbeddingSpace

SEARCH_SECONDS = 1.0
"""A search that began before a collection moved to other vectors is over after so long."""


class MoveCalls:
    """`app.moves`."""

    def __init__(
        self,
        database: Database,
        *,
        collection: Callable[[str], Awaitable[Collection]],
        embedders: Embedders,
        ingest: IngestCalls,
        follow: Callable[[Collection, EmbeddingSpace], Awaitable[None]],
        feed: Callable[[CollectionId], Awaitable[None]],
    ) -> None:
        """Mirrors are to `follow` a collection to other vectors; `feed` tells them what changed."""
        self._database = database
        self._collection = collection
        self._embedders = embedders
        self._ingest = ingest
        self._follow = follow
        self._feed = feed
        self._moves = Moves(database, collection=collection, embedder=embedders.named)

    async def shown(self, collection: str) -> Move | None:
        """The last move of a collection; None where it never moved. Raises UnknownCollection."""
        return await self._moves.shown(collection)

    async def reindex(
        self,
        collection: str,
        *,
        embedder: str | None = None,
        questions: Sequence[Question] | None = None,
        unchecked: bool = False,
        wait: bool = True,
        listener: Listener = QUIET,
    ) -> IngestReport:
        """Purge and make anew all chunks and vectors of a collection, with another model if one is
        named. Searches go on: each document is replaced in one step, and vectors of another model
        are filled in beside the present ones, which serve until all documents have theirs and the
        new ones answer as well on `questions`, or else on logged searches; `unchecked` is without
        that. Without `wait` it is left to who works off the queue.

        Raises BadInput, ModelUnavailable, UnknownCollection, BadSetting; then nothing was changed.
        """
        require("write", collection)
        target = await self._collection(collection)
        wanted = embedder or target.next_embedder or target.embedder
        if (model := self._embedders.named(wanted)) is not None:
            model.tokenizer.counts([""])
        if model is not None and wanted != target.embedder:
            judges = await self._moves.judges(target, questions, unchecked=unchecked)
        elif questions is not None:
            raise BadInput("there is nothing to compare: the embedder stays the same")
        else:
            judges = Judges(judged_by="nobody", questions=())
        space = model.space if model else None
        if space is not None:
            await self._follow(target, space)

        async def start(connection: Connection) -> None:
            await self._moves.start(connection, target, wanted, space, judges)

        report = await self._ingest.make_anew(target, start, wait=wait, listener=listener)
        if wait:
            await self._tidy(target, listener)
        return report

    async def compare(self, collection: str, questions: Sequence[Question] | None = None) -> Move:
        """Judge a move once more, on other questions if some are given, and swap if it is good.

        Raises UnknownCollection, BadInput, ModelUnavailable.
        """
        target = await self._collection(collection)
        move = await self._moves.compare_again(collection, questions)
        return await self._settled(target, move)

    async def accept(self, collection: str) -> Move:
        """Have a collection searched with the embedder it moves to, whatever the verdict.

        Raises UnknownCollection, BadInput.
        """
        target = await self._collection(collection)
        return await self._settled(target, await self._moves.accept(collection))

    async def abandon(
        self, collection: str, *, wait: bool = True, listener: Listener = QUIET
    ) -> IngestReport:
        """Have a collection stay with its embedder; what the other one made is purged.

        Raises UnknownCollection, BadInput.
        """
        await self._moves.abandon(collection)
        return await self._ingest.rebuild(collection, wait=wait, listener=listener)

    async def judge(self, collection: CollectionId | None, notice: Callable[[str], None]) -> None:
        """Judge those that are filled, of one collection or all, where their models are there."""
        try:
            await self.judge_if_due(collection, notice=notice)
        except ModelUnavailable as error:
            notice(f"{error}: the move to another embedder is judged later")

    async def judge_if_due(
        self, collection: CollectionId | None = None, *, notice: Callable[[str], None]
    ) -> None:
        """Raises ModelUnavailable where an embedder is away: it is judged later."""
        await self._moves.judge_if_due(collection, notice=notice)

    async def _settled(self, target: Collection, move: Move) -> Move:
        await self._feed(target.id)
        await self._tidy(target, QUIET)
        return move

    async def _tidy(self, target: Collection, listener: Listener) -> None:
        """What there is to say and to tidy up after a collection may have moved."""
        now = await self._collection(target.name)
        move = await self.shown(target.name)
        if now.next_embedder is not None and (move is None or not move.filled):
            listener.notice(
                f"{now.name} is still searched with {now.embedder}: not all of it is embedded"
                f" with {now.next_embedder} yet."
            )
        if target.space_id not in (now.space_id, None):
            await asyncio.sleep(SEARCH_SECONDS)
            async with self._database.connection() as connection:
                await embeddings.purge_left(connection)
