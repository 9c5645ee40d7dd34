"""The move of a collection to another embedder: begun, looked at, judged, ended."""

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field, TypeAdapter
from starlette.responses import StreamingResponse

from vademecum.errors import BadInput
from vademecum.evaluate.move import Move
from vademecum.store.runs import Run
from vademecum.surfaces.http.routes.gold import Questions, questions_of
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp, Text
from vademecum.surfaces.http.routes.work import WORK, Tell, streamed

router = APIRouter(prefix="/collections/{collection}/move", tags=["moves"], responses=FAILURES)


class MoveRequest(BaseModel):
    embedder: Annotated[Text, Field(min_length=1, max_length=200)]
    questions: Questions | None = None
    """To compare both embedders on; logged searches if absent."""
    unchecked: bool = False
    """Do not compare."""


class CompareRequest(BaseModel):
    questions: Questions | None = None
    """Others than those it was begun with."""


@router.get("")
async def show_move(app: OpenApp, collection: Name) -> Move | None:
    """The last move of a collection, and what was found when both were compared."""
    return await app.moves.shown(collection)


@router.post("", status_code=202)
async def start_move(app: OpenApp, collection: Name, asked: MoveRequest, response: Response) -> Run:
    """Begin a move; the server's worker embeds, compares, and swaps or refuses."""
    if asked.unchecked and asked.questions:
        raise BadInput("questions compare and `unchecked` does not: give one of them")
    report = await app.moves.reindex(
        collection,
        embedder=asked.embedder,
        questions=questions_of(asked.questions),
        unchecked=asked.unchecked,
        wait=False,
    )
    response.headers["Location"] = f"/runs/{report.run}"
    return await app.runs.one(report.run)


@router.post("/compare", responses=WORK, response_class=StreamingResponse)
async def compare_move(app: OpenApp, collection: Name, asked: CompareRequest) -> StreamingResponse:
    """Compare both once more, and swap if the new one finds no less."""

    async def work(tell: Tell) -> Move:
        return await app.moves.compare(collection, questions_of(asked.questions))

    return await streamed(work, TypeAdapter(Move))


@router.post("/accept")
async def accept_move(app: OpenApp, collection: Name) -> Move:
    """Search the collection with the new embedder whatever was found, once all is embedded."""
    return await app.moves.accept(collection)


@router.delete("", status_code=202)
async def abandon_move(app: OpenApp, collection: Name, response: Response) -> Run:
    """Stay with the present embedder; its vectors are kept, and those of the new one deleted."""
    report = await app.moves.abandon(collection, wait=False)
    response.headers["Location"] = f"/runs/{report.run}"
    return await app.runs.one(report.run)
