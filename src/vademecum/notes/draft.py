"""A note before it is saved: what it may be, and which notes it stands in place of."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from vademecum.errors import BadInput
from vademecum.notes.contradiction import contradicts, same
from vademecum.notes.types import ANSWER, TYPES
from vademecum.store.notes import Note
from vademecum.store.rests_on import Passage

MAX_TITLE = 200
MAX_CONTENT = 20_000
MAX_TAGS = 20
MAX_EVIDENCE = 20
_TAG = re.compile(r"[\w][\w .:/+#-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    project: str
    type: str
    title: str
    content: str
    tags: Sequence[str] = ()
    importance: int = 5
    evidence: Sequence[str]
    agent: str
    replaces: Sequence[UUID]
    """Notes that it names itself."""
    passages: Sequence[Passage] | None = None
    """What it rests on; those that its evidence names where they are not given."""

    def checked(self) -> "Draft":
        """The draft in its normal form. Raises BadInput."""
        content = self.content.strip()
        title = " ".join(self.title.split()) or _title_of(content)
        tags = list(dict.fromkeys(tag.strip().lower() for tag in self.tags if tag.strip()))
        check_project(self.project)
        if not content:
            raise BadInput("the note is empty")
        if len(content) > MAX_CONTENT or len(title) > MAX_TITLE:
            raise BadInput(
                f"a note has at most {MAX_CONTENT} characters, its title {MAX_TITLE}",
                hint="Keep one thing in a note; longer texts are documents.",
            )
        if not 1 <= self.importance <= 10:
            raise BadInput(f"the importance must be from 1 to 10, not {self.importance}")
        if len(tags) > MAX_TAGS or not all(map(_TAG.fullmatch, tags)):
            raise BadInput(f"a note has at most {MAX_TAGS} tags, each a few words without commas")
        if len(self.evidence) > MAX_EVIDENCE or any(len(one) > 1000 for one in self.evidence):
            raise BadInput(
                f"a note has at most {MAX_EVIDENCE} pieces of evidence, of 1000 characters"
            )
        texts = (content, title, self.agent, *self.evidence)
        if any("\0" in text for text in texts) or len(self.agent) > 200:
            raise BadInput("a note holds no zero bytes, and its agent has at most 200 characters")
        return replace(self, content=content, title=title, tags=tags)

    def repeats(self, known: Note) -> bool:
        """Whether a note says the same; the same answer to another question is another one."""
        return (
            known.type == self.type
            and same(self.content, known.content)
            and (self.type != ANSWER or known.title == self.title)
        )

    def ends(self, old: Note) -> str | None:
        """Why a note holds no longer when this one is saved."""
        if old.id in self.replaces:
            return "the new note names it"
        if old.type != self.type:
            return None
        if old.title.lower() == self.title.lower():
            return f"a newer note has its title, {old.title!r}"
        # Answers quote: two of them that differ in a value may well be about two things.
        return None if self.type == ANSWER else contradicts(self.content, old.content)


def check_type(given: str | None, known: Sequence[str] = (*TYPES, ANSWER)) -> None:
    if given is not None and given not in known:
        raise BadInput(f"there is no type {given!r} of note", hint=f"Types: {', '.join(known)}.")


def check_project(project: str) -> str:
    if not project.strip() or len(project) > 200 or "\0" in project:
        raise BadInput("no project was named", hint="Name it with -p NAME.")
    return project


def _title_of(content: str) -> str:
    """The first sentence, at most 80 characters."""
    first = re.split(r"(?<=[.!?])\s|\n", content.strip(), maxsplit=1)[0].rstrip(".")
    return first if len(first) <= 80 else f"{first[:79].rstrip()}…"
