"""Mirrors: collections whose vectors are also in Qdrant or Pinecone, and searched there.

PostgreSQL stays the truth. What changes in it is noted by triggers in the same transaction, and
told to the store from here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from vademecum.access import require
from vademecum.errors import BadInput, BadSetting, ModelUnavailable, NoVectors, VadeError
from vademecum.evaluate.gold import Question
from vademecum.inference.embedder import Embedder
from vademecum.mirror.promote import LEAST_RECALL, Promotion, Shadow, ndcg, shadow
from vademecum.mirror.verify import Verification, difference, postgresql
from vademecum.profiles.profile import load_profile
from vademecum.search import pipeline as searching
from vademecum.search.query_vector import QueryVector
from vademecum.settings import Settings
from vademecum.store import chunks, documents, embeddings, jobs, mirrors
from vademecum.store.collections import Collection
from vademecum.store.db import Database
from vademecum.store.mirrors import MirrorId, MirrorRow, Waiting
from vademecum.types import ChunkId, CollectionId, DocumentId, EmbeddingSpace, Hit, Query
from vademecum.vectors.fallback import Away, Fallback
from vademecum.vectors.feed import feed
from vademecum.vectors.index import Mirror, Nearest
from vademecum.vectors.open import STORES, Stores
from vademecum.vectors.pgvector import PgvectorIndex

Notice = Callable[[str], None]
Fed = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorState:
    """Where a collection's vectors are, beside PostgreSQL."""

    store: str
    place: str
    tenant: str
    state: str
    waiting: int
    """Chunks that it has yet to be told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild of an index did."""

    collection: str
    store: str
    repaired: int
    """Chunks that the store was told of again; of PostgreSQL, documents that wait to be."""


class MirrorCalls:
    """What can be done with vector indexes."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        collection: Callable[[str], Awaitable[Collection]],
        embedder: Callable[[Collection], Embedder | None],
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._collection = collection
        self._stores = Stores(settings)
        self._rows: dict[MirrorId, MirrorRow] = {}
        self._prepared: dict[MirrorId, str] = {}
        self._away: dict[str, Away] = {}

    async def close(self) -> None:
        await self._stores.close()

    # --- search -----------------------------------------------------------------------------

    async def index_for(self, target: Collection) -> Fallback | None:
        """Where the collection is searched; None for PostgreSQL itself."""
        if target.mirror_id is None or target.space_id is None:
            return None
        row = await self._row(MirrorId(target.mirror_id))
        if row is None:
            return None

        async def open_mirror() -> Mirror:
            # In a thread: the first time, the store's client is imported, which takes a second.
            return await asyncio.to_thread(self._stores.mirror, row)

        async def known(ids: Sequence[ChunkId]) -> Mapping[ChunkId, DocumentId]:
            async with self._database.connection() as connection:
                return await chunks.documents_of(connection, target.id, ids)

        return Fallback(
            open_mirror,
            PgvectorIndex(self._database, space=target.space_id, collection=target.id),
            self._away.setdefault(row.store, Away()),
            known=known,
            unfiltered=_unfiltered(target) if row.store == "pinecone" else frozenset(),
        )

    async def _row(self, number: MirrorId) -> MirrorRow | None:
        if number not in self._rows:
            async with self._database.connection() as connection:
                for row in await mirrors.of_collection(connection):
                    self._rows[row.id] = row
        return self._rows.get(number)

    # --- feeding ----------------------------------------------------------------------------

    async def feed(
        self,
        collection: CollectionId | None = None,
        *,
        notice: Notice = lambda text: None,
        progress: Fed = lambda chunks: None,
    ) -> None:
        """Tell mirrors what changed: of one collection, or all. One that is away is told later,
        and `notice` says so."""
        async with self._database.connection() as connection:
            due = await mirrors.to_feed(connection, collection)
        for row in due:
            try:
                await self.feed_one(row, progress)
            except VadeError as error:
                notice(f"{error}: what {row.store} has not been told of waits")
        if due:
            async with self._database.connection() as connection:
                await mirrors.take_over(connection)

    async def feed_if_due(self) -> None:
        """A look for what mirrors have yet to be told; raises VectorStoreUnavailable."""
        async with self._database.connection() as connection:
            due = await mirrors.to_feed(connection, None)
        for row in due:
            await self.feed_one(row)
        if due:
            async with self._database.connection() as connection:
                await mirrors.take_over(connection)

    async def feed_one(self, row: MirrorRow, progress: Fed = lambda chunks: None) -> int:
        """Raises VectorStoreUnavailable, BadSetting, MissingExtra."""
        mirror = self._stores.mirror(row)
        if row.state == "leaving":
            await mirror.leave()
            async with self._database.connection() as connection:
                await mirrors.delete(connection, row)
            return 0
        await self.prepare(row, mirror)
        return await feed(self._database, row, mirror, progress)

    async def prepare(self, row: MirrorRow, mirror: Mirror, *, anew: bool = False) -> None:
        """Have the place of the mirror ready, with an index for each facet of the profile."""
        async with self._database.connection() as connection:
            found = await mirrors.profile_of(connection, row.collection_id)
        if found is None:
            return
        profile = load_profile(*found)
        if anew or self._prepared.get(row.id) != profile.digest:
            await mirror.prepare(profile.facets)
            self._prepared[row.id] = profile.digest

    async def waiting(self, collection: CollectionId | None = None) -> Waiting:
        """What mirrors that serve have yet to be told."""
        async with self._database.connection() as connection:
            return await mirrors.waiting(connection, collection)

    # --- new spaces -------------------------------------------------------------------------

    async def follow(self, target: Collection, wanted: EmbeddingSpace) -> None:
        """Before documents are embedded with another model: mirror that too, and let it serve
        once the collection has moved to it."""
        async with self._database.connection() as connection:
            if target.mirror_id is None:
                return
            space = await embeddings.space_id(connection, wanted)
        async with self._database.transaction() as connection:
            for row in await mirrors.of_collection(connection, target.id):
                if row.state == "serving" and row.space_id != space:
                    await mirrors.create(
                        connection,
                        target.id,
                        space,
                        store=row.store,
                        tenant=row.tenant,
                        follows=True,
                    )

    # --- verify and rebuild -----------------------------------------------------------------

    async def states(self, name: str) -> list[MirrorState]:
        """Raises UnknownCollection."""
        target = await self._collection(name)
        async with self._database.connection() as connection:
            rows = await mirrors.of_collection(connection, target.id)
            counts = await mirrors.changes_by_mirror(connection, [row.id for row in rows])
        return [
            MirrorState(
                store=row.store,
                place=row.place,
                tenant=row.tenant,
                state=row.state,
                waiting=counts.get(row.id, 0),
            )
            for row in rows
        ]

    async def verify(self, name: str, store: str | None = None) -> list[Verification]:
        """Compare each index of a collection, or one, with what PostgreSQL holds.

        Raises UnknownCollection, VectorStoreUnavailable, BadInput.
        """
        target = await self._collection(name)
        found = []
        if store in (None, "pgvector"):
            found.append(await postgresql(self._database, target))
        for row in await self._mirrors_of(target, store):
            found.append(await difference(self._database, target, row, self._stores.mirror(row)))
        return found

    async def rebuild(
        self,
        name: str,
        store: str | None = None,
        *,
        everything: bool = False,
        progress: Fed = lambda chunks: None,
    ) -> list[Rebuilt]:
        """Repair what `verify` finds; with `everything`, fill each index anew.

        Raises UnknownCollection, VectorStoreUnavailable, BadInput.
        """
        require("admin", name)
        target = await self._collection(name)
        done = []
        if store in (None, "pgvector"):
            done.append(await self._rebuild_postgresql(target, everything=everything))
        for row in await self._mirrors_of(target, store):
            mirror = self._stores.mirror(row)
            await self.prepare(row, mirror, anew=True)
            if everything:
                await mirror.leave()
            wrong = await difference(self._database, target, row, mirror)
            async with self._database.transaction() as connection:
                await mirrors.note(connection, row, wrong.chunks)
            await self.feed_one(row, progress)
            done.append(Rebuilt(collection=name, store=row.store, repaired=len(set(wrong.chunks))))
        async with self._database.connection() as connection:
            await mirrors.take_over(connection)
        return done

    async def _rebuild_postgresql(self, target: Collection, *, everything: bool) -> Rebuilt:
        """Documents whose vectors are not whole are embedded again by who works off the queue."""
        broken = (await postgresql(self._database, target)).documents
        async with self._database.transaction() as connection:
            await documents.forget_recipe(connection, broken)
            await jobs.enqueue(connection, broken)
        if target.space_id is not None:
            async with self._database.connection() as connection:
                if everything:
                    await embeddings.drop_index(connection, target.space_id)
                await embeddings.build_index(connection, target.space_id)
        return Rebuilt(collection=target.name, store="pgvector", repaired=len(broken))

    async def _mirrors_of(self, target: Collection, store: str | None) -> list[MirrorRow]:
        async with self._database.connection() as connection:
            rows = await mirrors.of_collection(connection, target.id)
        if store not in (None, "pgvector", *STORES):
            raise BadSetting(
                f"there is no vector store {store!r}",
                hint=f"Stores: pgvector, {', '.join(STORES)}.",
            )
        present = [row for row in rows if row.state != "leaving"]
        if store in (None, "pgvector"):
            return present if store is None else []
        chosen = [row for row in present if row.store == store]
        if not chosen:
            raise BadInput(
                f"{target.name} is not in {store}",
                hint=f"`vade promote -c {target.name} --to {store}` puts it there.",
            )
        return chosen

    # --- promote ----------------------------------------------------------------------------

    async def promote(
        self,
        name: str,
        store: str,
        *,
        questions: Sequence[Question] = (),
        queries: int = 100,
        least_recall: float = LEAST_RECALL,
        notice: Notice = lambda text: None,
        progress: Fed = lambda chunks: None,
    ) -> Promotion:
        """Fill a store with the vectors of a collection, and search it there once it answers as
        well. Searches go on in the meantime, and after it.

        Compared on `questions`, or else on what was searched for and read, and headings. `pgvector`
        is where every collection begins, and may return to at once. Raises BadInput, BadSetting,
        MissingExtra, ModelUnavailable, VectorStoreUnavailable.
        """
        require("admin", name)
        target = await self._collection(name)
        if target.space_id is None:
            raise NoVectors(name)
        if store == "pgvector":
            async with self._database.connection() as connection:
                await mirrors.serve_from_postgresql(connection, target.id, target.space_id)
            return Promotion(
                collection=name, store=store, told=0, shadow=None, switched=True, reason=""
            )
        embedder = self._embedder(target)
        if embedder is None:
            raise ModelUnavailable(f"{name} has no embedder to compare answers with")
        self._stores.check(store)
        async with self._database.transaction() as connection:
            row = await mirrors.create(
                connection, target.id, target.space_id, store=store, tenant=target.name
            )
        told = await self.feed_one(row, progress)
        seen = await self._shadow(target, row, embedder, questions, queries)
        told += await self.feed_one(row, progress)  # what changed meanwhile
        good = seen.good(least_recall)
        if good:
            async with self._database.connection() as connection:
                await mirrors.serve(connection, row)
        else:
            notice(f"{name} is still searched where it was")
        reason = "" if good else "its answers are not as good as they must be"
        return Promotion(
            collection=name, store=store, told=told, shadow=seen, switched=good, reason=reason
        )

    async def _shadow(
        self,
        target: Collection,
        row: MirrorRow,
        embedder: Embedder,
        questions: Sequence[Question],
        queries: int,
    ) -> Shadow:
        assert target.space_id is not None
        postgresql = PgvectorIndex(self._database, space=target.space_id, collection=target.id)
        now: Nearest = await self.index_for(target) or postgresql
        then = self._stores.mirror(row)
        texts = [question.query for question in questions]
        if not texts:
            async with self._database.connection() as connection:
                texts = await mirrors.sample_queries(connection, target.id, queries)
        if not texts:
            raise BadInput(f"{target.name} holds nothing to compare answers with")
        seen = await shadow(texts, embedder, truth=postgresql, now=now, then=then)
        if not questions:
            return seen

        kept = searching.Kept()

        async def search(query: Query, index: Nearest | None) -> Sequence[Hit]:
            with QueryVector(query.text) as vector:
                embedding = vector.by(embedder)
                return await searching.search(self._database, target, embedding, query, kept, index)

        return replace(
            seen,
            ndcg_now=await ndcg(questions, search, now, collection=target.name),
            ndcg_then=await ndcg(questions, search, then, collection=target.name),
        )

    async def drop(self, name: str, store: str) -> None:
        """Have a store forget a collection, which is searched in PostgreSQL from now on.

        Raises UnknownCollection, BadInput; VectorStoreUnavailable where the store will only
        forget it once it is back.
        """
        require("admin", name)
        target = await self._collection(name)
        for row in await self._mirrors_of(target, store):
            async with self._database.connection() as connection:
                await mirrors.leave(connection, row)
            await self.feed_one(replace(row, state="leaving"))


def _unfiltered(target: Collection) -> frozenset[str]:
    """Facets that Pinecone cannot filter by: it takes lists of text only."""
    facets = load_profile(target.profile, target.declaration).facets
    return frozenset(f.name for f in facets if f.many and (f.numeric or f.type == "date"))
