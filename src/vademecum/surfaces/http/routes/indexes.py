"""Vector indexes of a collection: where they are, verified, rebuilt, promoted, dropped."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field, TypeAdapter
from starlette.responses import StreamingResponse

from vademecum.mirror.facade import MirrorState, Rebuilt
from vademecum.mirror.promote import LEAST_RECALL, Promotion
from vademecum.mirror.verify import Verification
from vademecum.surfaces.http.routes.gold import Questions, questions_of
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp
from vademecum.surfaces.http.routes.work import WORK, Tell, streamed

router = APIRouter(prefix="/collections/{collection}", tags=["indexes"], responses=FAILURES)


class OfStore(BaseModel):
    store: Name | None = None
    """pgvector, qdrant or pinecone; all of the collection's if absent."""


class RebuildRequest(OfStore):
    everything: bool = False
    """Empty the index first and fill it anew."""


class PromoteRequest(BaseModel):
    to: Name
    questions: Questions | None = None
    """To compare answers on; what was searched for and headings if absent."""
    queries: Annotated[int, Field(ge=1, le=10_000)] = 100
    recall: Annotated[float, Field(ge=0, le=1)] = LEAST_RECALL
    """Least share of the ten nearest chunks that the store must find."""


@router.get("/indexes")
async def list_indexes(app: OpenApp, collection: Name) -> list[MirrorState]:
    """The mirrors of a collection, and what they have yet to be told; PostgreSQL is always one."""
    return await app.mirrors.states(collection)


@router.post("/indexes/verify", responses=WORK, response_class=StreamingResponse)
async def verify_indexes(app: OpenApp, collection: Name, asked: OfStore) -> StreamingResponse:
    """Compare ids and hashes with PostgreSQL, and name what differs; a list of verifications."""

    async def work(tell: Tell) -> list[Verification]:
        return await app.mirrors.verify(collection, asked.store)

    every = TypeAdapter(list[Verification])
    return await streamed(work, every, without={"chunks", "documents"})


@router.post("/indexes/rebuild", responses=WORK, response_class=StreamingResponse)
async def rebuild_indexes(
    app: OpenApp, collection: Name, asked: RebuildRequest
) -> StreamingResponse:
    """Repair what differs; documents to embed again are left to the server's worker."""

    async def work(tell: Tell) -> list[Rebuilt]:
        return await app.mirrors.rebuild(
            collection,
            asked.store,
            everything=asked.everything,
            progress=lambda chunks: tell("progress", {"chunks": chunks}),
        )

    return await streamed(work, TypeAdapter(list[Rebuilt]))


@router.post("/promote", responses=WORK, response_class=StreamingResponse)
async def promote(app: OpenApp, collection: Name, asked: PromoteRequest) -> StreamingResponse:
    """Fill a store, compare its answers, and search the collection there if they are as good."""

    async def work(tell: Tell) -> Promotion:
        return await app.mirrors.promote(
            collection,
            asked.to,
            questions=questions_of(asked.questions) or (),
            queries=asked.queries,
            least_recall=asked.recall,
            notice=lambda text: tell("notice", {"text": text}),
            progress=lambda chunks: tell("progress", {"chunks": chunks}),
        )

    return await streamed(work, TypeAdapter(Promotion))


@router.delete("/indexes/{store}", status_code=204)
async def drop_index(app: OpenApp, collection: Name, store: Name) -> None:
    """Have a store forget the collection, which is searched in PostgreSQL from then on."""
    await app.mirrors.drop(collection, store)
