"""How rows of the graph look in Neo4j."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vademecum.graph.nodes import KINDS
from vademecum.graph.relations import RELATIONS
from vademecum.store.graph import EntityRow, RelationRow

LABELS = tuple(KINDS)
TYPES = tuple(RELATIONS)
TIMES = frozenset(
    ("last_updated", "last_accessed", "last_validated", "last_verified", "decided_at", "timestamp")
)


def node(row: EntityRow) -> dict[str, Any]:
    """The properties of a node; lists of anything but text are JSON, as the design has them."""
    return _plain(row.properties) | {
        "id": str(row.id),
        "kind": row.kind,
        "name": row.name,
        "project": row.project,
    }


def relationship(row: RelationRow) -> dict[str, Any]:
    return _plain(row.properties) | {
        "id": str(row.id),
        "project": row.project,
        "source": row.source,
        "stated_by": row.stated_by,
    }


def _plain(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _value(key, value) for key, value in properties.items() if value is not None}


def _value(key: str, value: Any) -> Any:
    if key in TIMES:
        return datetime.fromisoformat(value)
    if isinstance(value, dict) or (
        isinstance(value, list) and not all(isinstance(each, str) for each in value)
    ):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value
