"""What retrieval is worth on a collection, and where questions to measure it by come from."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from vademecum.errors import BadInput, ModelUnavailable, NoVectors
from vademecum.evaluate import capture, pipeline, propose
from vademecum.evaluate.capture import Captured
from vademecum.evaluate.gold import Question
from vademecum.evaluate.pipeline import MODES, RERANKED, Evaluation
from vademecum.evaluate.propose import Proposals
from vademecum.inference.embedder import Embedder
from vademecum.models import Models
from vademecum.search import pipeline as searching
from vademecum.search.facade import SearchResult
from vademecum.store import chunks, documents, searches
from vademecum.store.collections import Collection
from vademecum.store.db import Database
from vademecum.types import Hit, Query

NAMED = 10
"""Questions that a notice names."""


class EvaluationCalls:
    """`app.evaluation`."""

    def __init__(
        self,
        database: Database,
        *,
        collection: Callable[[str], Awaitable[Collection]],
        embedder: Callable[[Collection], Embedder | None],
        search: Callable[[Query], Awaitable[SearchResult]],
        models: Models,
    ) -> None:
        """`search` is one that notes nothing: these are no questions that anybody has."""
        self._database = database
        self._collection = collection
        self._embedder = embedder
        self._search = search
        self._models = models

    def modes(self) -> tuple[str, ...]:
        """What is measured where no mode is named."""
        return (*MODES, *([RERANKED] if self._models.reranker() is not None else []))

    async def evaluate(
        self,
        questions: Sequence[Question],
        *,
        collection: str,
        mode: str | None = None,
        k: int = 8,
        boost: tuple[str, ...] = (),
        asked: Callable[[], None] = lambda: None,
    ) -> Evaluation:
        """What each mode, or one, is worth on questions with known answers.

        Without a mode, those that cannot be measured are left out with a notice. Raises BadInput,
        UnknownCollection, and ModelUnavailable where `mode` needs a model that is not there.
        """
        searching.check(Query(text="any", collection=collection, limit=k, boost=boost))
        if mode == RERANKED and self._models.reranker() is None:
            raise ModelUnavailable("no reranker is here", hint="VADE_RERANKER names one.")
        target = await self._collection(collection)
        notices: list[str] = []
        try:
            if not self._embedder(target):
                raise NoVectors(collection)
        except ModelUnavailable as error:
            if mode not in (None, "lexical"):
                raise
            notices = [] if mode else [f"{error}: only lexical search was measured"]
            mode = "lexical"

        async with self._database.connection() as connection:
            notices += _out_of_reach(questions, await documents.paths(connection, target.id))
        said: Counter[str] = Counter()

        async def search(query: Query) -> list[Hit]:
            found = await self._search(query)
            said.update(found.notices)
            return found.results

        evaluation = await pipeline.evaluate(
            questions,
            search,
            collection=collection,
            modes=(mode,) if mode else self.modes(),
            k=k,
            boost=boost,
            asked=asked,
            notices=notices,
        )
        told = [f"{count} searches: {text}" for text, count in said.most_common(3)]
        return replace(evaluation, notices=[*notices, *told])

    async def propose(
        self, collection: str, *, count: int = 50, seed: int = 0, own_words: bool = False
    ) -> Proposals:
        """Questions about a collection for a person to edit: about its English documents in other
        words than theirs, or about all in their own.

        Raises BadInput, UnknownCollection, and for other words ModelUnavailable where it has no
        embedder.
        """
        if not 1 <= count <= propose.MAX_COUNT:
            raise BadInput(f"the number of questions must be from 1 to {propose.MAX_COUNT}")
        target = await self._collection(collection)
        embedder = self._embedder(target)
        if embedder is None and not own_words:
            raise NoVectors(collection)  # other words are found by them
        async with self._database.connection() as connection:
            drawn = await chunks.draw(connection, target.id, seed=seed, limit=propose.DRAWN)
        if embedder is None or own_words:
            return propose.in_own_words(drawn, count=count)
        return await propose.propose(drawn, embedder, count=count)

    async def captured(self, collection: str, *, days: int = 0) -> list[Captured]:
        """Real searches of the last days with the sources that were read; 0 is all that is kept.

        Raises UnknownCollection.
        """
        target = await self._collection(collection)
        async with self._database.connection() as connection:
            return capture.questions(await searches.used(connection, target.id, days=days))

    async def forget_searches(self, collection: str) -> int:
        """Forget the search log of a collection; answers how many uses were in it.

        Raises UnknownCollection.
        """
        target = await self._collection(collection)
        async with self._database.connection() as connection:
            return await searches.forget(connection, target.id)


def _out_of_reach(questions: Sequence[Question], paths: Sequence[str]) -> list[str]:
    """Questions that no search can answer: their documents are not in the collection."""
    every = "\n".join(paths)
    lost = [
        question.id
        for question in questions
        if not any((one.path_contains or "") in every for one in question.expect)
    ]
    if not lost:
        return []
    named = ", ".join(lost[:NAMED]) + (", …" if len(lost) > NAMED else "")
    return [
        f"{len(lost)} of {len(questions)} questions expect documents that are not there: {named}"
    ]
