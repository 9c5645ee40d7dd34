"""API keys: what somebody else than the owner of this machine may do, and with what."""

from collections.abc import Callable, Sequence

from vademecum.access import Access, Scope, require, require_all, require_user
from vademecum.store import keys
from vademecum.store.db import Database
from vademecum.store.keys import Key


class KeyCalls:
    """`app.keys`."""

    def __init__(self, database: Database, *, hash_of: Callable[[str], str]) -> None:
        """`hash_of` is under which a user's memory is kept."""
        self._database = database
        self._hash_of = hash_of

    async def create(
        self,
        name: str,
        *,
        scopes: Sequence[Scope],
        collections: Sequence[str] | None = None,
        rate: float | None = None,
        days: int | None = None,
        user: str | None = None,
    ) -> str:
        """The secret of a new key; it cannot be shown again. With scope memory it may be for one
        `user` only. Raises BadInput, NotAllowed."""
        require_all("admin")
        bound = None if user is None else self._hash_of(user)
        for scope in scopes:  # nobody hands on what they have not got
            require_user(bound) if scope == "memory" else require(scope)
        async with self._database.connection() as connection:
            return await keys.create(
                connection,
                name,
                scopes=scopes,
                collections=collections,
                rate=rate,
                days=days,
                user=bound,
            )

    async def listed(self) -> list[Key]:
        require_all("admin")
        async with self._database.connection() as connection:
            return await keys.listed(connection)

    async def revoke(self, name: str) -> None:
        """Raises BadInput."""
        require_all("admin")
        async with self._database.connection() as connection:
            await keys.revoke(connection, name)

    async def access(self, secret: str) -> Access | None:
        """What a key opens; None where there is no such key, or no more."""

        async def look() -> Access | None:
            async with self._database.connection() as connection:
                return await keys.access(connection, secret)

        return await self._database.retry(look, tries=2)
