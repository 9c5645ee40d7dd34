"""What the graph knows for a task: APIs that are new to the project, and what says more of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from vademecum.graph.code import CodeFile
from vademecum.graph.facade import Graph
from vademecum.graph.nodes import APIReference, CodeExample, ExternalDoc, Node
from vademecum.graph.sources import SOURCES
from vademecum.graph.versions import order
from vademecum.types import EntityId

MAX_NAMES = 40
"""Names of a task and a file that are looked up."""
_DOTTED = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`|\b([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """One thing from outside: advisory, with where it is from, for which version, and how old."""

    id: UUID
    title: str
    text: str
    example: str
    source: str
    version: str
    age_days: int | None
    """Since it was read; None where that is not known."""
    url: str
    warning: str
    """That it is deprecated, and what to use instead."""


def names_in(task: str) -> list[str]:
    """What a text names as code: dotted names, and names in backticks."""
    found = [match[1] or match[2] for match in _DOTTED.finditer(task)]
    return list(dict.fromkeys(name.rstrip(".") for name in found))[:MAX_NAMES]


def names_of(file: CodeFile) -> list[str]:
    """The APIs that a file calls, as its imports name them."""
    called = [use.target for use in file.uses if use.kind == "call"]
    plain = [re.sub(r"\(\)|\{\}|\[\]|\|", "", target) for target in called]
    return list(dict.fromkeys(plain))


async def known_apis(graph: Graph, names: Sequence[str], project: str) -> list[APIReference]:
    """The references of names, the best of each, in the order of the names.

    What was read of an installed package goes before what its pages say, then the newest version.
    """
    found: dict[str, APIReference] = {}
    for one in await graph.find(APIReference, list(names), project=project):
        other = found.get(one.name)
        if other is None or _better(one, other):
            found[one.name] = one
    return [found[name] for name in names if name in found]


async def uses(graph: Graph, apis: Sequence[APIReference], project: str) -> dict[str, set[UUID]]:
    """By name, the files and functions of the project that use an API, in any version."""
    every = await graph.find(APIReference, [api.name for api in apis], project=project)
    by_id = {one.id: one.name for one in every}
    used: dict[str, set[UUID]] = {api.name: set() for api in apis}
    for row in await graph.relations(
        list(by_id), project=project, kinds=["USED_IN"], incoming=False
    ):
        if row.project == project:
            used[by_id[row.start_id]].add(row.end_id)
    return used


async def of_apis(graph: Graph, apis: Sequence[APIReference], *, now: datetime) -> list[Outside]:
    """API references as an agent is told of them, with the documents that they are from."""
    ids = [UUID(api.source_doc_id) for api in apis if api.source_doc_id]
    documents = await graph.get(ids) if ids else {}
    found = []
    for api in apis:
        document = documents.get(EntityId(UUID(api.source_doc_id))) if api.source_doc_id else None
        found.append(_of_api(api, document if isinstance(document, ExternalDoc) else None, now))
    return found


def _of_api(api: APIReference, document: ExternalDoc | None, now: datetime) -> Outside:
    warning = api.deprecation
    if api.deprecated_in:
        until = f", to be removed in {api.removed_in}" if api.removed_in else ""
        warning = f"deprecated in {api.deprecated_in}{until}: {api.deprecation}"
    lines = [api.signature, api.description, *api.gotchas[:2]]
    return Outside(
        id=api.id,
        title=api.name,
        text="\n".join(line for line in lines if line),
        example=api.example_code,
        source=title_of(document.source if document else "environment"),
        version=f"{api.package} {api.version}".strip(),
        age_days=max(0, (now - document.last_updated).days) if document else None,
        url=document.source_url if document else "",
        warning=warning,
    )


def of_solution(node: Node, *, warning: str) -> Outside:
    """A piece of knowledge that solved an error, as an agent is told of it."""
    example = isinstance(node, CodeExample)
    said = ("explanation",) if example else ("summary", "description")
    return Outside(
        id=node.id,
        title=node.name,
        text=next((text for name in said if (text := getattr(node, name, ""))), ""),
        example=getattr(node, "code" if example else "example_code", ""),
        source=title_of(getattr(node, "source", "")),
        version=getattr(node, "works_with_version" if example else "version", ""),
        age_days=None,
        url=getattr(node, "source_url", ""),
        warning=warning,
    )


def of_document(document: ExternalDoc, passage: str, *, now: datetime) -> Outside:
    """A document as an agent is told of it."""
    return Outside(
        id=document.id,
        title=document.title,
        text=document.summary or passage,
        example="",
        source=title_of(document.source),
        version=document.version,
        age_days=max(0, (now - document.last_updated).days),
        url=document.source_url,
        warning="",
    )


def title_of(source: str) -> str:
    """What a source is called."""
    return SOURCES[source].title if source in SOURCES else source


def _better(one: APIReference, other: APIReference) -> bool:
    def rank(api: APIReference) -> tuple[bool, str]:
        return (not api.source_doc_id, order(api.version, api.ecosystem) or "")

    return rank(one) > rank(other)
