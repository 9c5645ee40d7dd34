"""Where a project's pages are, and what is stored of an address."""

from vademecum.access import require
from vademecum.cache.state import CacheState
from vademecum.errors import UnknownCollection
from vademecum.store import cache, collections, documents
from vademecum.store.cache import StoredPage
from vademecum.store.collections import Collection
from vademecum.types import CollectionId

PUBLIC = "web"
"""The collection of pages that all share who share the database."""


def collection_name(state: CacheState, project: str | None) -> str:
    """That of the project where it keeps its pages to itself, else the public one."""
    if project is None or not state.rules.is_private(project):
        return PUBLIC
    return f"{PUBLIC}-{documents.content_hash(project)[:16]}"


def is_of_pages(collection: str) -> bool:
    return collection == PUBLIC or collection.startswith(f"{PUBLIC}-")


async def stored(state: CacheState, address: str, project: str | None) -> StoredPage | None:
    """The project's own page, else the public one; only if its content is stored."""
    for name in dict.fromkeys((collection_name(state, project), PUBLIC)):
        known = await existing(state, name)
        page = await find(state, known, address, project) if known else None
        if page is None:  # another process may have made the collection anew
            current = await existing(state, name, fresh=True)
            if current is not None and current != known:
                page = await find(state, current, address, project)
        if page is not None and page.document_id is not None:
            return page
    return None


async def find(
    state: CacheState, collection: Collection, address: str, project: str | None = None
) -> StoredPage | None:
    """The row of an address, with content or still without, as it is for a project."""
    async with state.database.connection() as connection:
        return await cache.page(connection, collection.id, address, project or "")


async def own(state: CacheState, project: str | None) -> Collection:
    """Where the project's pages are to be stored, made where it is new: as it is at this moment."""
    return await _made(state, collection_name(state, project))


async def existing(state: CacheState, name: str, *, fresh: bool = False) -> Collection | None:
    """As far as it was made; looked up again with `fresh`."""
    require("read", name)
    if not fresh and name in state.collections:
        return state.collections[name]
    async with state.database.connection() as connection:
        try:
            state.collections[name] = await collections.find(connection, name)
        except UnknownCollection:
            return None
    return state.collections[name]


async def by_id(state: CacheState, number: CollectionId, *, fresh: bool = False) -> Collection:
    """With `fresh` looked up again where it had no vectors. Raises UnknownCollection."""
    for name, collection in list(state.collections.items()):
        if collection.id == number:
            unsettled = fresh and collection.space_id is None
            return await _known(state, name) if unsettled else collection
    async with state.database.connection() as connection:
        name = await cache.collection_name(connection, number)
    if not name:
        raise UnknownCollection(f"number {number}", [])
    return await _known(state, name)


async def _known(state: CacheState, name: str) -> Collection:
    """One that exists, as it is at this moment: looking makes none."""
    found = await existing(state, name, fresh=True)
    if found is None:
        raise UnknownCollection(name, [])
    return found


async def _made(state: CacheState, name: str) -> Collection:
    require("read", name)
    state.collections[name] = await state.collection_for(name)
    return state.collections[name]
