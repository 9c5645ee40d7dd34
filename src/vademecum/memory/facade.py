"""What can be done with the memory of a user. Every call names the user; none is an error."""

import difflib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from vademecum.access import require_user
from vademecum.errors import BadInput, ModelUnavailable
from vademecum.inference.embedder import Embedder
from vademecum.inference.language.model import LanguageModel
from vademecum.memory import narrative
from vademecum.memory.exchange import Exchange, MemoryUpdate, Taking, changed, narrated, unchanged
from vademecum.memory.names import learn as learn_names
from vademecum.memory.passages import read_entries
from vademecum.memory.privacy import Gated, gate
from vademecum.memory.recall import Recalled, rank
from vademecum.store import memory as rows
from vademecum.store.db import Database
from vademecum.store.memory import MemoryVersion, Receipt

MAX_EXCHANGE = 200_000
"""Characters of one text that are looked at."""
NEW_USER = "No prior interaction history."


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A user's narrative of one project, the general one is ''. Version 0 is a new user."""

    project: str
    content: str
    version: int
    updated_at: datetime | None


class MemoryCalls:
    """`app.memory`."""

    def __init__(
        self,
        database: Database,
        *,
        key: str | None,
        allowed: tuple[str, ...] = (),
        embedder: Callable[[], Embedder | None] = lambda: None,
        model: Callable[[], LanguageModel | None] = lambda: None,
    ) -> None:
        self._database = database
        self._key = key
        self._allowed = allowed
        self._embedder = embedder
        self._model = model

    async def show(self, user: str, *, project: str = "") -> Memory:
        """The narrative as it is; empty for a new user. Raises BadInput."""
        self._check_project(project)
        found = None
        known = await rows.find_user(self._database, self._hash(user))
        if known is not None:
            async with rows.as_user(self._database, known) as connection:
                found = await rows.read(connection, known, project)
        if found is None:
            return Memory(project=project, content="", version=0, updated_at=None)
        return Memory(
            project=project,
            content=found.content,
            version=found.version,
            updated_at=found.updated_at,
        )

    async def inject(self, user: str, prompt: str, *, project: str = "", note: bool = False) -> str:
        """A system prompt with the user's `<memory>` block; with `note` a new user has one too."""
        content = (await self.show(user, project=project)).content or (NEW_USER if note else "")
        return with_memory(prompt, content)

    async def update(
        self,
        user: str,
        *,
        message: str,
        reply: str = "",
        exchange: str,
        agent: str = "",
        project: str = "",
        outcome: str = "ok",
    ) -> MemoryUpdate:
        """Take an exchange into the memory; each once, by its id. Only `ok` ones are remembered.

        The gate runs here, before anything is stored or queued; the exchange is not kept. Updates
        of one user wait for each other. A language model writes where one is meant to; if it
        fails, the rules do, and `notice` says so. Raises BadInput, UserForgotten.
        """
        if not message.strip():
            raise BadInput("the message is empty")
        if not exchange:
            raise BadInput("the exchange has no id", hint="Name one with --exchange ID.")
        if outcome not in ("ok", "failed"):
            raise BadInput(f"the outcome must be ok or failed, not {outcome!r}")
        if max(len(message), len(reply)) > MAX_EXCHANGE:
            raise BadInput(f"a text is longer than {MAX_EXCHANGE} characters")
        self._check_project(project)
        names = learn_names(f"{message}\n\n{reply}")
        taking = Taking(
            database=self._database,
            user=await rows.make_user(self._database, self._hash(user)),
            exchange=Exchange(
                id=exchange,
                project=project,
                agent=self._agent(agent),
                outcome=outcome,
                message=message,
                reply=reply,
                gated=self._gate(message, names=names),
            ),
            judge=lambda text: self._gate(text, names=names),
            settle=lambda text: self._sections(text, names=names),
            model=self._model(),
        )
        return await taking.take()

    async def remember(self, user: str, text: str, *, project: str = "") -> MemoryUpdate:
        """Take up a fact that somebody states of the user, as a note. Raises BadInput."""
        if not text.strip():
            raise BadInput("there is nothing to remember")
        return await self._noted(user, self._gate(text, names=learn_names(text)), project)

    async def _noted(self, user: str, gated: Gated, project: str) -> MemoryUpdate:
        self._check_project(project)
        user_id = await rows.make_user(self._database, self._hash(user))
        async with rows.as_user(self._database, user_id) as connection:
            stored = await rows.lock(connection, user_id, project)
            if not gated.text:
                return unchanged(stored, gated)
            facts, _ = narrative.learn(stored.facts, gated.text, agent="")
            notes = dict(facts.get("note", {}))
            turn = int(facts.get("turn", 0))
            notes[gated.text.rstrip(".")] = {"count": 1, "last": turn}
            facts = {kind: facts.get(kind, {}) for kind in narrative.KINDS} | {
                "turn": turn,
                "note": notes,
            }
            content = self._sections(narrated(stored, facts, gated.text, note=True))
            version = await rows.write(
                connection, user_id, project, content=content, facts=facts, reason="remember"
            )
        return changed(version, content, gated)

    async def edit(
        self, user: str, text: str, *, project: str = "", expected: int | None = None
    ) -> MemoryUpdate:
        """Replace the narrative by hand; the gate holds for people, too.

        With `expected`, only where that is still the version. Raises BadInput.
        """
        self._check_project(project)
        if not text.strip():
            raise BadInput("the text is empty", hint="`undo` goes back, `forget` removes all.")
        gated = self._gate(text, names=learn_names(text))
        content = self._sections(text)
        user_id = await rows.make_user(self._database, self._hash(user))
        async with rows.as_user(self._database, user_id) as connection:
            stored = await rows.lock(connection, user_id, project)
            if expected is not None and expected != stored.version:
                raise BadInput(
                    "the memory was changed meanwhile", hint="Load it again, then edit it."
                )
            if content == stored.content:
                return unchanged(stored, gated)
            notes = {line.rstrip("."): {"count": 1, "last": 0} for line in gated.text.split(". ")}
            facts = {"turn": int(stored.facts.get("turn", 0)), "note": notes}
            version = await rows.write(
                connection, user_id, project, content=content, facts=facts, reason="edit"
            )
        return changed(version, content, gated)

    async def versions(self, user: str, *, project: str = "") -> list[MemoryVersion]:
        """All versions, oldest first."""
        self._check_project(project)
        known = await rows.find_user(self._database, self._hash(user))
        if known is None:
            return []
        async with rows.as_user(self._database, known) as connection:
            return await rows.versions(connection, known, project)

    async def diff(self, user: str, old: int, new: int, *, project: str = "") -> str:
        """What changed between two versions, as a unified diff; version 0 is empty."""
        found = {v.version: v.content for v in await self.versions(user, project=project)}
        found[0] = ""
        for version in (old, new):
            if version not in found:
                raise BadInput(
                    f"there is no version {version}", hint=f"There are {len(found) - 1} versions."
                )
        lines = difflib.unified_diff(
            found[old].splitlines(), found[new].splitlines(), f"{old}", f"{new}", lineterm=""
        )
        return "\n".join(lines)

    async def undo(self, user: str, *, project: str = "") -> Memory:
        """Go back to the version before, as a new version. Raises BadInput where there is none."""
        self._check_project(project)
        known = await rows.find_user(self._database, self._hash(user))
        if known is None:
            raise BadInput("there is nothing to undo")
        async with rows.as_user(self._database, known) as connection:
            stored = await rows.lock(connection, known, project)
            found = {v.version: v for v in await rows.versions(connection, known, project)}
            back = stored.version
            while back in found and found[back].reason.startswith("undo to "):
                back = int(found[back].reason.removeprefix("undo to "))
            if back < 1:
                raise BadInput("there is nothing to undo")
            before = found.get(back - 1)
            await rows.write(
                connection,
                known,
                project,
                content=before.content if before else "",
                facts=before.facts if before else {},
                reason=f"undo to {back - 1}",
            )
        return await self.show(user, project=project)

    async def search(
        self,
        user: str,
        query: str,
        *,
        project: str = "",
        every_project: bool = False,
        limit: int = 8,
    ) -> list[Recalled]:
        """Sentences of the narrative and its versions that answer the query, best first.

        With `every_project` those of the general memory and of all projects of the user.
        """
        if not query.strip() or not 1 <= limit <= 100:
            raise BadInput("the query is empty" if not query.strip() else "k must be 1 to 100")
        if project and every_project:
            raise BadInput("a project and every project were named", hint="Name one of the two.")
        self._check_project(project)
        known = await rows.find_user(self._database, self._hash(user))
        if known is None:
            return []
        named = None if every_project else project
        try:
            return await self._found(known, query, named, limit, self._embedder())
        except ModelUnavailable:
            return await self._found(known, query, named, limit, None)

    async def _found(
        self, known: UUID, query: str, project: str | None, limit: int, embedder: Embedder | None
    ) -> list[Recalled]:
        async with rows.as_user(self._database, known) as connection:
            projects = await rows.projects(connection, known) if project is None else [project]
            among = [
                entry
                for name in projects
                for entry in await read_entries(connection, known, name, embedder)
            ]
        return await rank(among, query, embedder=embedder, limit=limit)

    async def export(self, user: str) -> dict[str, Any]:
        """All that is held about a user."""
        key = self._hash(user)
        known = await rows.find_user(self._database, key)
        if known is None:
            return {"user": key, "memories": [], "interactions": []}
        async with rows.as_user(self._database, known) as connection:
            projects = await rows.projects(connection, known)
            memories = []
            for project in projects:
                stored = await rows.read(connection, known, project)
                assert stored is not None
                history = await rows.versions(connection, known, project)
                memories.append(
                    {"project": project, **asdict(stored), "versions": [asdict(v) for v in history]}
                )
            log = [asdict(entry) for entry in await rows.interactions(connection, known)]
        return {"user": key, "memories": memories, "interactions": log}

    async def forget(self, user: str) -> Receipt | None:
        """Remove all of a user; resumes one that was stopped. None where nothing was held."""
        return await rows.forget(self._database, self._hash(user))

    async def receipts(self) -> list[Receipt]:
        """What was forgotten, the last hundred; incomplete ones first. Raises NotAllowed."""
        require_user(None)
        return await rows.receipts(self._database)

    # --- inside -----------------------------------------------------------------------------

    def _hash(self, user: str) -> str:
        named = rows.user_key(user, self._key)
        require_user(named)
        return named

    def hash_of(self, user: str) -> str:
        """What a user is known by. Raises BadInput where no user is named."""
        return rows.user_key(user, self._key)

    def _gate(self, text: str, names: frozenset[str] = frozenset()) -> Gated:
        return gate(text, names=names, allowed=self._allowed)

    def _sections(self, text: str, names: frozenset[str] = frozenset()) -> str:
        """The gate for each paragraph, so that the form of the narrative stays."""
        lines = [
            self._gate(line, names=names).text
            for line in text[: narrative.MAX_CHARACTERS].splitlines()
        ]
        return "\n".join(lines).strip()

    def _check_project(self, project: str) -> None:
        """A project's name is stored as it is, so it must be harmless itself."""
        if project and (len(project) > 60 or self._gate(project).text != project):
            raise BadInput(
                "the project's name holds what a memory may not keep, such as a name or a number",
                hint="Use ordinary words, or extend VADE_MEMORY_ALLOWED.",
            )

    def _agent(self, agent: str) -> str:
        """The agent's name where it is harmless."""
        return agent if len(agent) <= 60 and self._gate(agent).text == agent else ""


def with_memory(prompt: str, content: str) -> str:
    """The prompt and the `<memory>` block; markup in the content cannot end the block."""
    if not content:
        return prompt
    safe = content.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"{prompt.rstrip()}\n\n<memory>\n{safe}\n</memory>\n"
