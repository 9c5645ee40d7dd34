"""What can be done with the notes about a project: `app.notes`. Every call names the project."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from vademecum.access import require
from vademecum.errors import BadInput, UnknownCollection
from vademecum.notes import evidence as evidences
from vademecum.notes.contradiction import contradicts, same
from vademecum.store import documents, rests_on
from vademecum.store import notes as rows
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.notes import Note
from vademecum.store.rests_on import Passage
from vademecum.types import CollectionId, Hit, Query, Source

KINDS = ("pattern", "decision", "convention", "learning", "context")
ANSWER = "answer"
"""The type of answers that are kept: the question is the title. Nobody writes one himself."""
COLLECTION = "project-notes"
"""In which the notes of all projects are searched, each by its own."""
PROFILE = "note"
MAX_TITLE = 200
MAX_CONTENT = 20_000
MAX_TAGS = 20
MAX_EVIDENCE = 20
TOLD = 5
"""Importance from which on agents are told of a note by themselves."""
_TAG = re.compile(r"[\w][\w .:/+#-]{0,99}")


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
        kind: str = "learning",
        tags: Sequence[str] = (),
        importance: int = 5,
        evidence: Sequence[str] = (),
        agent: str = "",
        replaces: Sequence[UUID] = (),
    ) -> SavedNote:
        """Keep a note. It replaces those named, one of the same title and kind, and those that it
        contradicts; the same again only confirms what is kept. Evidence that names passages of
        documents is watched: when one changes, the note is stale. Raises BadInput.
        """
        _check_kind(kind, KINDS)
        return await self._save(
            project,
            content,
            title=title,
            kind=kind,
            tags=tags,
            importance=importance,
            evidence=evidence,
            agent=agent,
            replaces=replaces,
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
            project,
            answer,
            title=question,
            kind=ANSWER,
            evidence=list(dict.fromkeys(places))[:MAX_EVIDENCE],
            agent=agent,
            replaces=replaces,
            passages=passages,
        )

    async def _save(
        self,
        project: str,
        content: str,
        *,
        title: str,
        kind: str,
        tags: Sequence[str] = (),
        importance: int = 5,
        evidence: Sequence[str],
        agent: str,
        replaces: Sequence[UUID],
        passages: Sequence[Passage] | None = None,
    ) -> SavedNote:
        """`passages` are what it rests on; those that the evidence names if they are not given."""
        require("write", COLLECTION)
        content, title = content.strip(), " ".join(title.split()) or _title_of(content)
        tags = list(dict.fromkeys(tag.strip().lower() for tag in tags if tag.strip()))
        _check(project, content, title, tags, importance, evidence, agent)
        target = await self._database.retry(lambda: self._collection_for(COLLECTION, PROFILE))

        async def write() -> SavedNote:
            async with self._database.transaction() as connection:
                await rows.lock(connection, project)
                known = await rows.in_force(connection, project)
                again = next((n for n in known if _is_same(n, kind, title, content)), None)
                missing = set(replaces) - {note.id for note in known}
                if missing:
                    raise BadInput(
                        f"there is no note {missing.pop()} that holds in {project!r}",
                        hint="`vade note list` shows the notes with their ids.",
                    )
                rested = passages
                if rested is None:
                    rested = await evidences.passages(connection, evidence)
                if again is not None and set(replaces) <= {again.id}:
                    await rows.confirm(
                        connection,
                        project,
                        again.id,
                        importance=importance,
                        tags=tags,
                        evidence=evidence,
                    )
                    if passages is not None:  # all that it rests on
                        await rows.set_evidence(connection, project, again.id, evidence)
                        await rests_on.rest_no_longer(connection, again.id)
                    await rests_on.rest(connection, again.id, rested)
                    kept = (await rows.by_id(connection, project, [again.id]))[again.id]
                    await self._place(connection, target.id, kept)
                    return SavedNote(note=kept, confirmed=True, replaced=[], searchable=False)
                number = await rows.insert(
                    connection,
                    project=project,
                    kind=kind,
                    title=title,
                    content=content,
                    tags=tags,
                    importance=importance,
                    evidence=list(evidence),
                    agent=agent,
                )
                await rests_on.rest(connection, number, rested)
                note = (await rows.by_id(connection, project, [number]))[number]
                gone = [
                    Replaced(id=old.id, title=old.title, why=why)
                    for old in known
                    if (why := _replaces(note, old, replaces))
                ]
                for one in gone:
                    await rows.replace(connection, project, one.id, by=note.id, why=one.why)
                await self._unplace(connection, target.id, [one.id for one in gone])
                await self._place(connection, target.id, note)
            return SavedNote(note=note, confirmed=False, replaced=gone, searchable=False)

        saved = await self._database.retry(write)
        return replace(saved, searchable=await self._embed(target))

    async def list_notes(
        self,
        project: str,
        *,
        kind: str | None = None,
        tags: Sequence[str] = (),
        importance: int = 1,
        limit: int = 100,
    ) -> list[Note]:
        """Notes that hold, the most important and newest first."""
        require("read", COLLECTION)
        _check_kind(kind)
        async with self._database.connection() as connection:
            return await rows.in_force(
                connection,
                _project(project),
                kind=kind,
                tags=[tag.lower() for tag in tags],
                importance=importance,
                limit=limit,
            )

    async def search(
        self,
        project: str,
        query: str,
        *,
        kind: str | None = None,
        tags: Sequence[str] = (),
        importance: int = 1,
        limit: int = 8,
    ) -> list[FoundNote]:
        """Notes that answer a query, best first, by words and meaning. Raises BadInput."""
        require("read", COLLECTION)
        _check_kind(kind)
        if not 1 <= limit <= 100:
            raise BadInput(f"k must be from 1 to 100, not {limit}")
        filters = [f"project={_digest(_project(project))}", f"importance>={importance}"]
        if kind:
            filters.append(f"kind={kind}")
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
            found = (await rows.by_id(connection, _project(project), [note])).get(note)
            if found is None:
                raise _unknown(project, note)
            return found, await rows.replaced_by(connection, project, note)

    async def restore(self, project: str, note: UUID) -> Note:
        """Let a replaced note hold again, beside what replaced it. Raises BadInput."""
        require("write", COLLECTION)
        target = await self._collection_for(COLLECTION, PROFILE)
        async with self._database.transaction() as connection:
            found = (await rows.by_id(connection, _project(project), [note])).get(note)
            if found is None:
                raise _unknown(project, note)
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
            await rows.lock(connection, _project(project))
            found = (await rows.by_id(connection, project, [note])).get(note)
            if found is None:
                raise _unknown(project, note)
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
            return (await rows.by_id(connection, project, [note]))[note]

    async def remove(self, project: str, note: UUID) -> None:
        """Delete the text of a note for good. Raises BadInput."""
        require("write", COLLECTION)
        target = await self._collection_for(COLLECTION, PROFILE)
        async with self._database.transaction() as connection:
            found = (await rows.by_id(connection, _project(project), [note])).get(note)
            if found is None:
                raise _unknown(project, note)
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
            "kind": note.kind,
            "importance": note.importance,
        }
        document = documents.written(note.title, text, facets)
        await documents.upsert(connection, target, Source(path=url, url=url), document)

    async def _unplace(
        self, connection: Connection, target: CollectionId, notes: Sequence[UUID]
    ) -> None:
        urls = [f"urn:uuid:{note}" for note in notes]
        await documents.delete(connection, await rows.documents_at(connection, target, urls))


def _is_same(known: Note, kind: str, title: str, content: str) -> bool:
    """Whether a note says the same; the same answer to another question is another one."""
    return (
        known.kind == kind
        and same(content, known.content)
        and (kind != ANSWER or known.title == title)
    )


def _replaces(new: Note, old: Note, named: Sequence[UUID]) -> str | None:
    """Why a note holds no longer when another is saved."""
    if old.id in named:
        return "the new note names it"
    if old.kind != new.kind:
        return None
    if old.title.lower() == new.title.lower():
        return f"a newer note has its title, {old.title!r}"
    # Answers quote: two of them that differ in a value may well be about two things.
    return None if new.kind == ANSWER else contradicts(new.content, old.content)


def _check(
    project: str,
    content: str,
    title: str,
    tags: Sequence[str],
    importance: int,
    evidence: Sequence[str],
    agent: str,
) -> None:
    _project(project)
    if not content:
        raise BadInput("the note is empty")
    if len(content) > MAX_CONTENT or len(title) > MAX_TITLE:
        raise BadInput(
            f"a note has at most {MAX_CONTENT} characters, its title {MAX_TITLE}",
            hint="Keep one thing in a note; longer texts are documents.",
        )
    if not 1 <= importance <= 10:
        raise BadInput(f"the importance must be from 1 to 10, not {importance}")
    if len(tags) > MAX_TAGS or not all(map(_TAG.fullmatch, tags)):
        raise BadInput(f"a note has at most {MAX_TAGS} tags, each a few words without commas")
    if len(evidence) > MAX_EVIDENCE or any(len(one) > 1000 for one in evidence):
        raise BadInput(f"a note has at most {MAX_EVIDENCE} pieces of evidence, of 1000 characters")
    if any("\0" in text for text in (content, title, agent, *evidence)) or len(agent) > 200:
        raise BadInput("a note holds no zero bytes, and its agent has at most 200 characters")


def _check_kind(kind: str | None, known: Sequence[str] = (*KINDS, ANSWER)) -> None:
    if kind is not None and kind not in known:
        raise BadInput(f"there is no type {kind!r} of note", hint=f"Types: {', '.join(known)}.")


def _project(project: str) -> str:
    if not project.strip() or len(project) > 200 or "\0" in project:
        raise BadInput("no project was named", hint="Name it with -p NAME.")
    return project


def _unknown(project: str, note: UUID) -> BadInput:
    return BadInput(
        f"there is no note {note} in {project!r}",
        hint="`vade note list` shows the notes with their ids.",
    )


def _digest(project: str) -> str:
    return hashlib.sha256(project.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _said(hit: Hit, retriever: str) -> float | None:
    return next((c.score for c in hit.contributions if c.retriever == retriever), None)


def _title_of(content: str) -> str:
    """The first sentence, at most 80 characters."""
    first = re.split(r"(?<=[.!?])\s|\n", content.strip(), maxsplit=1)[0].rstrip(".")
    return first if len(first) <= 80 else f"{first[:79].rstrip()}…"
