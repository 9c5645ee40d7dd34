"""What language models were used for, and what it cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """The calls of one model for one purpose."""

    provider: str
    model: str
    purpose: str
    calls: int
    failed: int
    """Of the calls: without a completion to use."""
    tokens_in: int
    tokens_out: int
    cost: float
    """US dollars, of the calls whose price was declared."""
    unpriced: int
    """Of the calls: those whose price was not declared."""


async def add(connection: Connection, use: Mapping[str, object]) -> None:
    """One call; the keys are the columns of `model_usage`."""
    await connection.execute(SQL["model_used"], use)


async def spend(connection: Connection, last: timedelta) -> list[Spend]:
    """Of the period that ends now, the dearest first."""
    async with connection.cursor(row_factory=class_row(Spend)) as cursor:
        await cursor.execute(SQL["model_spend"], {"last": last})
        return await cursor.fetchall()
