"""Moves to another embedder: filled beside the present one, compared with it, swapped or refused.

    start --jobs--> filled --both are asked the same--> verdict --accepted--> swapped
                                                               └--refused---> as it was

The questions stand in the row of the move, so whichever worker finishes the filling may judge it.
Until the swap, and after a refusal, the present vectors answer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from vademecum.access import require
from vademecum.errors import BadInput
from vademecum.evaluate.capture import questions as captured_questions
from vademecum.evaluate.compare import LEAST_GAIN, compare, ranks_asked
from vademecum.evaluate.gold import Question, fields, question_of
from vademecum.evaluate.metrics import Estimate
from vademecum.evaluate.pipeline import evaluate
from vademecum.inference.embedder import Embedder
from vademecum.search import pipeline as searching
from vademecum.search.query_vector import QueryVector
from vademecum.store import collections, embeddings, moves, searches
from vademecum.store.collections import Collection
from vademecum.store.db import Connection, Database
from vademecum.store.moves import JudgedBy, MoveRow, MoveState
from vademecum.types import CollectionId, EmbeddingSpace, Hit, Query

LEAST_LOGGED = 10
"""Logged searches below which there is too little to judge by."""
K = 8

Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the new embedder reaches in hybrid search, beside the present one, by nDCG@10."""

    questions: int
    now: Estimate
    then: Estimate
    difference: Estimate
    """Question by question, the new one less the present one."""

    @property
    def good(self) -> bool:
        return self.difference.mean >= LEAST_GAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The last move of a collection."""

    collection: str
    present: str
    """The embedder that it is searched with."""
    embedder: str
    """The one that it moves to."""
    state: MoveState
    filled: bool
    """Whether every document that can be found is embedded for the new one."""
    done: bool
    """Whether it is searched with the new one."""
    judged_by: JudgedBy
    questions: int
    verdict: Verdict | None
    started_at: datetime
    judged_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """What a move is to be judged by."""

    judged_by: JudgedBy
    questions: Sequence[Question]


class Moves:
    """The moves of a database."""

    def __init__(
        self,
        database: Database,
        *,
        collection: Callable[[str], Awaitable[Collection]],
        embedder: Callable[[str], Embedder | None],
    ) -> None:
        self._database = database
        self._collection = collection
        self._embedder = embedder

    async def shown(self, name: str) -> Move | None:
        """The last move of a collection; None where it never moved. Raises UnknownCollection."""
        target = await self._collection(name)
        row = await self._row(target.id)
        return None if row is None else _shown(row)

    async def judges(
        self, target: Collection, gold: Sequence[Question] | None, *, unchecked: bool
    ) -> Judges:
        """What a move of this collection will be judged by: gold questions, else logged searches.

        A move under way keeps what it had. Raises BadInput where there is too little.
        """
        if unchecked or target.space_id is None:  # without vectors there is nothing to lose
            return Judges(judged_by="nobody", questions=())
        if gold:
            return Judges(judged_by="gold", questions=gold)
        if target.next_embedder is not None and (row := await self._row(target.id)):
            return Judges(
                judged_by=row.judged_by, questions=[question_of(one) for one in row.questions]
            )
        async with self._database.connection() as connection:
            logged = captured_questions(await searches.used(connection, target.id, days=0))
        if len(logged) < LEAST_LOGGED:
            raise BadInput(
                f"there is nothing to compare {target.name} by before it is searched with another"
                f" embedder: {len(logged)} logged searches, at least {LEAST_LOGGED} are needed",
                hint="Name questions with --gold FILE (`vade eval init` proposes some), or say"
                " --unchecked.",
            )
        return Judges(judged_by="logged", questions=[one.question for one in logged])

    async def start(
        self,
        connection: Connection,
        target: Collection,
        embedder: str,
        space: EmbeddingSpace | None,
        judges: Judges,
    ) -> None:
        """Have documents embedded with another embedder from now on; call inside a transaction."""
        await collections.use_embedder(connection, target.id, embedder)
        if space is None or embedder == target.embedder:
            await moves.forget(connection, target.id)
            return
        await moves.start(
            connection,
            target.id,
            embedder=embedder,
            space=await embeddings.space_id(connection, space),
            judged_by=judges.judged_by,
            questions=[fields(one) for one in judges.questions],
        )

    async def judge_if_due(
        self, collection: CollectionId | None = None, *, notice: Notice = lambda text: None
    ) -> None:
        """Judge the moves, all or this collection's, that are filled; and swap those accepted.

        Raises ModelUnavailable where an embedder is away: it is judged later.
        """
        async with self._database.connection() as connection:
            due = await moves.filling(connection, collection)
        for one in due:
            row = await self._row(one)
            if row is not None and row.filled:
                await self._judge(row, notice)

    async def compare_again(self, name: str, gold: Sequence[Question] | None = None) -> Move:
        """Judge a move once more, on other questions if some are given.

        Raises UnknownCollection, BadInput, ModelUnavailable.
        """
        require("admin", name)
        row = await self._open(name)
        if not row.filled:
            raise BadInput(
                f"not every document of {name} is embedded with {row.embedder} yet",
                hint="`vade process-queue` goes on; `vade status` names what failed.",
            )
        if gold:
            row = replace(row, questions=[fields(one) for one in gold])
        if not row.questions:
            raise BadInput(f"there is nothing to compare {name} by", hint="Name --gold FILE.")
        await self._judge(row, lambda text: None)
        found = await self.shown(name)
        assert found is not None
        return found

    async def accept(self, name: str) -> Move:
        """Swap whatever the verdict, as soon as all is embedded.

        Raises UnknownCollection, BadInput.
        """
        require("admin", name)
        await self._settle(await self._open(name), "accepted", None)
        found = await self.shown(name)
        assert found is not None
        return found

    async def abandon(self, name: str) -> None:
        """Stay with the present embedder; the chunks are then to be made by its recipe again,
        which keeps the vectors that are there. Raises UnknownCollection, BadInput."""
        require("admin", name)
        row = await self._open(name)
        async with self._database.transaction() as connection:
            await collections.stay(connection, row.collection_id)
            await moves.forget(connection, row.collection_id)

    async def _open(self, name: str) -> MoveRow:
        target = await self._collection(name)
        row = await self._row(target.id)
        if row is None or target.next_embedder is None:
            raise BadInput(
                f"{name} is not on its way to another embedder",
                hint=f"`vade reindex -c {name} --embedder P:MODEL` begins a move.",
            )
        return row

    async def _row(self, collection: CollectionId) -> MoveRow | None:
        async with self._database.connection() as connection:
            return await moves.of_collection(connection, collection)

    async def _judge(self, row: MoveRow, notice: Notice) -> None:
        target = await self._collection(row.collection)
        questions = [question_of(one) for one in row.questions]
        found = await self.verdict(target, row, questions)
        state: MoveState = "accepted" if found.good else "refused"
        await self._settle(row, state, asdict(found))
        said = (
            f"nDCG@10 {found.now.mean:.3f} -> {found.then.mean:.3f} on {found.questions} questions"
        )
        if found.good:
            notice(f"{row.collection} is searched with {row.embedder} now: {said}")
        else:
            notice(
                f"{row.collection} is still searched with {row.present}, {row.embedder} finds less:"
                f" {said}. `vade move accept` swaps all the same, `vade move abandon` goes back."
            )

    async def _settle(
        self, row: MoveRow, state: MoveState, verdict: Mapping[str, Any] | None
    ) -> None:
        async with self._database.transaction() as connection:
            await moves.judge(
                connection, row, state, verdict if verdict is not None else row.verdict
            )
            await collections.settle_spaces(connection)

    async def verdict(
        self, target: Collection, row: MoveRow, questions: Sequence[Question]
    ) -> Verdict:
        """Both asked the same questions, by hybrid search in PostgreSQL."""
        moved = replace(
            target,
            embedder=row.embedder,
            space_id=row.space_id,
            space_key=row.space_key,
            mirror_id=None,
        )
        sides = [await self._asked(side, questions) for side in (target, moved)]
        found = compare(questions, *sides, k=K)
        return Verdict(
            questions=len(found.questions),
            now=found.a["ndcg"],
            then=found.b["ndcg"],
            difference=found.differences["ndcg"],
        )

    async def _asked(self, side: Collection, questions: Sequence[Question]) -> Any:
        embedder = self._embedder(side.embedder)
        kept = searching.Kept()

        async def search(query: Query) -> Sequence[Hit]:
            with QueryVector(query.text) as vector:
                embedding = None if embedder is None else vector.by(embedder)
                return await searching.search(self._database, side, embedding, query, kept)

        done = await evaluate(questions, search, collection=side.name, modes=("hybrid",), k=K)
        return ranks_asked(questions, done.modes[0].met)


def _shown(row: MoveRow) -> Move:
    return Move(
        collection=row.collection,
        present=row.present,
        embedder=row.embedder,
        state=row.state,
        filled=row.filled,
        done=row.done,
        judged_by=row.judged_by,
        questions=len(row.questions),
        verdict=None if row.verdict is None else _verdict(row.verdict),
        started_at=row.started_at,
        judged_at=row.judged_at,
    )


def _verdict(held: Mapping[str, Any]) -> Verdict:
    return Verdict(
        questions=held["questions"],
        **{name: Estimate(**held[name]) for name in ("now", "then", "difference")},
    )
