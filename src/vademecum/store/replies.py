"""Rows of what servers of knowledge replied; the content is in files."""

from dataclasses import asdict, dataclass
from datetime import datetime

from psycopg.rows import class_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """What finds a reply's file, says whether it is whole, and asks whether it has changed."""

    url: str
    accept: str
    """The kinds of content that were asked for."""
    final_url: str
    """Where the redirects ended."""
    content_type: str
    digest: str
    """SHA-256 of the file, hexadecimal."""
    size: int
    """Bytes."""
    etag: str | None
    last_modified: str | None
    fetched_at: datetime
    """Or last found unchanged."""


async def reply(connection: Connection, url: str, accept: str) -> StoredReply | None:
    async with connection.cursor(row_factory=class_row(StoredReply)) as cursor:
        await cursor.execute(SQL["reply"], {"url": url, "accept": accept})
        return await cursor.fetchone()


async def keep(connection: Connection, kept: StoredReply) -> None:
    await connection.execute(SQL["keep_reply"], asdict(kept))


async def remove_older(connection: Connection, before: datetime) -> list[tuple[str, str]]:
    """Remove the rows of replies not fetched since; their addresses and what each asked for."""
    cursor = await connection.execute(SQL["old_replies"], {"before": before})
    return [(str(url), str(accept)) for url, accept in await cursor.fetchall()]
