"""Daily maintenance and weekly analysis: safe to run twice, and to miss."""

import asyncio
import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from vademecum.graph.content import Content, remove_parts
from vademecum.graph.refresh import RefreshReport
from vademecum.store import graph_queries, knowledge
from vademecum.store.db import Database
from vademecum.types import EntityId

UNUSED_DAYS = 90
MOST_REFRESHED = 500
"""Documents that one daily run looks at again."""
LISTED = 20
ITSELF = EntityId(UUID(int=0))
"""What the change log calls the graph itself."""
Task = Literal["daily_maintenance", "weekly_analysis"]
EVERY: dict[Task, timedelta] = {
    "daily_maintenance": timedelta(days=1),
    "weekly_analysis": timedelta(days=7),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """What the daily maintenance did."""

    rescored: int
    refreshed: RefreshReport
    content_removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What the weekly analysis found."""

    top: list[dict[str, Any]]
    unused: list[dict[str, Any]]
    sources: list[dict[str, Any]]
    gaps: list[dict[str, Any]]


async def analyse(database: Database, *, now: datetime) -> Analysis:
    """Most used documents, those never used, what sources are worth, and what is missing."""
    before = now - timedelta(days=UNUSED_DAYS)
    async with database.connection() as connection:
        return Analysis(
            top=await knowledge.most_used(connection, LISTED),
            unused=await knowledge.never_used(connection, before=before, limit=LISTED),
            sources=await graph_queries.ask(connection, "effective_sources", {"limit": 100}),
            gaps=await knowledge.gaps(connection, LISTED),
        )


async def clean_content(database: Database, content: Content, *, now: datetime) -> int:
    """Remove texts that nobody read for UNUSED_DAYS, or whose document is gone, and what a kill
    left half-written, replies among them; how many."""
    before = now - timedelta(days=UNUSED_DAYS)
    old = await asyncio.to_thread(content.unused, before=before.timestamp())
    async with database.connection() as connection:
        used = await knowledge.used_since(connection, old, before)
    unused = [number for number in old if number not in used]
    await asyncio.to_thread(content.remove, unused)
    hour = (now - timedelta(hours=1)).timestamp()
    parts = await asyncio.to_thread(remove_parts, content.folder, before=hour)
    return len(unused) + parts


async def take_turn(database: Database, task: Task, *, now: datetime) -> bool:
    """Whether the task is due and ours: of several servers one gets the turn."""
    async with database.transaction() as connection:
        return await knowledge.take_turn(connection, task, now=now, before=now - EVERY[task])


async def note(database: Database, task: Task, found: Maintenance | Analysis) -> None:
    """Keep what came of it in the change log, in short."""
    short = {
        key: len(value) if isinstance(value, list) else value
        for key, value in asdict(found).items()
    }
    async with database.connection() as connection:
        await knowledge.note_change(
            connection, ITSELF, "graph", f"{task}_done", json.dumps(short, default=str)
        )
