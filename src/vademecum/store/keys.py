"""API keys: made and shown once, kept as hashes, revoked."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.errors import UniqueViolation
from psycopg.rows import class_row

from vademecum.access import SCOPES, Access, Scope
from vademecum.errors import BadInput
from vademecum.store.collections import check_name
from vademecum.store.db import Connection
from vademecum.store.sql import SQL

PREFIX = "vade"
MAX_NAME = 100
MAX_NUMBER = 2**31 - 1
LEAST_RATE, MOST_RATE = 0.001, 1_000_000.0
"""Requests a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    id: int
    name: str
    scopes: list[str]
    collections: list[str] | None
    """None: all."""
    rate: float | None
    """Requests a second."""
    one_user: bool
    """Whether it names one user's memory only."""
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    """To about a minute."""
    revoked_at: datetime | None


async def create(
    connection: Connection,
    name: str,
    *,
    scopes: Sequence[Scope],
    collections: Sequence[str] | None = None,
    rate: float | None = None,
    days: int | None = None,
    user: str | None = None,
) -> str:
    """A new key's secret, which is nowhere else; `user` is the hash of the only user whose memory
    it may name. Raises BadInput."""
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise BadInput(f"a key has a name of 1 to {MAX_NAME} characters")
    if not scopes or (unknown := set(scopes) - set(SCOPES)):
        wrong = ", ".join(sorted(unknown)) if scopes else "nothing"
        raise BadInput(f"a key cannot be for {wrong}", hint=f"Scopes are {', '.join(SCOPES)}.")
    for collection in collections or ():
        check_name(collection)
    if collections is not None and not collections:
        raise BadInput("a key for no collection opens nothing")
    if rate is not None and not LEAST_RATE <= rate <= MOST_RATE:
        raise BadInput(
            f"{rate} requests a second cannot be held to",
            hint=f"A rate is from {LEAST_RATE} to {MOST_RATE:.0f}.",
        )
    if days is not None and not 1 <= days <= 36_500:
        raise BadInput(f"a key lives from 1 to 36500 days, not {days}")
    if user is not None and "memory" not in scopes:
        raise BadInput("a key for one user needs the scope memory")
    secret = secrets.token_urlsafe(32)
    values = {
        "name": name,
        "hash": _hash(secret),
        "scopes": [scope for scope in SCOPES if scope in scopes],
        "collections": sorted(set(collections)) if collections is not None else None,
        "rate": rate,
        "days": days,
        "user": user,
    }
    try:
        row = await (await connection.execute(SQL["create_key"], values)).fetchone()
    except UniqueViolation:
        raise BadInput(
            f"there is a key named {name!r} already", hint="`vade keys list` shows them."
        ) from None
    assert row is not None
    return f"{PREFIX}_{row[0]}_{secret}"


async def listed(connection: Connection) -> list[Key]:
    async with connection.cursor(row_factory=class_row(Key)) as cursor:
        await cursor.execute(SQL["keys"])
        return await cursor.fetchall()


async def revoke(connection: Connection, name: str) -> None:
    """From now on the key opens nothing. Raises BadInput."""
    if (await connection.execute(SQL["revoke_key"], {"name": name})).rowcount == 0:
        raise BadInput(f"there is no key named {name!r}", hint="`vade keys list` shows them.")


def number_of(text: str) -> int | None:
    """The key that a text claims to be; None where it cannot be one."""
    prefix, _, rest = text.partition("_")
    number, _, secret = rest.partition("_")
    if prefix != PREFIX or not secret or not (number.isascii() and number.isdecimal()):
        return None
    return int(number) if len(number) <= 10 and int(number) <= MAX_NUMBER else None


async def access(connection: Connection, text: str) -> Access | None:
    """What a key opens; None where there is no such key, or no more."""
    number = number_of(text)
    if number is None:
        return None
    row = await (await connection.execute(SQL["live_key"], {"id": number})).fetchone()
    if row is None:
        return None
    name, digest, scopes, collections, rate, user = row
    if not secrets.compare_digest(_hash(text.split("_", 2)[2]), digest):
        return None
    await connection.execute(SQL["key_used"], {"id": number})
    return Access(
        name=f"key {name!r}",
        scopes=frozenset(scope for scope in SCOPES if scope in scopes),
        collections=None if collections is None else frozenset(collections),
        rate=rate,
        user=user,
    )


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
