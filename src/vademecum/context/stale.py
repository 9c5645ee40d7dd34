"""Knowledge that rests on what has changed since: `app.stale`.

Nothing is marked. Notes and relations keep hashes of what they rest on, and whether that still
stands is asked when somebody wants to know: a change cannot be missed, and one that is taken back
is forgotten.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from vademecum.access import require_all
from vademecum.errors import VadeError
from vademecum.graph.nodes import kind_named
from vademecum.notes.types import ANSWER
from vademecum.store import collections, rests_on
from vademecum.store.db import Database
from vademecum.store.rests_on import RestingRelation, StaleNote, StaleSummary

Kind = Literal["answer", "note", "summary", "relation"]
ADVICE: dict[Kind, str] = {
    "answer": "`vade stale --refresh` asks again.",
    "summary": "`vade stale --refresh` makes it again.",
    "note": "`vade note confirm` where it still holds, else save what holds now.",
    "relation": "Whoever stated it may state it again; until then it is shown with a warning.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """Something that may no longer hold, and what of its grounds has changed."""

    kind: Kind
    id: str
    """Of the note or relation; a summary's is the reference of its document."""
    project: str
    """Or the collection of a summary."""
    title: str
    why: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What refreshing did: those that hold again, and those that are left, with the reason."""

    refreshed: list[Stale]
    left: list[tuple[Stale, str]]


class StaleCalls:
    def __init__(
        self,
        database: Database,
        *,
        ask_again: Callable[[str, str, str, UUID], Awaitable[bool]],
        make_again: Callable[[str], Awaitable[None]],
    ) -> None:
        """`ask_again` answers a question from a collection for a project anew, in place of a note,
        and says whether it could; `make_again` works off what waits in a collection."""
        self._database = database
        self._ask_again = ask_again
        self._make_again = make_again

    async def list_stale(self, collection: str | None = None) -> list[Stale]:
        """What is stale: all of it, or what rests on one collection. Raises UnknownCollection."""
        require_all("read")
        async with self._database.connection() as connection:
            if collection is not None:
                await collections.find(connection, collection)
            notes = await rests_on.stale_notes(connection, collection)
            summaries = await rests_on.stale_summaries(connection, collection)
            relations = [] if collection else await rests_on.resting_relations(connection)
        return [
            *(_note(one) for one in notes),
            *(_summary(one) for one in summaries),
            *(_relation(one) for one in relations if _is_stale(one)),
        ]

    async def refresh(self, collection: str | None = None) -> Refreshed:
        """Ask stale answers again and make stale summaries again; the rest is left, and told."""
        require_all("write")
        before = await self.list_stale(collection)
        problems: dict[str, str] = {}
        summaries = [one for one in before if one.kind == "summary"]
        for name in sorted({one.project for one in summaries}):
            try:
                await self._make_again(name)
            except VadeError as error:
                problems |= {one.id: str(error) for one in summaries if one.project == name}
        async with self._database.connection() as connection:
            resting = await rests_on.stale_notes(connection, collection)
        for note in resting:
            if note.type != ANSWER:
                continue
            try:
                # An answer is from one collection.
                again = await self._ask_again(
                    note.title, note.collections[0], note.project, note.id
                )
                if not again:
                    problems[str(note.id)] = "the sources no longer answer it"
            except VadeError as error:
                problems[str(note.id)] = str(error)
        still = {(one.kind, one.id) for one in await self.list_stale(collection)}
        return Refreshed(
            refreshed=[one for one in before if (one.kind, one.id) not in still],
            left=[
                (one, problems.get(one.id, ADVICE[one.kind]))
                for one in before
                if (one.kind, one.id) in still
            ],
        )


def _note(one: StaleNote) -> Stale:
    return Stale(
        kind="answer" if one.type == ANSWER else "note",
        id=str(one.id),
        project=one.project,
        title=one.title,
        why=one.why,
    )


def _summary(one: StaleSummary) -> Stale:
    reference = f"{one.collection}/{one.path}"
    failed = f"; making it again failed: {one.error}" if one.error else ""
    return Stale(
        kind="summary",
        id=reference,
        project=one.collection,
        title=f"Summary of {one.title}",
        why=[f"{reference} has changed{failed}"],
    )


def _is_stale(one: RestingRelation) -> bool:
    if one.knowledge is None or one.knowledge_kind is None:
        return True
    known = kind_named(one.knowledge_kind).of(one.knowledge)
    return known.digest != one.properties.get("rests_on_hash")


def _relation(one: RestingRelation) -> Stale:
    what = f"{one.knowledge_kind} {one.knowledge_name!r}" if one.knowledge_name else "its ground"
    return Stale(
        kind="relation",
        id=str(one.id),
        project=one.project,
        title=f"{one.start_name} {one.kind} {one.end_name}",
        why=[f"{what} {'is gone' if one.knowledge is None else 'has changed'}"],
    )
