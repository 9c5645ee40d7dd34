"""Nearest neighbours in Pinecone: one index for an embedding space, a namespace in it for each
collection.

Pinecone is eventually consistent. Each write answers the number (LSN) that it has in the log of the
namespace, and each search how far it has read that log; `settled` compares them. docs/pinecone.md.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from collections.abc import Collection as Ids
from typing import Any, TypeVar
from uuid import UUID

from vademecum.errors import MissingExtra, VectorStoreUnavailable
from vademecum.profiles.facet import Facet
from vademecum.types import ChunkId, Condition, Scored, Vector
from vademecum.vectors.index import (
    ANY,
    RESERVED,
    Filter,
    IndexEntry,
    Listed,
    best_windows,
    field_of,
    windows_for,
)

try:
    from pinecone import AsyncIndex, AsyncPinecone, DenseVectorQuery, RetryConfig
    from pinecone.errors import (
        ApiError,
        NotFoundError,
        PayloadTooLargeError,
        PineconeError,
    )
except ImportError:
    raise MissingExtra("pinecone") from None

Result = TypeVar("Result")

FIELD = "embedding"
# Limits of one request; docs.pinecone.io, operation limits.
MOST_DOCUMENTS = 1000
MOST_BYTES = 2_000_000
MOST_METADATA = 40_000
MOST_IDS = 1000
MOST_RESULTS = 10_000
ROOM = 0.9
"""Share of a limit that is used: a number may be a little longer on the way."""
REQUESTS = 4
"""Upserts under way at a time."""
SETTLE_SECONDS = 300.0
LOOK_SECONDS = 0.2


def open_client(url: str, key: str) -> AsyncPinecone:
    """The control plane at `url`."""
    return AsyncPinecone(api_key=key, host=url, retry_config=RetryConfig(max_retries=2))


class PineconeIndex:
    """The Mirror of one collection in Pinecone."""

    def __init__(
        self,
        client: AsyncPinecone,
        *,
        place: str,
        tenant: str,
        dimensions: int,
        cloud: str,
        region: str,
    ) -> None:
        self._client, self._place, self._tenant = client, place, tenant
        self._dimensions, self._cloud, self._region = dimensions, cloud, region
        self._opened: AsyncIndex | None = None
        self._committed: int | None = 0
        """The log position of the last write; None where it was not told."""

    async def prepare(self, facets: Sequence[Facet]) -> None:
        """Make the index, and wait until it is ready; fields need no index here."""
        if not await self._try(self._client.indexes.exists(self._place)):
            await self._try(
                self._client.indexes.create(
                    name=self._place,
                    schema={
                        "fields": {
                            FIELD: {
                                "type": "dense_vector",
                                "dimension": self._dimensions,
                                "metric": "cosine",
                            }
                        }
                    },
                    deployment={
                        "deployment_type": "managed",
                        "cloud": self._cloud,
                        "region": self._region,
                    },
                )
            )

    async def upsert(self, entries: Sequence[IndexEntry]) -> None:
        batches = list(_batches([self._document(entry) for entry in entries]))
        for first in range(0, len(batches), REQUESTS):
            sent = await asyncio.gather(
                *(self._upsert(batch) for batch in batches[first : first + REQUESTS]),
                return_exceptions=True,
            )
            for failure in sent:
                if isinstance(failure, BaseException):
                    raise failure
        chunks = sorted({str(entry.chunk_id) for entry in entries})
        current = sorted({entry.hash for entry in entries})
        for first in range(0, len(chunks), MOST_IDS):
            await self._delete(
                filter={
                    "$and": [
                        {"chunk_id": {"$in": chunks[first : first + MOST_IDS]}},
                        {"entry_hash": {"$nin": current}},
                    ]
                }
            )

    async def _upsert(self, batch: list[dict[str, Any]]) -> None:
        index = await self._index()
        try:
            answer = await self._try(
                index.documents.upsert(namespace=self._tenant, documents=batch)
            )
        except _TooLarge as error:
            if len(batch) == 1:
                raise VectorStoreUnavailable(f"Pinecone refuses a record: {error}") from None
            middle = len(batch) // 2
            await self._upsert(batch[:middle])
            await self._upsert(batch[middle:])
            return
        self._note(answer)

    async def delete(self, chunks: Ids[ChunkId]) -> None:
        ids = sorted(str(chunk) for chunk in chunks)
        for first in range(0, len(ids), MOST_IDS):
            await self._delete(filter={"chunk_id": {"$in": ids[first : first + MOST_IDS]}})

    async def nearest(self, vector: Vector, *, limit: int, where: Filter = ANY) -> list[Scored]:
        answer = await self._search(vector.tolist(), min(windows_for(limit), MOST_RESULTS), where)
        found = [
            (str(match.get("chunk_id")), int(match.get("document_id")), float(match.score or 0.0))
            for match in answer.matches
        ]
        return best_windows(found, limit)

    async def settled(self) -> None:
        """Return once searches have read the log as far as the last write."""
        if self._committed == 0:
            return
        if self._committed is None:
            raise VectorStoreUnavailable(
                "Pinecone does not say where in its log a write is",
                hint="Without that it is not known when searches see it.",
            )
        anywhere = [1.0] + [0.0] * (self._dimensions - 1)
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                while True:
                    answer = await self._search(anywhere, 1, ANY)
                    read = answer.response_info
                    if read is not None and read.is_reconciled(self._committed):
                        self._committed = 0
                        return
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise VectorStoreUnavailable(
                f"Pinecone's searches have not seen what was written {SETTLE_SECONDS:.0f} s ago"
            ) from None

    async def listing(self) -> AsyncIterator[Listed]:
        index = await self._index()
        pages = index.documents.list(namespace=self._tenant, limit=100)
        ids: list[str] = []
        try:
            async for listed in pages:
                ids.append(str(listed.id))
        except PineconeError as error:
            if not isinstance(error, NotFoundError):  # nothing was ever written
                raise _unavailable(error) from None
        for first in range(0, len(ids), MOST_IDS):
            answer = await self._try(
                index.documents.fetch(
                    namespace=self._tenant,
                    ids=ids[first : first + MOST_IDS],
                    include_fields=["entry_hash"],
                )
            )
            for number, held in answer.documents.items():
                chunk, _, window = number.partition("#")
                yield Listed(
                    chunk_id=ChunkId(UUID(chunk)),
                    window_index=int(window),
                    hash=str(held.get("entry_hash")),
                )

    async def leave(self) -> None:
        if await self._try(self._client.indexes.exists(self._place)):
            await self._delete(delete_all=True)
            await self.settled()

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    # --- requests ---------------------------------------------------------------------------

    async def _index(self) -> AsyncIndex:
        if self._opened is None:
            self._opened = await self._try(self._client.index(name=self._place))
        return self._opened

    async def _search(self, values: list[float], top_k: int, where: Filter) -> Any:
        index = await self._index()
        return await self._try(
            index.documents.search(
                namespace=self._tenant,
                score_by=[DenseVectorQuery(field=FIELD, values=values)],
                top_k=top_k,
                include_fields=["chunk_id", "document_id"],
                filter=compiled(where.conditions),
            )
        )

    async def _delete(self, **which: Any) -> None:
        index = await self._index()
        try:
            answer = await index.documents.delete(namespace=self._tenant, **which)
        except NotFoundError:  # there is no such namespace, and so nothing to delete
            return
        except PineconeError as error:
            raise _unavailable(error) from None
        self._note(answer)

    def _note(self, answer: Any) -> None:
        info = answer.response_info
        committed = info.lsn_committed if info is not None else None
        if committed is None or self._committed is None:
            self._committed = None
        else:
            self._committed = max(self._committed, committed)

    def _document(self, entry: IndexEntry) -> dict[str, Any]:
        told = {name: plain(name, value) for name, value in entry.fields.items()}
        document: dict[str, Any] = {
            name: value for name, value in told.items() if value is not None and value != []
        }
        # The longest go first where there is more than one record may hold.
        while len(json.dumps(document)) > MOST_METADATA * ROOM:
            document.pop(max(document, key=lambda name: len(json.dumps(document[name]))))
        return document | {
            "_id": f"{entry.chunk_id}#{entry.window_index}",
            FIELD: [round(float(number), 7) for number in entry.vector],
            "chunk_id": str(entry.chunk_id),
            "window_index": entry.window_index,
            "document_id": entry.document_id,
            "entry_hash": entry.hash,
        }

    async def _try(self, request: Awaitable[Result]) -> Result:
        try:
            return await request
        except PayloadTooLargeError as error:
            raise _TooLarge(str(error)) from None
        except PineconeError as error:
            raise _unavailable(error) from None


class _TooLarge(Exception):
    """The request has too many bytes."""


def _unavailable(error: PineconeError) -> VectorStoreUnavailable:
    hint = None
    if isinstance(error, NotFoundError):
        hint = "Its index is gone: `vade index rebuild` makes it again."
    elif isinstance(error, ApiError) and error.status_code in (401, 403):
        hint = "Set PINECONE_API_KEY, or VADE_PINECONE_KEY, to a key of the project."
    return VectorStoreUnavailable(f"Pinecone: {error}", hint=hint)


def _batches(documents: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Requests within both limits, of records and of bytes."""
    batch: list[dict[str, Any]] = []
    size = 0
    for document in documents:
        length = len(json.dumps(document).encode()) + 1
        if batch and (len(batch) == MOST_DOCUMENTS or size + length > MOST_BYTES * ROOM):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += length
    if batch:
        yield batch


# --- filters ----------------------------------------------------------------------------------


def compiled(conditions: Sequence[Condition]) -> dict[str, Any] | None:
    """The conditions in Pinecone's own language; None where all may be found."""
    parts = [_condition(condition) for condition in conditions]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"$and": parts}


def _condition(condition: Condition) -> dict[str, Any]:
    field = field_of(condition.facet)
    if not condition.values and not condition.ranges:
        return {field: {"$exists": not condition.negated}}
    if condition.negated:
        refused: list[dict[str, Any]] = []
        if condition.values:
            refused.append({field: {"$nin": [plain(field, v) for v in condition.values]}})
        refused += [_outside(field, low, high) for low, high in condition.ranges]
        unmet = refused[0] if len(refused) == 1 else {"$and": refused}
        return {"$or": [{field: {"$exists": False}}, unmet]}
    accepted: list[dict[str, Any]] = []
    if condition.values:
        accepted.append({field: {"$in": [plain(field, value) for value in condition.values]}})
    accepted += [_within(field, low, high) for low, high in condition.ranges]
    return accepted[0] if len(accepted) == 1 else {"$or": accepted}


def _within(field: str, low: Any, high: Any) -> dict[str, Any]:
    bounds = (("$gte", low), ("$lte", high))
    return {field: {sign: plain(field, bound) for sign, bound in bounds if bound is not None}}


def _outside(field: str, low: Any, high: Any) -> dict[str, Any]:
    sides = [
        {field: {sign: plain(field, bound)}}
        for sign, bound in (("$lt", low), ("$gt", high))
        if bound is not None
    ]
    return sides[0] if len(sides) == 1 else {"$or": sides}


def plain(field: str, value: Any) -> Any:
    """A value as Pinecone takes it: numbers, text and lists of text; dates as yyyymmdd, since only
    numbers have an order there; booleans as the keywords that they are in filters."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return [str(plain(field, one)) for one in value]
    if isinstance(value, int | float) or value is None:
        return value
    text = str(value)
    if field not in RESERVED and len(text) == 10 and text[4] == text[7] == "-":
        digits = text.replace("-", "")
        if digits.isdecimal():
            return int(digits)
    return text
