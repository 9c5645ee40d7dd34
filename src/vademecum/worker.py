"""The worker: takes jobs and makes documents searchable, a batch at a time.

While one batch is embedded, the next is split and the one before is written, so that the embedder
hardly ever waits. A batch that fails is tried document by document, so that one bad document
cannot hold up others.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from vademecum.errors import (
    BadInput,
    CostCapReached,
    DatabaseUnavailable,
    EmbedderUnreachable,
    LanguageModelFailed,
    ModelUnavailable,
    VadeError,
)
from vademecum.inference.embedder import Embedder, Tokenizer
from vademecum.inference.language.model import LanguageModel
from vademecum.inference.words import WordTokenizer
from vademecum.ingest import process
from vademecum.ingest.beside import beside
from vademecum.ingest.overlap import NONE_COMING, Coming
from vademecum.ingest.prepare import Prepared, card_of, prepare, recipe
from vademecum.ingest.process import Beside, Swapped
from vademecum.ingest.report import Progress
from vademecum.ingest.written_summary import writer_of, written_summary
from vademecum.profiles.profile import Profile, load_profile
from vademecum.store import collections, documents, embeddings, jobs, ledger, lexical
from vademecum.store.db import Connection, Database
from vademecum.store.documents import StoredDocument
from vademecum.store.jobs import Job, OpenJobs
from vademecum.store.ledger import DocumentCard
from vademecum.store.lexical import Lexicon
from vademecum.types import CollectionId, DocumentId, EmbeddingSpace, SpaceId, Vector

FIRST_JOBS = 2
"""Of the first batch, for which the embedder waits; up to four times as many in the next."""

BATCH_CHARACTERS = 500_000
"""As many documents are taken up together as hold about so many. Statements, a segment and waits
for one another cost by the batch: 1400 abstracts take 3.5 % longer by 32 than by up to 128."""

BATCH_JOBS = 128
"""Documents of a batch at most, however short they are."""

MOST_CHARACTERS = 1_000_000
"""With so many, a batch takes no further document: what is made of a text takes eight times its
memory (measured on documentation), and five batches are under way at a time."""

BULK_JOBS = 32
"""With so many jobs waiting, the vector index is better built once, after them."""

LEAST_SECONDS, MOST_SECONDS = 0.005, 0.05
"""Between two looks for jobs that are about to come: ever longer, until some have."""

WHILE_SECONDS = 1.0
"""Between two looks for jobs that other workers may give back."""


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Documents of one collection on their way through the stages."""

    embedder: Embedder | None
    profile: Profile
    recipe: str
    work: list[tuple[Job, Prepared]] = field(default_factory=list)
    space: SpaceId | None = None
    known: dict[bytes, Vector] = field(default_factory=dict)
    made: dict[bytes, Vector] = field(default_factory=dict)
    serving: str | None = None
    """The embedder that the collection is searched by, where it moves to another one."""
    beside: Beside | None = None
    """What is new, for that one."""

    @property
    def jobs(self) -> list[Job]:
        return [job for job, _ in self.work]

    @property
    def prepared(self) -> list[Prepared]:
        return [prepared for _, prepared in self.work]


class Worker:
    """Drains the queue of one collection, or of all."""

    def __init__(
        self,
        database: Database,
        open_embedder: Callable[[str], Embedder | None],
        *,
        collection: CollectionId | None = None,
        notice: Callable[[str], None] = lambda text: None,
        progress: Callable[[Progress], None] = lambda progress: None,
        stepped: Callable[[CollectionId], Awaitable[None]] | None = None,
        writer: LanguageModel | None = None,
    ) -> None:
        """`writer` writes the summaries of knowledge bases; without one they are extractive."""
        self._database = database
        self._open_embedder = open_embedder
        self._collection = collection
        self._notice = notice
        self._report = progress
        self._stepped = stepped
        self._writer = writer
        self._lexicon = Lexicon()
        self._name = jobs.new_worker()
        self._leased: dict[int, Job] = {}
        self._touched: set[CollectionId] = set() if collection is None else {collection}
        self._noticed: set[str] = set()
        self._stopped: CostCapReached | None = None
        self._done = asyncio.Event()
        self.progress = Progress()

    @property
    def touched(self) -> frozenset[CollectionId]:
        """Collections of which documents were taken up."""
        return frozenset(self._touched)

    async def drain(
        self, *, limit: int | None = None, wait: bool = True, coming: Coming = NONE_COMING
    ) -> Progress:
        """Work until nothing is left or `coming`, or `limit` jobs are done.

        With `wait`, jobs that other workers have in hand and those that are to be tried again
        count as left. Stopped half-way, it returns what it has not done.
        """
        async with self._heartbeat():
            await self._prepare_index(coming.documents)
            try:
                await self._run(limit=limit, wait=wait, coming=coming)
            finally:
                # Shielded: also a cancelled drain leaves the queue and the indexes in order.
                await asyncio.shield(self._database.retry(self._finish, tries=3))
        return self.progress

    async def _run(self, *, limit: int | None, wait: bool, coming: Coming) -> None:
        to_embed: asyncio.Queue[_Batch | None] = asyncio.Queue(maxsize=1)
        to_store: asyncio.Queue[_Batch | None] = asyncio.Queue(maxsize=1)
        try:
            async with asyncio.TaskGroup() as stages:
                stages.create_task(self._take_all(to_embed, limit, wait, coming))
                stages.create_task(self._embed_all(to_embed, to_store))
                stages.create_task(self._store_all(to_store))
        except BaseExceptionGroup as group:
            task = asyncio.current_task()
            if sys.version_info < (3, 13) and task is not None and task.cancelling():
                task.uncancel()  # which a failed group there leaves behind
            if (known := group.subgroup(VadeError)) is not None:
                raise known.exceptions[0] from None
            raise
        if self._stopped is not None:
            raise self._stopped

    async def _take_all(
        self,
        to_embed: asyncio.Queue[_Batch | None],
        limit: int | None,
        wait: bool,
        coming: Coming,
    ) -> None:
        taken, pause, size = 0, LEAST_SECONDS, FIRST_JOBS
        while self._stopped is None and (limit is None or taken < limit):
            before = taken
            groups = await self._take(size if limit is None else min(size, limit - taken))
            for group in groups:
                if (batch := await self._prepared(group)) is not None:
                    taken += len(batch.jobs)
                    await to_embed.put(batch)
            pause = LEAST_SECONDS if taken > before else min(2 * pause, MOST_SECONDS)
            if groups:
                seen = [document for group in groups for _, document in group]
                size = min(4 * size, _fitting(seen))
            if taken == before and not await self._more(wait, coming, pause):
                break
        await to_embed.put(None)

    async def _embed_all(
        self, to_embed: asyncio.Queue[_Batch | None], to_store: asyncio.Queue[_Batch | None]
    ) -> None:
        while (batch := await to_embed.get()) is not None:
            if self._stopped is None:
                try:
                    await self._embed(batch)
                    await self._embed_beside(batch)
                    await to_store.put(batch)
                except CostCapReached as error:
                    self._stopped = error  # what is paid for is still stored, the rest waits
        await to_store.put(None)

    async def _store_all(self, to_store: asyncio.Queue[_Batch | None]) -> None:
        while (batch := await to_store.get()) is not None:
            await self._store(batch)

    async def _more(self, wait: bool, coming: Coming, pause: float) -> bool:
        """Whether to look again, after a while where all that is left is in hand or due later;
        after a pause where more is coming."""
        if not coming.over():
            await asyncio.sleep(pause)
            return True
        await self._database.retry(self._return_lost)
        left = await self._database.retry(self._open_jobs)
        if left.pending and left.due_in is not None and left.due_in <= 0:
            return True
        if not wait or not (left.pending or left.processing):
            return False
        if self._leased:  # what is in hand is most likely all that is left
            await self._rest(WHILE_SECONDS)
        else:
            await asyncio.sleep(min(max(left.due_in or 0, MOST_SECONDS), WHILE_SECONDS))
        return True

    async def _rest(self, seconds: float) -> None:
        """Until something in hand is done, or for so long."""
        self._done.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._done.wait()

    def _let_go(self, job: Job) -> None:
        self._leased.pop(job.id, None)
        self._done.set()

    # --- the stages -------------------------------------------------------------------------

    async def _take(self, size: int) -> list[list[tuple[Job, StoredDocument]]]:
        """Up to `size` jobs with their documents, in groups that are worked on together."""
        # Each step is tried again by itself: jobs once leased must not be forgotten.
        leased = await self._database.retry(partial(self._lease, size))
        if not leased:
            return []
        stored = await self._database.retry(partial(self._contents, leased))
        by_document = {document.id: document for document in stored}
        groups: dict[CollectionId, list[list[tuple[Job, StoredDocument]]]] = {}
        for job in leased:
            document = by_document.get(job.document_id)
            if document is None:  # deleted since, and its job with it
                self._let_go(job)
                continue
            of_collection = groups.setdefault(document.collection_id, [[]])
            if sum(len(one.text) for _, one in of_collection[-1]) > MOST_CHARACTERS:
                of_collection.append([])
            of_collection[-1].append((job, document))
        return list(chain.from_iterable(groups.values()))

    async def _prepared(self, group: Sequence[tuple[Job, StoredDocument]]) -> _Batch | None:
        try:
            return await self._prepare(group)
        # A profile or an embedder that is not known here, or not to be reached.
        except (BadInput, EmbedderUnreachable) as error:
            for job, _ in group:
                await self._fail(job, error)
            return None

    async def _lease(self, size: int) -> list[Job]:
        async with self._database.connection() as connection:
            leased = await jobs.lease(
                connection, self._name, limit=size, collection=self._collection
            )
        self._leased.update({job.id: job for job in leased})
        return leased

    async def _contents(self, leased: Sequence[Job]) -> list[StoredDocument]:
        async with self._database.connection() as connection:
            return await documents.contents(connection, [job.document_id for job in leased])

    async def _prepare(self, group: Sequence[tuple[Job, StoredDocument]]) -> _Batch:
        first = group[0][1]
        profile = load_profile(first.profile, first.declaration)
        embedder = self.embedder(first.embedder)
        batch = _Batch(embedder=embedder, profile=profile, recipe=recipe(profile, embedder))
        if first.serving_embedder != first.embedder:
            batch.serving = first.serving_embedder
        stored = [document for _, document in group]
        cards = await asyncio.gather(*(self._card(document, profile) for document in stored))
        present = self._present_tokenizer(first)
        split = await asyncio.to_thread(_split, stored, cards, profile, embedder, present)
        for (job, _), prepared in zip(group, split, strict=True):
            if isinstance(prepared, Exception):
                await self._fail(job, prepared)
            else:
                batch.work.append((job, prepared))
        if embedder is not None:
            kept = [document.id for document in stored if document.recipe is not None]
            batch.space, batch.known = await self._database.retry(
                partial(self._reusable, embedder.space, kept)
            )
        self._touched.add(first.collection_id)
        await self._step(batch, _chunked)
        return batch

    async def _card(self, document: StoredDocument, profile: Profile) -> DocumentCard | None:
        """With the summary of the writer, who writes about the same content once; None without."""
        if self._writer is None or not profile.summaries:
            return None
        card = await asyncio.to_thread(card_of, document, profile)
        by = writer_of(self._writer)
        written = await self._database.retry(partial(self._written, document.id, by))
        try:
            written = written or await written_summary(
                self._writer, document.title, document.text, card.summary6
            )
        except LanguageModelFailed as error:
            self._notice_once(f"{error}: summaries are extractive. {error.hint or ''}".rstrip())
            return card
        return replace(card, summary6=written, summary6_by=by)

    async def _written(self, document: DocumentId, by: str) -> tuple[str, ...] | None:
        async with self._database.connection() as connection:
            return await ledger.summary_written(connection, document, by)

    def _present_tokenizer(self, document: StoredDocument) -> Tokenizer | None:
        """While a collection moves to another model, its chunks stay as they are: new ones would
        take the vectors with them that it is searched by."""
        if document.serving_embedder == document.embedder:
            return None
        try:
            present = self._open_embedder(document.serving_embedder)
            return present.tokenizer if present is not None else None
        except VadeError:  # it cannot be searched by these vectors either
            return None

    async def _reusable(
        self, space: EmbeddingSpace, kept: Sequence[DocumentId]
    ) -> tuple[SpaceId, dict[bytes, Vector]]:
        async with self._database.connection() as connection:
            number = await embeddings.space_id(connection, space)
            return number, await process.reusable(connection, number, kept)

    async def _embed(self, batch: _Batch) -> None:
        if batch.embedder is None:
            return
        try:
            batch.made = await process.embed(batch.prepared, batch.known, batch.embedder)
        except CostCapReached:
            raise
        except Exception:  # noqa: BLE001 - found out below which document it is
            for job, prepared in list(batch.work):
                try:
                    batch.made |= await process.embed([prepared], batch.known, batch.embedder)
                except Exception as error:  # noqa: BLE001
                    batch.work.remove((job, prepared))
                    await self._fail(job, error)

    async def _embed_beside(self, batch: _Batch) -> None:
        """While the collection moves to another model, its present one misses nothing new."""
        try:
            serving = self._open_embedder(batch.serving) if batch.serving else None
            if serving is not None:
                batch.beside = await beside(
                    self._database, serving, batch.profile, batch.prepared, self._notice_once
                )
        except CostCapReached:
            raise
        except VadeError as error:  # it cannot be searched by that model either
            self._notice_once(str(error))

    async def _store(self, batch: _Batch) -> None:
        if batch.embedder is not None:
            await self._step(batch, _embedded)
        swapped = await self._database.retry(lambda: self._swap(batch))
        await self._database.retry(lambda: self._merge(batch))
        await self._step(batch)
        for job in batch.jobs:
            self._let_go(job)
        left = await self._database.retry(self._open_jobs)
        self.progress = replace(
            self.progress,
            done=self.progress.done + len(batch.jobs),
            chunks=self.progress.chunks + swapped.chunks,
            embedded=self.progress.embedded + swapped.embedded,
            reused=self.progress.reused + swapped.reused,
            left=left.pending + left.processing,
        )
        self._report(self.progress)

    async def _merge(self, batch: _Batch) -> None:
        """A long drain must not leave searches with a segment for each batch."""
        async with self._database.connection() as connection:
            for collection in {prepared.document.collection_id for prepared in batch.prepared}:
                await lexical.merge(connection, collection, fan_in=lexical.FAN_IN)

    async def _swap(self, batch: _Batch) -> Swapped:
        async with self._database.connection() as connection:
            return await process.swap(
                connection,
                batch.prepared,
                worker=self._name,
                taken=batch.jobs,
                known=batch.known,
                made=batch.made,
                space=batch.space,
                lexicon=self._lexicon,
                recipe=batch.recipe,
                also=batch.beside,
            )

    async def _step(
        self,
        batch: _Batch,
        note: Callable[[Connection, Sequence[Prepared]], Awaitable[None]] | None = None,
    ) -> None:
        """Note in the ledger what was done for the documents of a knowledge base, and show it."""
        done = [prepared for prepared in batch.prepared if prepared.card]
        if not done:
            return
        if note is not None:
            await self._database.retry(partial(self._note, note, done))
        if self._stepped is not None:
            await self._stepped(done[0].document.collection_id)

    async def _note(
        self,
        note: Callable[[Connection, Sequence[Prepared]], Awaitable[None]],
        done: Sequence[Prepared],
    ) -> None:
        async with self._database.transaction() as connection:
            await note(connection, done)

    # --- around the stages ------------------------------------------------------------------

    def embedder(self, setting: str) -> Embedder | None:
        """The collection's embedder; without its model there is lexical search only, and a word
        about it."""
        try:
            embedder = self._open_embedder(setting)
            if embedder is not None:
                embedder.tokenizer.counts([""])
        except EmbedderUnreachable:
            raise  # it comes back: documents keep the vectors they have, and wait
        except ModelUnavailable as error:
            self._notice_once(f"{error}. Indexing for lexical search only. {error.hint}")
            return None
        return embedder

    def _notice_once(self, text: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            self._notice(text)

    async def _fail(self, job: Job, error: Exception) -> None:
        """Put a job off, or give it up. A document that cannot be used will not be later either."""
        message = str(error) if isinstance(error, VadeError) else f"{type(error).__name__}: {error}"
        await self._database.retry(partial(self._put_off, job, message, final=not _may_pass(error)))
        self._let_go(job)
        self.progress = replace(self.progress, failed=self.progress.failed + 1)

    async def _put_off(self, job: Job, message: str, *, final: bool) -> None:
        async with self._database.connection() as connection:
            await jobs.fail(connection, self._name, job, message, final=final)

    async def _open_jobs(self) -> OpenJobs:
        async with self._database.connection() as connection:
            return await jobs.open_jobs(connection, self._collection)

    async def _return_lost(self) -> None:
        async with self._database.connection() as connection:
            await jobs.return_lost(connection, self._name, self._leased.values())

    async def _prepare_index(self, coming: int) -> None:
        """Before a large first load, drop the vector index of the space that is to be filled.
        `coming` is how many documents are, at least."""
        await self._database.retry(self._return_lost)
        left = await self._database.retry(self._open_jobs)
        waiting = max(left.pending, coming)
        if waiting < BULK_JOBS:
            return
        async with self._database.connection() as connection:
            for space in await embeddings.smaller_than(connection, waiting):
                await embeddings.drop_index(connection, space)

    async def _finish(self) -> None:
        async with self._database.connection() as connection:
            await jobs.give_back(connection, self._name)
            await embeddings.build_missing_indexes(connection)
            for collection in self._touched:
                await lexical.merge(connection, collection)
            # First: whoever searches in a space that is left only now may not be done with it.
            await embeddings.purge_left(connection)
            await collections.settle_spaces(connection)
            await jobs.forget_done(connection)

    @contextlib.asynccontextmanager
    async def _heartbeat(self) -> AsyncIterator[None]:
        async def beat() -> None:
            while True:
                await asyncio.sleep(jobs.LEASE_SECONDS / 3)
                with contextlib.suppress(DatabaseUnavailable):  # the next beat comes in time
                    async with self._database.connection() as connection:
                        await jobs.extend(connection, self._name, self._leased.values())

        beating = asyncio.create_task(beat())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.wait([beating])


def _fitting(documents: Sequence[StoredDocument]) -> int:
    """As many documents like these as make a batch."""
    characters = sum(len(document.text) for document in documents)
    return min(BATCH_JOBS, 1 + BATCH_CHARACTERS * len(documents) // max(characters, 1))


def _split(
    stored: Sequence[StoredDocument],
    cards: Sequence[DocumentCard | None],
    profile: Profile,
    embedder: Embedder | None,
    present: Tokenizer | None,
) -> list[Prepared | Exception]:
    """Each document, or why it cannot be: one's failure is its own."""
    split: list[Prepared | Exception] = []
    for document, card in zip(stored, cards, strict=True):
        try:
            prepared = prepare(
                document,
                profile=profile,
                tokenizer=embedder.tokenizer if embedder else WordTokenizer(),
                max_tokens=embedder.max_tokens if embedder else None,
                card=card,
                reading=present,
            )
        except Exception as error:  # noqa: BLE001 - told by its caller
            split.append(error)
        else:
            split.append(prepared)
    return split


async def _chunked(connection: Connection, done: Sequence[Prepared]) -> None:
    await ledger.chunked(
        connection, [(p.document.id, p.document.updated_at, p.card) for p in done if p.card]
    )


async def _embedded(connection: Connection, done: Sequence[Prepared]) -> None:
    await ledger.embedded(connection, [prepared.document.id for prepared in done])


def _may_pass(error: Exception) -> bool:
    """Whether the same document may be processed later: not if it, or our code, is at fault."""
    return isinstance(error, VadeError | OSError | MemoryError) and not isinstance(error, BadInput)
