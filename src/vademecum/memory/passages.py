"""The sentences of a memory and of its versions, as search reads them.

They are derived from the versions, kept beside them with their terms and vectors, and brought up
to date by the search that finds them behind; `forget` removes them like any row of a user.
"""

from dataclasses import replace
from uuid import UUID

import numpy as np

from vademecum.inference.embedder import Embedder
from vademecum.memory.narrative import BETWEEN, EMPTY
from vademecum.memory.recall import Entry, Passage
from vademecum.search.terms import terms
from vademecum.store import memory as rows
from vademecum.store.db import Connection
from vademecum.store.memory import MemoryVersion, StoredPassage


async def read_entries(
    connection: Connection, user: UUID, project: str, embedder: Embedder | None
) -> list[Entry]:
    """Every sentence once, the newest first; with a vector each where there is an embedder.

    Raises ModelUnavailable.
    """
    known = {one.text: one for one in await rows.passages(connection, user, project)}
    newest = max((one.version for one in known.values()), default=0)
    changed: dict[str, StoredPassage] = {}
    for version in await rows.versions(connection, user, project, since=newest):
        for text, section in sentences_of(version):
            before = known.get(text) or _unseen(text)
            changed[text] = replace(before, section=section, version=version.version)
    found = known | changed
    if embedder is not None:
        space = embedder.space.key
        lacking = [one for one in found.values() if one.space != space]
        if lacking:
            vectors = await embedder.embed([one.text for one in lacking])
            for one, vector in zip(lacking, vectors, strict=True):
                made = vector.astype("<f4").tobytes()
                changed[one.text] = replace(found[one.text], space=space, embedding=made)
    if changed:
        await rows.store_passages(connection, user, project, changed.values())
    return [
        _entry(one, project)
        for one in sorted((found | changed).values(), key=lambda one: -one.version)
    ]


def sentences_of(version: MemoryVersion) -> list[tuple[str, str]]:
    """The sentences of a version that say something, each with the title of its section."""
    found = []
    for block in version.content.split("\n\n"):
        title, _, body = block.partition("\n")
        said = (text for text in BETWEEN.split(body) if text.strip())
        found += [(text, title) for text in said if text != EMPTY.get(title)]
    return found


def _unseen(text: str) -> StoredPassage:
    return StoredPassage(
        text=text, section="", version=0, terms=terms(text), space=None, embedding=None
    )


def _entry(one: StoredPassage, project: str) -> Entry:
    passage = Passage(text=one.text, project=project, section=one.section, version=one.version)
    vector = np.frombuffer(one.embedding, dtype="<f4") if one.embedding else None
    return Entry(passage=passage, terms=one.terms, vector=vector)
