"""The HTTP API: one router for each area, all of them calling App and nothing else."""

from fastapi import Depends, FastAPI

from vademecum import __version__
from vademecum.app import App
from vademecum.surfaces.http import problems
from vademecum.surfaces.http.routes import (
    books,
    cache,
    collections,
    events,
    graph,
    health,
    hooks,
    indexes,
    keys,
    memory,
    moves,
    notes,
    pages,
    runs,
    search,
    sources,
)
from vademecum.surfaces.http.scopes import scoped


def create_api(app: App | None) -> FastAPI:
    """The API over an open app; without one, only to be described."""
    api = FastAPI(
        title="Vademecum",
        version=__version__,
        description="Knowledge and memory that agents carry. Every call needs a bearer token.",
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(scoped)],
    )
    api.state.app = app
    problems.install(api)
    for area in (
        hooks,  # an agent waits for them, and routes are tried one after the other
        health,
        collections,
        search,
        books,
        runs,
        events,
        cache,
        indexes,
        moves,
        keys,
        memory,
        notes,
        graph,
        sources,
        pages,
    ):
        api.include_router(area.router)
    return api
