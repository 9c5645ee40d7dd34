"""Qdrant's REST interface over a real socket, before the engine that comes with Qdrant's client.

The requests are read by the client's own models and answered by its own engine, so that what a test
sees is Qdrant's behaviour; only the way between is ours.
"""

import json
import re
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from qdrant_client import QdrantClient, models
from qdrant_client.local.local_collection import LocalCollection

from listening import Answer, Listening, in_json

KEY = "qdrant-test-key"


class QdrantServer(Listening):
    """`indexes` holds the payload indexes of each collection in the order they were made, and
    `asked` the method and path of every request."""

    def __init__(self, *, key: str | None = None) -> None:
        self.engine = QdrantClient(":memory:")
        self.key = key
        self.indexes: dict[str, dict[str, Any]] = {}
        self.configs: dict[str, models.CreateCollection] = {}
        self.asked: list[tuple[str, str]] = []
        self.sizes: list[int] = []
        """Points of each upsert."""
        self.failing: int | None = None
        """A status to answer everything with."""
        self._lock = threading.Lock()
        super().__init__()

    def collection(self, name: str) -> LocalCollection:
        return self.engine._client._get_collection(name)  # type: ignore[attr-defined]

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        path = path.partition("?")[0]
        self.asked.append((method, path))
        if self.key is not None and headers.get("api-key") != self.key:
            return in_json(401, {"status": {"error": "Invalid API key or JWT"}})
        if self.failing is not None:
            return in_json(self.failing, {"status": {"error": "Service internal error"}})
        match = re.fullmatch(r"/collections/([^/]+)(/.*)?", path)
        assert match, path
        name, rest = match[1], match[2] or ""
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exists = self.engine.collection_exists(name)
            if rest != "/exists" and not exists and (method, rest) != ("PUT", ""):
                message = f"Not found: Collection `{name}` doesn't exist!"
                return in_json(404, {"status": {"error": message}})
            result = self._result(method, name, rest, json.loads(body) if body else None)
        return in_json(200, {"result": _plain(result), "status": "ok", "time": 0.001})

    def _result(self, method: str, name: str, rest: str, body: Any) -> Any:
        engine = self.engine
        match (method, rest):
            case ("GET", "/exists"):
                return {"exists": engine.collection_exists(name)}
            case ("PUT", ""):
                config = models.CreateCollection.model_validate(body)
                self.configs[name] = config
                self.indexes[name] = {}
                return engine.create_collection(name, config.vectors)
            case ("DELETE", ""):
                return engine.delete_collection(name)
            case ("PUT", "/index"):
                wanted = models.CreateFieldIndex.model_validate(body)
                self.indexes[name][wanted.field_name] = wanted.field_schema
                return _done()
            case ("PUT", "/points"):
                points = models.PointsList.model_validate(body).points
                self.sizes.append(len(points))
                engine.upsert(name, points)
                return _done()
            case ("POST", "/points/delete"):
                kind = models.FilterSelector if "filter" in body else models.PointIdsList
                engine.delete(name, kind.model_validate(body))
                return _done()
            case ("POST", "/points/query"):
                asked = models.QueryRequest.model_validate(body)
                query = asked.query.nearest if hasattr(asked.query, "nearest") else asked.query
                return engine.query_points(
                    name,
                    query=query,
                    query_filter=asked.filter,
                    limit=asked.limit or 10,
                    with_payload=asked.with_payload or False,
                )
            case ("POST", "/points/scroll"):
                page = models.ScrollRequest.model_validate(body)
                points, offset = engine.scroll(
                    name,
                    scroll_filter=page.filter,
                    limit=page.limit or 10,
                    offset=page.offset,
                    with_payload=page.with_payload or False,
                )
                return {"points": points, "next_page_offset": offset}
            case ("POST", "/points/count"):
                counted = models.CountRequest.model_validate(body)
                return engine.count(name, count_filter=counted.filter)
        raise AssertionError(f"{method} {rest} is not what the tests know of Qdrant")


def _done() -> dict[str, object]:
    return {"operation_id": 1, "status": "completed"}


def _plain(result: Any) -> Any:
    if hasattr(result, "model_dump"):
        return result.model_dump(mode="json")
    if isinstance(result, dict):
        return {name: _plain(value) for name, value in result.items()}
    if isinstance(result, list):
        return [_plain(value) for value in result]
    return result
