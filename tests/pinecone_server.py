"""Pinecone's HTTP interface of 2026-07 (document indexes) over a real socket, kept in memory.

Like the real one it is eventually consistent: what is written is in the log at once, and seen by
searches after `delay` seconds. It holds to the limits and kinds of values that Pinecone documents.
"""

import json
import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import numpy as np

from listening import Answer, Listening, in_json

KEY = "pcsk_test_key"


class PineconeServer(Listening):
    """Control plane and data plane in one; `sizes` holds records and bytes of each upsert."""

    def __init__(self) -> None:
        self.indexes: dict[str, dict[str, Any]] = {}
        self.logs: dict[str, list[tuple[float, str, Any]]] = {}
        """By namespace: when, what, with what; the place in it is the LSN."""
        self.delay = 0.0
        self.most_bytes = 2_000_000
        self.sizes: list[tuple[int, int]] = []
        self.failing: int | None = None
        self.asked: list[str] = []
        super().__init__()

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.asked.append(path)
        if headers.get("api-key") != KEY:
            return in_json(
                401, {"error": {"code": "UNAUTHENTICATED", "message": "Invalid API Key"}}
            )
        if headers.get("x-pinecone-api-version") != "2026-07":
            return _refused(400, "this server speaks 2026-07")
        if self.failing is not None:
            return _refused(self.failing, "the service is unavailable")
        content = json.loads(body) if body else {}
        if path == "/indexes" and method == "POST":
            return self._create(content)
        if match := re.fullmatch(r"/indexes/([^/]+)", path):
            found = self.indexes.get(match[1])
            return in_json(200, found) if found else _refused(404, f"no index {match[1]}")
        match = re.fullmatch(r"/namespaces/([^/]+)/documents/(\w+)", path)
        assert match, path
        return self._documents(unquote(match[1]), match[2], content, len(body))

    def _create(self, content: dict[str, Any]) -> Answer:
        name = content["name"]
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,44}", name):
            return _refused(400, f"{name} is no name")
        self.indexes[name] = {
            "name": name,
            "status": {"ready": True, "state": "Ready"},
            "schema": content["schema"],
            "deployment": content["deployment"] | {"environment": "test"},
            "deletion_protection": "disabled",
            "host": self.url,
        }
        return in_json(201, self.indexes[name])

    def _documents(self, namespace: str, verb: str, content: Any, size: int) -> Answer:
        if verb in ("upsert", "delete"):
            if verb == "delete" and namespace not in self.logs:
                return _refused(404, "Namespace not found")
            if verb == "upsert" and (refusal := self._wrong(content["documents"], size)):
                return refusal
            log = self.logs.setdefault(namespace, [])
            log.append((time.monotonic(), verb, content))
            told = {"upserted_count": len(content["documents"])} if verb == "upsert" else {}
            return in_json(200, told, x_pinecone_request_lsn=str(len(log)))
        read = self._read(namespace)
        held = self.held(namespace, read)
        usage = {"read_units": 1}
        if verb == "search":
            [score] = content["score_by"]
            assert score["type"] == "dense_vector", score
            field = score.get("field") or score["fields"][0]
            query = np.array(score["values"])
            matches = [
                {
                    "_id": number,
                    "_score": float(query @ np.array(one[field]) / np.linalg.norm(query)),
                    **{
                        name: one[name] for name in content.get("include_fields", []) if name in one
                    },
                }
                for number, one in held.items()
                if passes(one, content.get("filter"))
            ]
            matches.sort(key=lambda match: -match["_score"])
            return in_json(
                200,
                {
                    "matches": matches[: content["top_k"]],
                    "namespace": namespace,
                    "usage": usage,
                },
                x_pinecone_max_indexed_lsn=str(read),
            )
        if verb == "list":
            ids = sorted(held)
            first = int(content.get("pagination_token") or 0)
            last = first + int(content.get("limit", 100))
            page = {"next": str(last)} if last < len(ids) else None
            return in_json(
                200,
                {
                    "documents": [{"_id": number} for number in ids[first:last]],
                    "namespace": namespace,
                    "usage": usage,
                    **({"pagination": page} if page else {}),
                },
            )
        assert verb == "fetch", verb
        wanted = content.get("include_fields", [])
        return in_json(
            200,
            {
                "documents": {
                    number: {"_id": number, **{n: held[number][n] for n in wanted}}
                    for number in content["ids"]
                    if number in held
                },
                "namespace": namespace,
                "usage": usage,
            },
        )

    def _wrong(self, documents: list[dict[str, Any]], size: int) -> Answer | None:
        self.sizes.append((len(documents), size))
        if size > self.most_bytes:
            return _refused(413, "the request is larger than 2 MB")
        if len(documents) > 1000:
            return _refused(400, "more than 1000 documents")
        for one in documents:
            vector = one.get("embedding")
            schema = next(iter(self.indexes.values()))["schema"]["fields"]["embedding"]
            if not isinstance(vector, list) or len(vector) != schema["dimension"]:
                return _refused(400, "the vector's dimension is not that of the index")
            for name, value in one.items():
                if name in ("_id", "embedding") or isinstance(value, str | int | float):
                    continue
                if isinstance(value, list) and all(isinstance(v, str) for v in value):
                    continue
                return _refused(400, f"{name} must be text, a number, or a list of text")
        return None

    def _read(self, namespace: str) -> int:
        """How far searches have read the log."""
        seen = time.monotonic() - self.delay
        return sum(at <= seen for at, _, _ in self.logs.get(namespace, []))

    def held(self, namespace: str, upto: int | None = None) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for _, verb, content in self.logs.get(namespace, [])[:upto]:
            if verb == "upsert":
                found |= {one["_id"]: one for one in content["documents"]}
            elif content.get("delete_all"):
                found = {}
            elif "ids" in content:
                found = {n: one for n, one in found.items() if n not in content["ids"]}
            else:
                found = {n: one for n, one in found.items() if not passes(one, content["filter"])}
        return found


def passes(one: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Pinecone's filter language, as far as it is used."""
    for name, rule in (wanted or {}).items():
        if name == "$and":
            met = all(passes(one, part) for part in rule)
        elif name == "$or":
            met = any(passes(one, part) for part in rule)
        else:
            met = all(_holds(one.get(name), sign, value) for sign, value in rule.items())
        if not met:
            return False
    return True


def _holds(value: Any, sign: str, wanted: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    match sign:
        case "$exists":
            return (value is not None) == wanted
        case "$in":
            return value is not None and any(one in wanted for one in values)
        case "$nin":
            return value is not None and not any(one in wanted for one in values)
        case "$gte" | "$lte" | "$gt" | "$lt":
            if not isinstance(value, int | float) or not isinstance(wanted, int | float):
                return False
            return {
                "$gte": value >= wanted,
                "$lte": value <= wanted,
                "$gt": value > wanted,
                "$lt": value < wanted,
            }[sign]
    raise AssertionError(f"{sign} is not what the tests know of Pinecone")


def _refused(status: int, message: str) -> Answer:
    return in_json(status, {"error": {"code": "ERROR", "message": message}, "status": status})
