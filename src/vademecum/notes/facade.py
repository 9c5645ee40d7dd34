"""What can be done with the notes about a project: `app.notes`. Every call names the project."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from vademecum.access import require
from vademecum.errors import BadInput, UnknownCollection
from vademecum.notes import evidence as evidences
from vademecum.notes.draft import MAX_EVIDENCE, Draft, check_project, check_type
from vademecum.notes.types import ANSWER, TYPES
from vademecum.store import documents, rests_on
from vademecum.store import notes as rows
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.notes import Note
from vademecum.store.rests_on import Passage
from vademecum.types import CollectionId, Hit, Query, Source

COLLECTION = "project-notes"
"""In which the notes of all projects are searched, each by its own."""
PROFILE = "note"
TOLD = 5
"""Importance from which on agents are told of a note by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A note that holds no longer, and why."""

    id: UUID
    title: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedNote:
    """What saving did: a new note, or `confirmed` where it was known already."""

    note: Note
    confirmed: bool
    replaced: list[Replaced]
    searchable: bool
    """Whether a search finds it at once; else when a worker has taken it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNote:
    note: Note
    score: float
    similarity: float | None
    """Cosine with the query; None where it was searched by words alone."""
    lexical: bool
    """Whether it holds words of the query."""


class Notes:
    """Notes are rows; their texts are also documents of one collection, and searched like them."""

    def __init__(
        self,
        database: Database,
        *,
        collection_for: Callable[[str, str], Awaitable[Collection]],
        search: Callable[[Query], Awaitable[list[Hit]]],
        embed: Callable[[Collection], Awaitable[bool]],
    ) -> None:
        """`embed` makes what waits in a collection searchable, and says whether all of it is."""
        self._database = database
        self._collection_for = collection_for
        self._search = search
        self._embed = embed

    async def save(
        self,
        project: str,
        content: str,
        *,
        title: str = "",
        type: str = "learning",  # noqa: A002 - the word for it everywhere
        tags: Sequence[str] = (),
        importance: int = 5,
        evidence: Sequence[str] = (),
        agent: str = "",
        replaces: Sequence[UUID] = (),
    ) -> SavedNote:
        """Keep a note. It replaces those named, one of the same title and type, and those that it
        contradicts; the same again only confirms what is kept. Evidence that names passages of
        documents is watched: when one changes, the note is stale. Raises BadInput.
        """
        check_type(type, TYPES)
        return await self._save(
            Draft(
                project=project,
                content=content,
                title=title,
                type=type,
                tags=tags,
                importance=importance,
                evidence=evidence,
                agent=agent,
                replaces=replaces,
            )
        )

    async def keep_answer(
        self,
        project: str,
        question: str,
        answer: str,
        passages: Sequence[Passage],
        *,
        agent: str = "",
        replaces: Sequence[UUID] = (),
    ) -> SavedNote:
        """Keep an answer with the passages that it was read from. Raises BadInput."""
        places = [f"{one.collection}/{one.path}#{one.section_id}" for one in passages]
        return await self._save(
            Draft(
                project=project,
                content=answer,
                title=question,
                type=ANSWER,
                evidence=list(dict.fromkeys(places))[:MAX_EVIDENCE],
                agent=agent,
                replaces=replaces,
                passages=passages,
            )
        )

    async def _save(self, draft: Draft) -> SavedNote:
        require("write", COLLECTION)
        draft = draft.checked()
        target = await self._database.retry(lambda: self._collection_for(COLLECTION, PROFILE))

        async def write() -> SavedNote:
            async with self._database.transaction() as connection:
                await rows.lock(connection, draft.project)
                known = await rows.in_force(connection, draft.project)
                missing = set(draft.replaces) - {note.id for note in known}
                if missing:
                    raise BadInput(
                        f"there is no note {missing.pop()} that holds in {draft.project!r}",
                        hint="`vade note list` shows the notes with their ids.",
                    )
                rested = draft.passages
                if rested is None:
                    rested = await evidences.passages(connection, draft.evidence)
                again = next((note for note in known if draft.repeats(note)), None)
                if again is not None and set(draft.replaces) <= {again.id}:
                    return await self._kept(connection, target.id, draft, again, rested)
                return await self._added(connection, target.id, draft, known, rested)

        saved = await self._database.retry(write)
        return replace(saved, searchable=await self._embed(target))

    async def _kept(
        self,
        connection: Connection,
        target: CollectionId,
        draft: Draft,
        again: Note,
        rested: Sequence[Passage],
    ) -> SavedNote:
        """A note that says the same already, confirmed."""
        await rows.confirm(
            connection,
            draft.project,
            again.id,
            importance=draft.importance,
            tags=draft.tags,
            evidence=draft.evidence,
        )
        if draft.passages is not None:  # all that it rests on
            await rows.set_evidence(connection, draft.project, again.id, draft.evidence)
            await rests_on.rest_no_longer(connection, again.id)
        await rests_on.rest(connection, again.id, rested)
        kept = await _note(connection, draft.project, again.id)
        await self._place(connection, target, kept)
        return SavedNote(note=kept, confirmed=True, replaced=[], searchable=False)

    async def _added(
        self,
        connection: Connection,
        target: CollectionId,
        draft: Draft,
        known: Sequence[Note],
        rested: Sequence[Passage],
    ) -> SavedNote:
        """A new note, in place of those that it ends."""
        number = await rows.insert(
            connection,
            project=draft.project,
            type=draft.type,
            title=draft.title,
            content=draft.content,
            tags=draft.tags,
            importance=draft.importance,
            evidence=list(draft.evidence),
            agent=draft.agent,
        )
        await rests_on.rest(connection, number, rested)
        note = await _note(connection, draft.project, number)
        gone = [
            Replaced(id=old.id, title=old.title, why=why)
            for old in known
            if (why := draft.ends(old))
        ]
        for one in gone:
            await rows.replace(connection, draft.project, one.id, by=note.id, why=one.why)
        await self._unplace(connection, target, [one.id for one in gone])
        await self._place(connection, target, note)
        return SavedNote(note=note, confirmed=False, replaced=gone, searchable=False)

    async def list_notes(
        self,
        project: str,
        *,
        type: str | None = None,  # noqa: A002 - the word for it everywhere
        tags: Sequence[str] = (),
        importance: int = 1,
        limit: int = 100,
    ) -> list[Note]:
        """Notes that hold, the most important and newest first."""
        require("read", COLLECTION)
        check_type(type)
        async with self._database.connection() as connection:
            return await rows.in_force(
                connection,
                check_project(project),
                type=type,
                tags=[tag.lower() for tag in tags],
                importance=importance,
                limit=limit,
            )

    async def search(
        self,
        project: str,
        query: str,
        *,
        type: str | None = None,  # noqa: A002 - the word for it everywhere
        tags: Sequence[str] = (),
        importance: int = 1,
        limit: int = 8,
    ) -> list[FoundNote]:
        """Notes that answer a query, best first, by words and meaning. Raises BadInput."""
        require("read", COLLECTION)
        check_type(type)
        if not 1 <= limit <= 100:
            raise BadInput(f"k must be from 1 to 100, not {limit}")
        filters = [f"project={_digest(check_project(project))}", f"importance>={importance}"]
        if type:
            filters.append(f"type={type}")
        wanted = Query(
            text=query,
            collection=COLLECTION,
            limit=min(100, limit * 4 if tags else limit),
            filters=tuple(filters),
        )
        try:
            hits = await self._search(wanted)
        except UnknownCollection:
            return []
        ids = {UUID(hit.path.removeprefix("urn:uuid:")): hit for hit in reversed(hits)}
        async with self._database.connection() as connection:
            notes = await rows.by_id(connection, project, ids)
        labels = {tag.lower() for tag in tags}
        found = [
            FoundNote(
                note=note,
                score=hit.score,
                similarity=_said(hit, "dense"),
                lexical=bool(_said(hit, "lexical")),
            )
            for number, hit in ids.items()
            if (note := notes.get(number)) is not None
            and note.replaced_by is None
            and labels <= set(note.tags)
        ]
        return sorted(found, key=lambda one: -one.score)[:limit]

    async def show(self, project: str, note: UUID) -> tuple[Note, list[Note]]:
        """A note, and those that it replaced. Raises BadInput."""
        require("read", COLLECTION)
        async with self._database.connection() as connection:
            found = await _note(connection, check_project(project), note)
            return found, await rows.replaced_by(connection, project, note)

    async def restore(self, project: str, note: UUID) -> Note:
        """Let a replaced note hold again, beside what replaced it. Raises BadInput."""
        require("write", COLLECTION)
        target = await self._collection_for(COLLECTION, PROFILE)
        async with self._database.transaction() as connection:
            found = await _note(connection, check_project(project), note)
            await rows.restore(connection, project, note)
            await self._place(connection, target.id, found)
        await self._embed(target)
        return replace(found, replaced_by=None, replaced_why="")

    async def confirm(self, project: str, note: UUID) -> Note:
        """Say that a note holds although what it rests on has changed: from now on it rests on that
        as it is now. Evidence that is gone is left out. Raises BadInput.
        """
        require("write", COLLECTION)
        async with self._database.transaction() as connection:
            await rows.lock(connection, check_project(project))
            found = await _note(connection, project, note)
            rested = await rests_on.references_of(connection, note)
            named = evidences.references(found.evidence)
            now = await rests_on.passages_at(connection, rested)
            gone = {
                one.text
                for one in named
                if any(one.names(*place) for place in rested)
                and not any(one.names(p.collection, p.path, p.section_id) for p in now)
            }
            left = [text for text in found.evidence if text not in gone]
            await rows.set_evidence(connection, project, note, left)
            await rests_on.rest_no_longer(connection, note)
            await rests_on.rest(connection, note, now)
            return await _note(connection, project, note)

    async def remove(self, project: str, note: UUID) -> None:
        """Delete the text of a note for good. Raises BadInput."""
        require("write", COLLECTION)
        target = await self._collection_for(COLLECTION, PROFILE)
        async with self._database.transaction() as connection:
            await _note(connection, check_project(project), note)
            await rests_on.rest_no_longer(connection, note)
            await rows.remove(connection, project, note)
            await self._unplace(connection, target.id, [note])

    async def projects(self) -> "list[tuple[str, int]]":
        """Projects that have notes, with how many hold."""
        require("read", COLLECTION)
        async with self._database.connection() as connection:
            return await rows.projects(connection)

    # --- inside -----------------------------------------------------------------------------

    async def _place(self, connection: Connection, target: CollectionId, note: Note) -> None:
        """Let searches find a note."""
        text = f"# {note.title}\n\n{note.content}\n"
        if note.tags:
            text += f"\nTags: {', '.join(note.tags)}\n"
        url = f"urn:uuid:{note.id}"
        facets = {
            "project": _digest(note.project),
            "type": note.type,
            "importance": note.importance,
        }
        document = documents.written(note.title, text, facets)
        await documents.upsert(connection, target, Source(path=url, url=url), document)

    async def _unplace(
        self, connection: Connection, target: CollectionId, notes: Sequence[UUID]
    ) -> None:
        urls = [f"urn:uuid:{note}" for note in notes]
        await documents.delete(connection, await rows.documents_at(connection, target, urls))


async def _note(connection: Connection, project: str, note: UUID) -> Note:
    """A note as it is stored. Raises BadInput."""
    found = (await rows.by_id(connection, project, [note])).get(note)
    if found is None:
        raise BadInput(
            f"there is no note {note} in {project!r}",
            hint="`vade note list` shows the notes with their ids.",
        )
    return found


def _digest(project: str) -> str:
    return hashlib.sha256(project.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _said(hit: Hit, retriever: str) -> float | None:
    return next((c.score for c in hit.contributions if c.retriever == retriever), None)
