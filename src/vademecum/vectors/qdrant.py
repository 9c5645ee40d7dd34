"""Nearest neighbours in Qdrant: one of its collections for an embedding space, a tenant in it for
each of ours.

The payload and its indexes are those of the data model of the RAG backend; docs/qdrant.md.
"""

import warnings
from collections.abc import AsyncIterator, Awaitable, Sequence
from collections.abc import Collection as Ids
from typing import Any, TypeVar
from uuid import UUID, uuid5

from vademecum.errors import MissingExtra, VectorStoreUnavailable
from vademecum.profiles.facet import Facet
from vademecum.types import ChunkId, Condition, Scored, Vector
from vademecum.vectors.index import (
    ANY,
    Filter,
    IndexEntry,
    Listed,
    best_windows,
    field_of,
    windows_for,
)

try:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_client.http.exceptions import ApiException, UnexpectedResponse
except ImportError:
    raise MissingExtra("qdrant") from None

Result = TypeVar("Result")

TENANT = "book_id"
KEYWORDS = ("chunk_id", "parent_doc_id", "content_hash", "source_file_hash")
INTEGERS = ("document_id",)
BATCH = 256
"""Points of one upsert: about 1.5 MB with 1536 numbers each."""
PAGE = 1000
SEARCH_SECONDS = 5
WRITE_SECONDS = 60


def open_client(url: str, key: str | None = None) -> AsyncQdrantClient:
    """A server by its URL, or a folder with the client's own engine: for trials, one process."""
    if not url.startswith(("http://", "https://")):
        return AsyncQdrantClient(path=url)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        return AsyncQdrantClient(
            url=url, api_key=key, timeout=WRITE_SECONDS, check_compatibility=False
        )


class QdrantIndex:
    """The Mirror of one collection in Qdrant."""

    def __init__(
        self, client: AsyncQdrantClient, *, place: str, tenant: str, dimensions: int, shown: str
    ) -> None:
        """`shown` is how messages name the server."""
        self._client, self._place, self._tenant = client, place, tenant
        self._dimensions, self._shown = dimensions, shown

    async def prepare(self, facets: Sequence[Facet]) -> None:
        if not await self._try(self._client.collection_exists(self._place)):
            await self._try(
                self._client.create_collection(
                    self._place,
                    vectors_config=models.VectorParams(
                        size=self._dimensions,
                        distance=models.Distance.COSINE,
                        datatype=models.Datatype.FLOAT16,
                    ),
                    # Every query names a tenant, so each has a graph of its own and all have none.
                    hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
                )
            )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Payload indexes have no effect")
            for field, schema in _schemas(facets).items():
                await self._try(
                    self._client.create_payload_index(self._place, field, schema, wait=True)
                )

    async def upsert(self, entries: Sequence[IndexEntry]) -> None:
        for first in range(0, len(entries), BATCH):
            batch = entries[first : first + BATCH]
            points = [
                models.PointStruct(
                    id=str(point_id(entry.chunk_id, entry.window_index)),
                    vector=entry.vector.tolist(),
                    payload=self._payload(entry),
                )
                for entry in batch
            ]
            await self._try(self._client.upsert(self._place, points, wait=True))
        chunks = sorted({str(entry.chunk_id) for entry in entries})
        current = sorted({entry.hash for entry in entries})
        for first in range(0, len(chunks), PAGE):
            await self._delete(
                models.Filter(
                    must=[self._mine(), _any_of("chunk_id", chunks[first : first + PAGE])],
                    must_not=[_any_of("entry_hash", current)],
                )
            )

    async def delete(self, chunks: Ids[ChunkId]) -> None:
        ids = sorted(str(chunk) for chunk in chunks)
        for first in range(0, len(ids), PAGE):
            await self._delete(
                models.Filter(must=[self._mine(), _any_of("chunk_id", ids[first : first + PAGE])])
            )

    async def nearest(self, vector: Vector, *, limit: int, where: Filter = ANY) -> list[Scored]:
        must: list[Any] = [self._mine()]
        must_not: list[Any] = []
        for condition in where.conditions:
            (must_not if condition.negated else must).append(_condition(condition))
        answer = await self._try(
            self._client.query_points(
                self._place,
                query=vector.tolist(),
                query_filter=models.Filter(must=must, must_not=must_not or None),
                limit=windows_for(limit),
                with_payload=["chunk_id", "document_id"],
                timeout=SEARCH_SECONDS,
            )
        )
        found = [
            (str(point.payload["chunk_id"]), int(point.payload["document_id"]), point.score)
            for point in answer.points
            if point.payload
        ]
        return best_windows(found, limit)

    async def settled(self) -> None:
        """At once: a write is answered when it is applied, and searches look at all segments."""

    async def listing(self) -> AsyncIterator[Listed]:
        offset: Any = None
        while True:
            points, offset = await self._try(
                self._client.scroll(
                    self._place,
                    scroll_filter=models.Filter(must=[self._mine()]),
                    limit=PAGE,
                    offset=offset,
                    with_payload=["chunk_id", "window_index", "entry_hash"],
                )
            )
            for point in points:
                held = point.payload or {}
                yield Listed(
                    chunk_id=ChunkId(UUID(str(held["chunk_id"]))),
                    window_index=int(held["window_index"]),
                    hash=str(held.get("entry_hash")),
                )
            if offset is None:
                return

    async def leave(self) -> None:
        if await self._try(self._client.collection_exists(self._place)):
            await self._delete(models.Filter(must=[self._mine()]))

    async def close(self) -> None:
        """Nothing: the client is shared."""

    def _payload(self, entry: IndexEntry) -> dict[str, object]:
        return {
            TENANT: self._tenant,
            **{name: _plain(value) for name, value in entry.fields.items() if name != TENANT},
            "text": entry.text,
            "chunk_id": str(entry.chunk_id),
            "window_index": entry.window_index,
            "document_id": entry.document_id,
            "entry_hash": entry.hash,
        }

    def _mine(self) -> models.FieldCondition:
        return models.FieldCondition(key=TENANT, match=models.MatchValue(value=self._tenant))

    async def _delete(self, which: models.Filter) -> None:
        selector = models.FilterSelector(filter=which)
        await self._try(self._client.delete(self._place, selector, wait=True))

    async def _try(self, request: Awaitable[Result]) -> Result:
        try:
            return await request
        except UnexpectedResponse as error:
            hint = None
            if error.status_code in (401, 403):
                hint = "Set VADE_QDRANT_KEY to a key that may read and write."
            elif error.status_code == 404:
                hint = "Its collection is gone: `vade index rebuild` makes it again."
            raise VectorStoreUnavailable(
                f"Qdrant at {self._shown} answered {error.status_code} {error.reason_phrase}",
                hint=hint,
            ) from None
        except ApiException as error:
            raise VectorStoreUnavailable(f"Qdrant at {self._shown}: {error}") from None
        except ValueError as error:  # the client's own engine
            raise VectorStoreUnavailable(f"Qdrant at {self._shown}: {error}") from None


def point_id(chunk: ChunkId, window_index: int) -> UUID:
    """The chunk's own id for its first window, and one that follows from it for each other."""
    return chunk if window_index == 0 else uuid5(chunk, str(window_index))


def _schemas(facets: Sequence[Facet]) -> dict[str, Any]:
    """The payload indexes, the tenant's first."""
    keyword = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)
    integer = models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=True, range=True
    )
    schemas: dict[str, Any] = {
        TENANT: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    }
    for facet in facets:
        if facet.numeric:
            schemas[field_of(facet.name)] = integer
        elif facet.type == "date":
            schemas[field_of(facet.name)] = models.DatetimeIndexParams(
                type=models.DatetimeIndexType.DATETIME
            )
        else:
            schemas[field_of(facet.name)] = keyword
    return schemas | dict.fromkeys(KEYWORDS, keyword) | dict.fromkeys(INTEGERS, integer)


def _condition(condition: Condition) -> Any:
    """What must be met; `negated` is for who puts it in."""
    field = field_of(condition.facet)
    if not condition.values and not condition.ranges:
        # Present is not empty.
        return models.Filter(
            must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key=field))]
        )
    accepted: list[Any] = []
    if condition.values and not condition.numeric and all(map(_is_date, condition.values)):
        # A date index answers ranges only; of other keywords these two are the same.
        accepted += [_range(field, value, value, numeric=False) for value in condition.values]
    if condition.values:
        accepted.append(_any_of(field, list(condition.values)))
    accepted += [
        _range(field, low, high, numeric=condition.numeric) for low, high in condition.ranges
    ]
    return accepted[0] if len(accepted) == 1 else models.Filter(should=accepted)


def _range(field: str, low: Any, high: Any, *, numeric: bool) -> models.FieldCondition:
    bounds = models.Range(gte=low, lte=high) if numeric else models.DatetimeRange(gte=low, lte=high)
    return models.FieldCondition(key=field, range=bounds)


def _any_of(field: str, values: list[Any]) -> models.FieldCondition:
    return models.FieldCondition(key=field, match=models.MatchAny(any=values))


def _is_date(value: object) -> bool:
    text = str(value)
    return len(text) == 10 and text[4] == text[7] == "-" and text.replace("-", "").isdecimal()


def _plain(value: object) -> object:
    """Booleans are keywords here, as they are in filters."""
    return str(value).lower() if isinstance(value, bool) else value
