"""What is learned of documents: how often they are used, what came of it, how they rank."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import get_args
from uuid import uuid4

from vademecum.errors import BadInput
from vademecum.graph.nodes import ExternalDoc, KnowledgeUsage, Node, Outcome
from vademecum.graph.rank import Relevance, Use, relevance
from vademecum.store import knowledge
from vademecum.store.db import Connection, Database
from vademecum.store.knowledge import FIRST, NewScore, Scoring, StoredUse
from vademecum.types import EntityId

BATCH = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A document and how relevant it is, with the parts."""

    id: EntityId
    relevance: Relevance
    access_count: int
    last_accessed: datetime | None
    successes: int
    failures: int
    misled: int


async def note_documents(
    connection: Connection, docs: Collection[ExternalDoc], *, now: datetime
) -> None:
    """Score documents that were stated, and put them into their top lists."""
    for start in range(0, len(docs), BATCH):
        batch = list(docs)[start : start + BATCH]
        await knowledge.note_documents(connection, [_scoring(doc) for doc in batch])
        await rescore(connection, [doc.id for doc in batch], now=now)
    for category, language in sorted({(doc.category, doc.language.lower()) for doc in docs}):
        await knowledge.make_top(connection, category, language)


async def rescore(connection: Connection, ids: Collection[EntityId], *, now: datetime) -> int:
    """How many scores differ from before."""
    return await _write(connection, await knowledge.hold(connection, ids), now)


async def rescore_all(database: Database, *, now: datetime) -> int:
    """Score every document anew, in batches of a transaction each; safe to do again."""
    changed, last = 0, FIRST
    while True:
        async with database.transaction() as connection:
            rows = await knowledge.after(connection, last, BATCH)
            changed += await _write(connection, rows, now)
        if not rows:
            break
        last = rows[-1].entity_id
    async with database.connection() as connection:
        groups = await knowledge.top_groups(connection)
    for category, language in groups:
        async with database.transaction() as connection:
            await knowledge.make_top(connection, category, language)
    return changed


def usage(
    node: Node,
    *,
    agent_id: str,
    outcome: str,
    project: str,
    use: str | None,
    task: str,
    now: datetime,
) -> KnowledgeUsage:
    """The node of one use. Raises BadInput."""
    if outcome not in get_args(Outcome):
        raise BadInput(
            f"there is no outcome {outcome!r}", hint=f"Outcomes: {', '.join(get_args(Outcome))}."
        )
    if not agent_id.strip():
        raise BadInput("no agent was named")
    return KnowledgeUsage(
        in_project=project,
        agent_id=agent_id,
        doc_id=str(node.id),
        use=use or str(uuid4()),
        outcome=outcome,  # type: ignore[arg-type]
        timestamp=now,
        task=task,
    )


async def count(connection: Connection, node: Node, used: KnowledgeUsage) -> None:
    """Count a use, and what came of it instead of what was recorded of the same use before.

    Call it before the use is stored, in the same transaction.
    """
    if not await knowledge.hold(connection, [node.id]):  # uses of one document follow each other
        await knowledge.note_documents(connection, [_scoring(node, used.timestamp)])
        await knowledge.hold(connection, [node.id])
    before = await knowledge.usage_outcome(connection, used.id)
    await knowledge.count_use(
        connection,
        node.id,
        uses=int(before is None),
        successes=_change(before, used.outcome, "success"),
        failures=_change(before, used.outcome, "failure"),
        misled=_change(before, used.outcome, "misled"),
        now=used.timestamp,
    )
    await rescore(connection, [node.id], now=used.timestamp)
    if isinstance(node, ExternalDoc):
        await knowledge.make_top(connection, node.category, node.language.lower())


def scored(found: StoredUse, *, now: datetime, similarity: float = 0.0) -> Scored:
    return Scored(
        id=found.entity_id,
        relevance=relevance(
            found.source, found.last_updated, _use(found), now=now, similarity=similarity
        ),
        access_count=found.access_count,
        last_accessed=found.last_accessed,
        successes=found.successes,
        failures=found.failures,
        misled=found.misled,
    )


async def _write(connection: Connection, rows: Collection[Scoring], now: datetime) -> int:
    if not rows:
        return 0
    made = [relevance(row.source, row.last_updated, _use(row), now=now) for row in rows]
    scores = [
        NewScore(
            entity_id=row.entity_id,
            credibility=each.credibility,
            freshness=each.freshness,
            usage=each.usage,
            helpfulness=each.helpfulness,
            relevance=each.relevance,
        )
        for row, each in zip(rows, made, strict=True)
    ]
    return await knowledge.write_scores(connection, scores, now)


def _use(row: Scoring | StoredUse) -> Use:
    return Use(
        access_count=row.access_count,
        successes=row.successes,
        failures=row.failures,
        misled=row.misled,
    )


def _scoring(node: Node, now: datetime | None = None) -> Scoring:
    """Other kinds than documents have no date of their own: that of their first use."""
    last_updated = getattr(node, "last_updated", now)
    assert last_updated is not None
    return Scoring(
        entity_id=node.id,
        kind=node.kind,
        source=getattr(node, "source", ""),
        category=getattr(node, "category", ""),
        language=getattr(node, "language", "").lower(),
        last_updated=last_updated,
    )


def _change(before: str | None, after: str, outcome: str) -> int:
    return int(after == outcome) - int(before == outcome)
