"""Evidence of notes that names passages of documents, as hits and citations name them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vademecum.access import visible
from vademecum.errors import BadInput
from vademecum.store import rests_on
from vademecum.store.db import Connection
from vademecum.store.rests_on import Passage

_MARKED = re.compile(r"\[?\s*source:\s*([^\]]+?)\s*\]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """`COLLECTION/PATH#SECTION`; without a section it is the whole document."""

    text: str
    collection: str
    path: str
    section: str
    marked: bool
    """Whether `source:` says that it must be one; else it may be a file or anything."""

    def names(self, collection: str, path: str, section: str) -> bool:
        """Whether it names this place."""
        return (self.collection, self.path) == (collection, path) and self.section in ("", section)


def references(evidence: Sequence[str]) -> list[Reference]:
    """What may be references among pieces of evidence."""
    found = []
    for text in evidence:
        marked = _MARKED.fullmatch(text.strip())
        collection, _, place = (marked[1] if marked else text.strip()).partition("/")
        path, _, section = place.partition("#")
        if marked or (collection and path and "\n" not in text):
            found.append(
                Reference(
                    text=text,
                    collection=collection,
                    path=path,
                    section=section,
                    marked=marked is not None,
                )
            )
    return found


async def passages(connection: Connection, evidence: Sequence[str]) -> list[Passage]:
    """The chunks that evidence names, as they are now.

    Raises BadInput for a marked reference that names nothing.
    """
    named = references(evidence)
    seen = [one for one in named if visible(one.collection)]
    found = await rests_on.passages_at(
        connection, [(one.collection, one.path, one.section) for one in seen]
    )
    for one in named:
        if one.marked and not any(one.names(f.collection, f.path, f.section_id) for f in found):
            raise BadInput(
                f"{one.text!r} names no passage", hint="It is COLLECTION/PATH#SECTION, as hits say."
            )
    return found
