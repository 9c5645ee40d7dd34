"""An exchange into a memory: drafted by a language model or by rules, judged, and stored."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from vademecum.errors import LanguageModelFailed
from vademecum.inference.language.model import LanguageModel
from vademecum.memory import narrative
from vademecum.memory.narrative import Facts
from vademecum.memory.privacy import Gated
from vademecum.memory.written import Written, write
from vademecum.store import memory as rows
from vademecum.store.db import Database
from vademecum.store.memory import StoredMemory

ATTEMPTS = 3
"""Drafts of a model for one exchange, while others of the user come between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What a user wrote and an agent replied. `gated` is what of the message may be kept."""

    id: str
    project: str
    agent: str
    outcome: str
    message: str
    reply: str
    gated: Gated


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdate:
    """What an update did. Of what the gate refused there are only counts, by kind."""

    changed: bool
    version: int
    content: str
    generalised: int
    dropped: dict[str, int]
    by: str | None = None
    """The language model that wrote it; None is the rules."""
    notice: str | None = None
    """Why a model that was to write did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """What a model made of the memory at version `based_on`; without `by` the rules write."""

    by: str | None = None
    based_on: int = 0
    written: Written | None = None
    notice: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """One exchange on its way into one user's memory."""

    database: Database
    user: UUID
    exchange: Exchange
    judge: Callable[[str], Gated]
    """The gate, knowing the names of the exchange."""
    settle: Callable[[str], str]
    """The gate for a whole narrative, line by line."""
    model: LanguageModel | None = field(default=None)

    async def take(self) -> MemoryUpdate:
        """The model works without a lock; if the memory changed meanwhile, it has to look again."""
        for _ in range(ATTEMPTS):
            if (update := await self._store(await self._draft())) is not None:
                return update
        notice = "other exchanges of the user kept coming between; the rules wrote it instead"
        update = await self._store(_Draft(notice=notice))
        assert update is not None
        return update

    async def _draft(self) -> _Draft:
        told = self.exchange
        if self.model is None or told.outcome != "ok":
            return _Draft()
        async with rows.as_user(self.database, self.user) as connection:
            before = await rows.read(connection, self.user, told.project)
            if await rows.seen(connection, self.user, told.id):
                return _Draft()
        try:
            written = await write(
                self.model,
                self.judge,
                current=before.content if before else "",
                message=told.message,
                reply=told.reply,
                agent=told.agent,
            )
        except LanguageModelFailed as error:
            return _Draft(notice=f"{error}; the rules wrote it instead")
        based_on = before.version if before else 0
        return _Draft(by=self.model.name, based_on=based_on, written=written)

    async def _store(self, draft: _Draft) -> MemoryUpdate | None:
        """None where the draft is of a version that is no longer the newest."""
        told = self.exchange
        async with rows.as_user(self.database, self.user) as connection:
            stored = await rows.lock(connection, self.user, told.project)
            if draft.by and draft.based_on != stored.version:
                return None
            is_new = await rows.log(
                connection,
                self.user,
                exchange=told.id,
                project=told.project,
                agent=told.agent,
                outcome=told.outcome,
            )
            facts, worth = narrative.learn(stored.facts, told.gated.text, agent=told.agent)
            if draft.by:
                worth = draft.written is not None
            if not is_new or told.outcome != "ok" or not worth:
                return unchanged(stored, told.gated, notice=draft.notice)
            if draft.written:
                facts = facts | {"by": draft.by}
                content = draft.written.content
            else:
                content = narrated(stored, facts, told.gated.text, agent=told.agent)
            # Sentences are put together from what passed alone: judge what they became.
            content = self.settle(content)
            if content == stored.content:
                return unchanged(stored, told.gated, notice=draft.notice)
            version = await rows.write(
                connection,
                self.user,
                told.project,
                content=content,
                facts=facts,
                reason=f"exchange, by {draft.by}" if draft.by else "exchange",
            )
        refused = draft.written or told.gated
        return changed(version, content, refused, by=draft.by, notice=draft.notice)


def narrated(
    stored: StoredMemory, facts: Facts, gated: str, *, agent: str = "", note: bool = False
) -> str:
    """The narrative by rules; what a model wrote before stays, and gets what is new."""
    if "by" not in stored.facts:
        return narrative.narrate(facts)
    facts["by"] = stored.facts["by"]
    new = {"note": {gated.rstrip("."): {"count": 1, "last": 0}}} if note else {}
    if not note:
        new, _ = narrative.learn({}, gated, agent=agent)
    return narrative.merge(stored.content, narrative.narrate(new))


def changed(
    version: int,
    content: str,
    refused: Gated | Written,
    *,
    by: str | None = None,
    notice: str | None = None,
) -> MemoryUpdate:
    """The update that wrote a version; `refused` counts what is not in it."""
    return MemoryUpdate(
        changed=True,
        version=version,
        content=content,
        generalised=refused.generalised,
        dropped=dict(refused.dropped),
        by=by,
        notice=notice,
    )


def unchanged(stored: StoredMemory, gated: Gated, *, notice: str | None = None) -> MemoryUpdate:
    """The update that changed nothing."""
    return MemoryUpdate(
        changed=False,
        version=stored.version,
        content=stored.content,
        generalised=gated.generalised,
        dropped=gated.dropped,
        notice=notice,
    )
