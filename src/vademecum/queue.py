"""The queue of documents, worked off with the embedders and models that there are.

jobs --Worker--> searchable --settle--> moves judged, mirrors told
"""

from collections.abc import Awaitable, Callable

from vademecum.embedders import Embedders
from vademecum.errors import VadeError
from vademecum.ingest.cost import budget_of, check_cost
from vademecum.ingest.knowledge_base import KnowledgeBases
from vademecum.ingest.overlap import NONE_COMING, Coming
from vademecum.ingest.prepare import recipe
from vademecum.ingest.report import QUIET, Listener, Progress
from vademecum.models import Models
from vademecum.profiles.profile import load_profile
from vademecum.store import jobs
from vademecum.store.collections import Collection
from vademecum.store.db import Database
from vademecum.types import CollectionId
from vademecum.worker import Worker

Settle = Callable[[CollectionId | None, Callable[[str], None]], Awaitable[None]]


class Queue:
    def __init__(
        self,
        database: Database,
        *,
        embedders: Embedders,
        models: Models,
        knowledge_bases: KnowledgeBases,
        settle: Settle,
    ) -> None:
        """`settle` is what is due of a collection, or all, once its documents are searchable."""
        self._database = database
        self._embedders = embedders
        self._models = models
        self._knowledge_bases = knowledge_bases
        self._settle = settle

    def worker(self, target: Collection | None, listener: Listener) -> Worker:
        """For one collection, or all."""
        return Worker(
            self._database,
            self._embedders.for_documents,
            collection=target.id if target else None,
            notice=listener.notice,
            progress=listener.worked,
            stepped=lambda collection: self._knowledge_bases.show(collection, listener.notice),
            writer=self._models.meant_for("summary"),
        )

    def recipe(self, target: Collection, listener: Listener) -> str:
        """What chunks of the collection are made by now."""
        embedder = self.worker(None, listener).embedder(target.next_embedder or target.embedder)
        return recipe(load_profile(target.profile, target.declaration), embedder)

    async def drain(
        self,
        target: Collection | None,
        listener: Listener,
        *,
        limit: int | None = None,
        coming: Coming = NONE_COMING,
    ) -> Progress:
        """Work until nothing is left of one collection or all, nor `coming`, or `limit` jobs are
        done.

        Raises CostCapReached.
        """
        collection = target.id if target else None
        await check_cost(self._database, self._embedders.named, collection, listener.notice)
        worker = self.worker(target, listener)
        try:
            progress = await worker.drain(limit=limit, coming=coming)
            await self._settle(collection, listener.notice)
            return progress
        finally:
            for one in worker.touched:
                await self._knowledge_bases.show(one, listener.notice, last=True)

    def is_priced(self, target: Collection) -> bool:
        """Whether it costs money to make documents of the collection searchable."""
        return any(
            setting is not None and budget_of(self._embedders.named, setting) is not None
            for setting in (target.embedder, target.next_embedder)
        )

    async def make_searchable(self, target: Collection) -> bool:
        """Work off what waits in a collection; whether all of it is searchable then."""
        try:
            await self.drain(target, QUIET)
        except VadeError:  # a worker comes back to it
            return False
        async with self._database.connection() as connection:
            left = await jobs.open_jobs(connection, target.id)
        return not (left.pending or left.processing)
