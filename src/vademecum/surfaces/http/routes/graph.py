"""The graph: named queries, nodes, documents for a task, upkeep; code linked and looked at.

Folders are those of the server's machine, and ask for admin.
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, Field

from vademecum.access import require_all
from vademecum.graph.describe import Described
from vademecum.graph.facade import GraphCounts
from vademecum.graph.learning import Scored
from vademecum.graph.link import LinkReport
from vademecum.graph.nodes import ExternalDoc
from vademecum.graph.queries import QUERIES, NamedQuery
from vademecum.graph.refresh import RefreshReport
from vademecum.graph.sarif import sarif
from vademecum.graph.upkeep import Analysis, Maintenance
from vademecum.graph.watch import RadarReport
from vademecum.projections.project import Verification
from vademecum.store.knowledge import KnowledgeChange
from vademecum.surfaces.http.routes.shared import FAILURES, Name, OpenApp, Short, Text

router = APIRouter(tags=["graph"], responses=FAILURES)

Folder = Annotated[Text, Field(min_length=1, max_length=4000)]


class GraphQuery(BaseModel):
    name: Short
    parameters: dict[Short, Short | int | None] = {}
    on: Literal["postgresql", "neo4j"] = "postgresql"


class Rows(BaseModel):
    rows: list[dict[str, Any]]


class Nodes(BaseModel):
    nodes: list[Described]


class Wanted(BaseModel):
    text: Annotated[Text, Field(min_length=1, max_length=10_000)]
    language: Short = ""
    package: Short = ""
    category: Short = ""
    limit: Annotated[int, Field(ge=1, le=100)] = 5


class Relevant(BaseModel):
    document: ExternalDoc
    scored: Scored
    passage: str


class RelevantList(BaseModel):
    documents: list[Relevant]


class Changes(BaseModel):
    changes: list[KnowledgeChange]


class Refresh(BaseModel):
    ids: Annotated[list[UUID], Field(max_length=1000)] | None = None
    limit: Annotated[int, Field(ge=1, le=100_000)] = 500


class Linking(BaseModel):
    folder: Folder
    project: Name | None = None
    python: Folder | None = None
    force: bool = False


class Looking(BaseModel):
    folder: Folder
    python: Folder | None = None
    fetch: bool = False


@router.get("/graph/queries")
async def queries() -> dict[str, NamedQuery]:
    """The named queries, with what they are asked with."""
    return QUERIES


@router.post("/graph/query")
async def query(app: OpenApp, asked: GraphQuery) -> Rows:
    """The rows of a named query, in its order."""
    parameters: dict[str, Any] = {**asked.parameters, "on": asked.on}
    return Rows(rows=await app.graph.query(asked.name, **parameters))


@router.get("/graph/status")
async def status(app: OpenApp, project: Short = "") -> GraphCounts:
    """How many nodes and relations of each kind there are."""
    return await app.graph.counts(project=project)


@router.get("/graph/nodes")
async def nodes(app: OpenApp, name: Short, kind: Short | None = None, project: Short = "") -> Nodes:
    """Nodes by their id or name, with their relations and scores."""
    return Nodes(nodes=await app.graph.describe(name, kind=kind, project=project))


@router.post("/graph/relevant")
async def relevant(app: OpenApp, asked: Wanted) -> RelevantList:
    """Documents for a task, the most relevant first, with each part of their scores."""
    found = await app.graph.relevant(
        asked.text,
        language=asked.language,
        package=asked.package,
        category=asked.category,
        limit=asked.limit,
    )
    return RelevantList(
        documents=[
            Relevant(document=one.document, scored=one.scored, passage=one.passage) for one in found
        ]
    )


@router.get("/graph/changes")
async def changes(
    app: OpenApp,
    id: UUID | None = None,  # noqa: A002 - the name it has everywhere else
    since: datetime | None = None,
    limit: Annotated[int, Field(ge=1, le=10_000)] = 50,
) -> Changes:
    """What changed of documents outside, the newest first."""
    return Changes(changes=await app.graph.changes(number=id, since=since, limit=limit))


@router.post("/graph/refresh")
async def refresh(app: OpenApp, asked: Refresh) -> RefreshReport:
    """Look again at documents that are stale and valued, or at those named."""
    return await app.graph.refresh(ids=asked.ids, limit=asked.limit)


@router.post("/graph/maintain")
async def maintain(app: OpenApp) -> Maintenance:
    """The daily maintenance: scores, top lists, refresh, texts that nobody reads."""
    return await app.graph.maintain()


@router.post("/graph/analyse")
async def analyse(app: OpenApp) -> Analysis:
    """The weekly analysis: documents used most and never, what sources are worth, gaps."""
    return await app.graph.analyse()


@router.post("/graph/verify")
async def verify(app: OpenApp) -> Verification:
    """Compare Neo4j with PostgreSQL, every property of it."""
    require_all("admin")
    return await app.projection.verify()


@router.post("/link")
async def link(app: OpenApp, asked: Linking) -> LinkReport:
    """Tie the code of a folder to the documentation and the APIs of the libraries it uses."""
    return await app.code.link(
        Path(asked.folder),
        project=asked.project,
        python=Path(asked.python) if asked.python else None,
        force=asked.force,
    )


@router.post("/radar")
async def look(app: OpenApp, asked: Looking) -> RadarReport:
    """The lines of a folder's code that use what their libraries deprecate or have removed."""
    return await _radar(app, asked)


@router.post("/radar/sarif")
async def look_as_sarif(app: OpenApp, asked: Looking) -> dict[str, Any]:
    """The same as SARIF 2.1.0, for code hosts."""
    report = await _radar(app, asked)
    return sarif(report.findings, root_uri=Path(report.root).resolve().as_uri() + "/")


async def _radar(app: OpenApp, asked: Looking) -> RadarReport:
    return await app.code.radar(
        Path(asked.folder),
        python=Path(asked.python) if asked.python else None,
        fetch=asked.fetch,
    )
