"""Which scope each route asks of an API key. A route that is not here asks for admin."""

from fastapi import Request

from vademecum.access import Scope, require, require_all
from vademecum.surfaces.http.sessions import is_page

ROUTES: dict[Scope, tuple[str, ...]] = {
    "read": (
        "GET /status",
        "GET /jobs",
        "GET /collections",
        "GET /collections/{collection}",
        "GET /collections/{collection}/documents",
        "GET /collections/{collection}/document",
        "GET /collections/{collection}/lessons/{parent}",
        "GET /collections/{collection}/chunks/{chunk}",
        "GET /collections/{collection}/state",
        "GET /collections/{collection}/indexes",
        "GET /collections/{collection}/move",
        "POST /search",
        "POST /answer",
        "POST /books/search",
        "POST /cache/check",
        "POST /cache/read",
        "GET /cache/report",
        "GET /runs",
        "GET /runs/{run}",
        "GET /runs/{run}/events",
        "GET /events",
        "POST /notes/list",
        "POST /notes/search",
        "POST /context",
        "GET /stale",
        "GET /graph/queries",
        "POST /graph/query",
        "GET /graph/status",
        "GET /graph/nodes",
        "POST /graph/relevant",
        "GET /graph/changes",
        "POST /apis/find",
        "GET /sources",
    ),
    "write": (
        "POST /collections/{collection}/pages",
        "POST /cache/pages",
        "POST /runs",
        "POST /runs/{run}/cancel",
        "POST /runs/{run}/resume",
        "POST /notes/save",
        "POST /notes/remove",
        "POST /notes/confirm",
        "POST /stale/refresh",
        "POST /outcomes",
        "POST /graph/refresh",
        "POST /graph/maintain",
        "POST /graph/analyse",
        "POST /fetch",
    ),
    "admin": (
        "DELETE /collections/{collection}",
        "POST /collections/{collection}/indexes/verify",
        "POST /collections/{collection}/indexes/rebuild",
        "POST /collections/{collection}/promote",
        "DELETE /collections/{collection}/indexes/{store}",
        "POST /collections/{collection}/move",
        "POST /collections/{collection}/move/compare",
        "POST /collections/{collection}/move/accept",
        "DELETE /collections/{collection}/move",
    ),
}
"""Admin of the collection alone; what is not named here is admin of everything."""

SCOPES = {route: scope for scope, routes in ROUTES.items() for route in routes}
OPEN = ("GET /health",)


async def scoped(request: Request) -> None:
    """Raises NotAllowed where the caller's key does not open the route."""
    template = f"{request.method} {request.scope['route'].path}"
    if template in OPEN or is_page(request.scope["route"].path):
        return  # pages look for a session, and the memory for its scope
    if request.scope["route"].path.startswith("/memory/"):
        require("memory")
    elif template in SCOPES:
        require(SCOPES[template])
    else:
        require_all("admin")
