"""The named queries: what each answers, and what it is asked with.

Their text is SQL in store/sql/graph_queries.sql and Cypher in projections/cypher/.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from vademecum.errors import BadInput
from vademecum.graph.versions import Ecosystem, order

MAX_ROWS = 1000
EFFECTIVE = 5
"""A document has to have helped more often than this to be called effective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuery:
    summary: str
    required: tuple[str, ...] = ()
    optional: Mapping[str, Any] | None = None
    limit: int = 100
    """Rows where none is asked for."""


QUERIES: dict[str, NamedQuery] = {
    "usable_apis": NamedQuery(
        summary="APIs of a package that can be used in a version of it",
        required=("package", "version"),
        optional={"ecosystem": "pypi", "name": None},
    ),
    "language_apis": NamedQuery(
        summary="APIs that work with a version of a language",
        required=("language", "version"),
        optional={"ecosystem": "pypi"},
    ),
    "framework_practices": NamedQuery(
        summary="Best practices that hold for a version of a framework",
        required=("package", "version"),
        optional={"ecosystem": "pypi"},
        limit=5,
    ),
    "deprecated_apis": NamedQuery(
        summary="What is deprecated or removed in a version of a package, and its replacement",
        required=("package", "version"),
        optional={"ecosystem": "pypi"},
    ),
    "replacements": NamedQuery(
        summary="What replaces an API, step by step",
        required=("name",),
        optional={"ecosystem": "pypi"},
    ),
    "effective_documents": NamedQuery(
        summary="Documents of a category that helped",
        required=("category",),
        optional={"least": EFFECTIVE},
        limit=10,
    ),
    "effective_sources": NamedQuery(summary="Sources by how often what they say helped"),
    "top_documents": NamedQuery(
        summary="The best documents of a category, in a language or all",
        required=("category",),
        optional={"language": ""},
        limit=20,
    ),
    "neighbourhood": NamedQuery(
        summary="What is known about a file of a project, or about one of its functions",
        required=("project", "path"),
        optional={"function": None},
    ),
    "api_uses": NamedQuery(
        summary="Where a project uses an API",
        required=("project", "name"),
    ),
}


def prepare(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All that a named query is run with. Raises BadInput."""
    if name not in QUERIES:
        raise BadInput(f"there is no query {name!r}", hint=f"Queries: {', '.join(QUERIES)}.")
    query = QUERIES[name]
    optional = dict(query.optional or {}) | {"limit": query.limit}
    known = (*query.required, *optional)
    if unknown := sorted(set(given) - set(known)):
        raise BadInput(
            f"{name} has no parameter {', '.join(unknown)}", hint=f"It has {', '.join(known)}."
        )
    if missing := [each for each in query.required if not given.get(each)]:
        raise BadInput(
            f"{name} needs {', '.join(missing)}", hint=f"For instance -p {missing[0]}=VALUE."
        )
    values = optional | {key: value for key, value in given.items() if value is not None}
    for key in ("limit", "least"):
        if key in values:
            values[key] = _whole(key, values[key])
    if values["limit"] < 1:
        raise BadInput("limit must be at least 1")
    values["limit"] = min(values["limit"], MAX_ROWS)
    if values.get("ecosystem", "") not in get_args(Ecosystem):
        raise BadInput(f"there is no ecosystem {values['ecosystem']!r}", hint="pypi or npm.")
    if "version" in values:
        values["order"] = order(str(values["version"]), values["ecosystem"])
        if values["order"] is None:
            raise BadInput(f"{values['version']!r} is no version of {values['ecosystem']}")
    if name == "top_documents":
        values["language"] = str(values["language"]).lower()
    return values


def _whole(key: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise BadInput(f"{key} must be a whole number, not {value!r}") from None
