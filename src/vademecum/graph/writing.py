"""A statement into rows: what is new is stored, what is no longer said goes, in one transaction."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from vademecum.errors import BadInput
from vademecum.graph import learning
from vademecum.graph.nodes import ExternalDoc, Node
from vademecum.graph.relations import Relation
from vademecum.store import documents
from vademecum.store import graph as rows
from vademecum.store.db import Connection
from vademecum.store.graph import EntityRow, NewRelation, Written
from vademecum.types import CollectionId, Document, EntityId, Source

EXTERNAL = "external-knowledge"
"""The collection in which titles, summaries and beginnings of documents are searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """All that a source says under a key. Raises BadInput where it cannot be said."""

    source: str
    key: str
    project: str = ""
    nodes: Collection[Node] = ()
    relations: Collection[Relation] = ()
    mentions: Collection[Node] = ()
    digest: str = ""
    replace: bool = True
    keeps: bool = True
    """Whether what is only mentioned stays for as long as this is said."""

    def __post_init__(self) -> None:
        if not self.source or not self.key:
            raise BadInput("a statement has a source and a key")
        for node in (*self.stated.values(), *self.mentioned.values()):
            if node.project not in ("", self.project):
                raise BadInput(
                    f"{node.kind} {node.name!r} is of project {node.project!r},"
                    f" the statement of {self.project!r}"
                )

    @property
    def stated(self) -> dict[EntityId, Node]:
        return {node.id: node for node in self.nodes}

    @property
    def mentioned(self) -> dict[EntityId, Node]:
        """Nodes that are only referred to, ends of relations among them."""
        ends = (end for relation in self.relations for end in (relation.start, relation.end))
        stated = {node.id for node in self.nodes}
        return {node.id: node for node in (*self.mentions, *ends) if node.id not in stated}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementReport:
    """What a statement changed."""

    entities: Written
    relations: Written
    removed: int


async def write(
    connection: Connection,
    statement: Statement,
    *,
    external: CollectionId | None,
    now: Callable[[], datetime],
) -> StatementReport:
    """Call inside a transaction. `external` is where documents are searched, if there are any."""
    place = (statement.project, statement.source, statement.key)
    stated, mentioned = statement.stated, statement.mentioned
    made = {new.id: new for new in (_relation(r, place) for r in statement.relations)}
    number = await rows.open_statement(connection, *place, statement.digest)
    entities = await rows.upsert_entities(connection, number, [row(n) for n in stated.values()])
    if statement.keeps:
        entities += await rows.upsert_entities(
            connection, number, [row(node) for node in mentioned.values()], mention=True
        )
    relations = await rows.upsert_relations(connection, number, made.values())
    removed = 0
    if statement.replace:
        removed = await rows.retract(
            connection,
            number,
            keep_entities=[*stated, *mentioned],
            keep_relations=list(made),
        )
    docs = [node for node in stated.values() if isinstance(node, ExternalDoc)]
    if docs and external is not None:
        await make_searchable(connection, external, docs, now=now())
    return StatementReport(entities=entities, relations=relations, removed=removed)


async def make_searchable(
    connection: Connection, external: CollectionId, docs: Collection[ExternalDoc], *, now: datetime
) -> None:
    """Score documents and store what is searched of them; a worker indexes it."""
    await learning.note_documents(connection, docs, now=now)
    for doc in docs:
        await documents.upsert(connection, external, _searched_at(doc.id), _searched(doc))


def url_of(number: EntityId) -> str:
    return f"urn:uuid:{number}"


def _searched_at(number: EntityId) -> Source:
    return Source(path=url_of(number), url=url_of(number))


def _searched(doc: ExternalDoc) -> Document:
    """The document as it is searched; its whole content is in a file."""
    parts = [f"# {doc.title}", doc.summary, doc.content_snippet]
    if _begins_alike(doc.summary, doc.content_snippet):
        parts.remove(min(doc.summary, doc.content_snippet, key=len))
    text = "\n\n".join(part for part in parts if part) + "\n"
    facets = {
        "language": doc.language.lower(),
        "package": doc.package.lower(),
        "category": doc.category,
    }
    return documents.written(
        doc.title, text, {name: value for name, value in facets.items() if value}
    )


def _begins_alike(one: str, other: str) -> bool:
    """Whether one is but the other, cut short."""
    first, second = (" ".join(text.split()).rstrip("…") for text in (one, other))
    return first.startswith(second) or second.startswith(first)


def row(node: Node) -> EntityRow:
    return EntityRow(
        id=node.id,
        kind=node.kind,
        project=node.project,
        name=node.name,
        properties=node.properties(),
    )


def _relation(relation: Relation, statement: tuple[str, str, str]) -> NewRelation:
    return NewRelation(
        id=relation.id(statement),
        kind=relation.kind,
        start_id=relation.start.id,
        end_id=relation.end.id,
        properties=relation.stored(),
    )
