"""What the caller of the moment may do: everything on this machine, less with an API key.

A surface that lets others in sets `CURRENT` for the time of a call. `App` asks before it touches a
collection or the memory of a user, so a surface cannot forget to.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, get_args

from vademecum.errors import NotAllowed, UnknownCollection

Scope = Literal["read", "write", "admin", "memory", "spend"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

_IMPLIED: dict[Scope, tuple[Scope, ...]] = {
    "read": ("read", "write", "admin"),
    "write": ("write", "admin"),
    "admin": ("admin",),
    "memory": ("memory",),
    "spend": ("spend",),
}
"""By what is asked for, the scopes that include it. Naming users, and having language models asked,
which may cost money, go with no other scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Scopes, and the collections that they hold for."""

    name: str
    scopes: frozenset[Scope]
    collections: frozenset[str] | None = None
    """None: all, those that are made later too."""
    rate: float | None = None
    """Requests a second; None is no limit."""
    user: str | None = None
    """The hash of the only user whose memory may be named; None is any."""

    def has(self, scope: Scope) -> bool:
        return not self.scopes.isdisjoint(_IMPLIED[scope])

    def sees(self, collection: str) -> bool:
        return self.collections is None or collection in self.collections


EVERYTHING = Access(name="this machine", scopes=frozenset(SCOPES))
CURRENT: ContextVar[Access] = ContextVar("access", default=EVERYTHING)


@contextmanager
def acting(access: Access) -> Iterator[None]:
    """Let what is done meanwhile, and the tasks it starts, have only this access."""
    token = CURRENT.set(access)
    try:
        yield
    finally:
        CURRENT.reset(token)


def require(scope: Scope, collection: str | None = None) -> None:
    """Raises NotAllowed without the scope, UnknownCollection where the collection is not seen:
    that it exists is nobody else's business."""
    access = CURRENT.get()
    if not access.has(scope):
        raise NotAllowed(access.name, scope)
    if collection is not None and not access.sees(collection):
        raise UnknownCollection(collection, sorted(access.collections or ()))


def require_all(scope: Scope) -> None:
    """Raises NotAllowed without the scope for all collections."""
    access = CURRENT.get()
    if not access.has(scope) or access.collections is not None:
        raise NotAllowed(access.name, f"{scope} of all collections")


def require_user(user: str | None) -> None:
    """Raises NotAllowed without the scope for memory, or where it is for another user than the one
    of this hash; None is all users."""
    access = CURRENT.get()
    require("memory")
    if access.user is not None and access.user != user:
        raise NotAllowed(access.name, "memory of this user" if user else "memory of all users")


def may_spend() -> bool:
    """Whether the caller may have language models asked."""
    return CURRENT.get().has("spend")


def visible(collection: str) -> bool:
    """Whether the caller may know of this collection."""
    return CURRENT.get().sees(collection)


def sees_all() -> bool:
    """Whether the caller may know of every collection."""
    return CURRENT.get().collections is None
