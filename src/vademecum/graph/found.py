"""What a source found, into the graph: one statement a document, in the caller's transaction."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from vademecum.graph import changelog, writing
from vademecum.graph.marking import mark
from vademecum.graph.nodes import APIReference, BestPractice, ExternalDoc, Node
from vademecum.graph.page_notices import PageNotice
from vademecum.graph.relations import Relation
from vademecum.graph.sources.adapter import FoundDocument
from vademecum.graph.versions import order
from vademecum.graph.writing import Statement
from vademecum.store import graph as rows
from vademecum.store import knowledge
from vademecum.store.db import Connection
from vademecum.types import CollectionId, EntityId

Change = Literal["new", "changed", "unchanged"]
EXACT = "environment"
"""Who reads installed packages themselves: what it states of an API is not written over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a document, and how many APIs it newly calls deprecated or removed."""

    change: Change
    deprecated: int


async def take(
    connection: Connection,
    source: str,
    found: FoundDocument,
    *,
    external: CollectionId,
    now: Callable[[], datetime],
) -> Taken:
    """State a document with all that was read in it, as `source` says it."""
    doc = found.document
    known = await rows.by_id(connection, [doc.id], [""])
    before = known[0].properties.get("content_hash") if known else None
    apis = [node for node in found.nodes if isinstance(node, APIReference)]
    exact = await _exact(connection, apis)
    corroborated = await _corroborated(connection, found)
    nodes = [corroborated.get(node.id, node) for node in found.nodes if node.id not in exact]
    told = await _told_by_changelog(connection, found)
    statement = Statement(
        source=source,
        key=found.key,
        nodes=nodes,
        mentions=[node for node in found.nodes if node.id in exact],
        relations=[
            *(_resting(relation, doc) for relation in found.relations),
            *await _supersedes(connection, doc),
            *(_documented(notice, doc) for notice in told),
        ],
        digest=doc.content_hash,
    )
    deprecated = await _note_deprecations(connection, [api for api in apis if api.id not in exact])
    await writing.write(connection, statement, external=external, now=now)
    deprecated += await mark(connection, doc, told, now=now)
    if before is None:
        return Taken(change="new", deprecated=deprecated)
    if before == doc.content_hash:
        return Taken(change="unchanged", deprecated=deprecated)
    await knowledge.note_change(connection, doc.id, doc.title, "content_updated")
    return Taken(change="changed", deprecated=deprecated)


async def _told_by_changelog(connection: Connection, found: FoundDocument) -> list[PageNotice]:
    """What a changelog says of the package's APIs that are known here."""
    doc = found.document
    if not found.is_changelog:
        return []
    listed = await rows.of_package(
        connection, "APIReference", doc.ecosystem, doc.package, None, [""]
    )
    apis = [APIReference.of(row.properties) for row in listed]
    names = {api.name: "." in api.function_name for api in apis}
    said = changelog.resolved(changelog.notices(found.text, doc.ecosystem), names)
    return [
        PageNotice(
            api=api,
            since=notice.since,
            until=notice.until,
            replacement=notice.replacement,
            sentence=notice.sentence,
        )
        for api in apis
        if (notice := said.get(api.name)) is not None
        and not changelog.is_back(notice, api.version, doc.ecosystem)
    ]


def _resting(relation: Relation, doc: ExternalDoc) -> Relation:
    """What was read in the document's words rests on them."""
    if relation.rests_on is None and "evidence" in relation.properties:
        return replace(relation, rests_on=doc)
    return relation


def _documented(notice: PageNotice, doc: ExternalDoc) -> Relation:
    return Relation(
        kind="DOCUMENTED_IN",
        start=notice.api,
        end=doc,
        key="notice",
        properties={"evidence": notice.sentence},
        rests_on=doc,
    )


async def _exact(connection: Connection, apis: list[APIReference]) -> set[EntityId]:
    stated = await rows.stated_by(connection, [api.id for api in apis])
    return {number for number, who in stated.items() if any(one == EXACT for one, _ in who)}


async def _corroborated(connection: Connection, found: FoundDocument) -> dict[EntityId, Node]:
    """Practices that other documents state as well, with the number of all."""
    practices = {node.id: node for node in found.nodes if isinstance(node, BestPractice)}
    if not practices:
        return {}
    stands = await rows.relations_of(
        connection, list(practices), [""], kinds=["DOCUMENTED_IN"], incoming=False
    )
    others: dict[EntityId, set[EntityId]] = {}
    for row in stands:
        if row.end_id != found.document.id:
            others.setdefault(row.start_id, set()).add(row.end_id)
    return {
        number: replace(practices[number], source_count=1 + len(documents))
        for number, documents in others.items()
    }


async def _supersedes(connection: Connection, doc: ExternalDoc) -> list[Relation]:
    """The same document of older versions of its package."""
    if not (doc.package and doc.version):
        return []
    listed = await rows.of_package(
        connection, "ExternalDoc", doc.ecosystem, doc.package, None, [""]
    )
    own = order(doc.version, doc.ecosystem) or ""
    older = [
        other
        for other in (ExternalDoc.of(row.properties) for row in listed)
        if other.source == doc.source
        and _without_version(other) == _without_version(doc)
        and (order(other.version, other.ecosystem) or "") < own
    ]
    return [Relation(kind="SUPERSEDES", start=doc, end=other) for other in older]


def _without_version(doc: ExternalDoc) -> str:
    """What tells the documents of one version of a package apart."""
    return doc.title.replace(doc.version, "").strip() if doc.version else doc.title


async def _note_deprecations(connection: Connection, apis: list[APIReference]) -> int:
    """Log what is newly said to be deprecated of APIs that were known; how many."""
    noted = 0
    known = {
        row.id: row.properties
        for row in await rows.by_id(connection, [api.id for api in apis], [""])
    }
    for api in apis:
        before = known.get(api.id)
        if before is not None and api.deprecation and not before.get("deprecation"):
            await knowledge.note_change(connection, api.id, api.name, "deprecated", api.deprecation)
            noted += 1
    return noted
