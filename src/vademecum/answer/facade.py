"""Answers from a collection, in a language model's words or those of the sources, and kept ones.

question --search--> [Hit] --generated | extractive--> Answer --keep--> a note that rests on them
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from vademecum.answer import extractive, generated
from vademecum.answer.question import ask
from vademecum.errors import BadInput, LanguageModelFailed
from vademecum.inference.embedder import Embedder
from vademecum.inference.language.model import LanguageModel
from vademecum.inference.words import WordTokenizer
from vademecum.models import Models
from vademecum.notes.draft import MAX_TITLE
from vademecum.notes.facade import Notes
from vademecum.search.facade import SearchResult
from vademecum.store import documents
from vademecum.store.collections import Collection
from vademecum.store.db import Database
from vademecum.store.lexical import KeptEntries
from vademecum.store.rests_on import Passage
from vademecum.types import Answer, Cited, Dropped, Hit, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerResult:
    question: str
    found: bool
    answer: str
    sources: tuple[Cited, ...]
    by: str
    """`extractive`, or the language model that wrote it."""
    dropped: tuple[Dropped, ...]
    """What the language model wrote that the sources do not support."""
    took_ms: float
    notices: list[str]
    """What the answer lacks, such as a retriever that could not take part."""
    kept: UUID | None = None
    """The note in which it is kept, where that was asked for and there is an answer."""


class Answerer:
    def __init__(
        self,
        database: Database,
        *,
        collection: Callable[[str], Awaitable[Collection]],
        embedder: Callable[[Collection], Embedder | None],
        search: Callable[[Query], Awaitable[SearchResult]],
        models: Models,
        notes: Notes,
        entries: KeptEntries,
    ) -> None:
        """`entries` is what searches have read of words lately."""
        self._database = database
        self._collection = collection
        self._embedder = embedder
        self._search = search
        self._models = models
        self._notes = notes
        self._entries = entries

    async def answer(
        self,
        question: str,
        *,
        collection: str,
        filters: tuple[str, ...] = (),
        model: str | None = None,
        keep_for: str | None = None,
        replaces: Sequence[UUID] = (),
    ) -> AnswerResult:
        """See `App.answer`."""
        started = time.perf_counter()
        if keep_for is not None and len(question) > MAX_TITLE:
            raise BadInput(
                f"a question of more than {MAX_TITLE} characters is not kept",
                hint="Ask it shorter; the question is what the answer is found by.",
            )
        writer, notices = self._writer(model)
        found = await self._search(
            Query(text=question, collection=collection, limit=extractive.MAX_HITS, filters=filters)
        )
        answer, told = await self._answered(question, found, collection, writer)
        notices = [*found.notices, *notices, *told]
        kept = None
        if keep_for is not None and answer.found:
            kept = await self._keep(keep_for, answer, found.results, replaces)
        elif keep_for is not None:
            notices.append("nothing is kept, since there is no answer")
        return AnswerResult(
            question=question,
            found=answer.found,
            answer=answer.answer,
            sources=answer.sources,
            by=answer.by,
            dropped=answer.dropped,
            took_ms=(time.perf_counter() - started) * 1000,
            notices=notices,
            kept=kept,
        )

    def _writer(self, model: str | None) -> tuple[LanguageModel | None, list[str]]:
        """The language model that is to answer, and why that of the settings is not."""
        if model is not None:
            return (None if model == "none" else self._models.named(model)), []
        why = self._models.withheld("answer")
        told = [] if why is None else [f"{why}; answered in the sources' own words"]
        return self._models.meant_for("answer"), told

    async def _answered(
        self, question: str, found: SearchResult, collection: str, writer: LanguageModel | None
    ) -> tuple[Answer, list[str]]:
        target = await self._collection(collection)
        # Without vectors in the search there is no model to compare sentences by, either.
        embedder = self._embedder(target) if found.mode == "hybrid" else None
        told = []
        answer = None
        if writer is not None:
            tokenizer = embedder.tokenizer if embedder else WordTokenizer()
            try:
                answer = await generated.answer(question, found.results, writer, tokenizer)
            except LanguageModelFailed as error:
                told.append(f"{error}: answered in the sources' own words")
        if answer is None:
            async with self._database.connection() as connection:
                asked = await ask(connection, target.id, question, self._entries)
            answer = await extractive.answer(asked, found.results, embedder)
        if answer.dropped:
            told.append(f"not supported and dropped, of {answer.by}: {len(answer.dropped)}")
        return answer, told

    async def _keep(
        self, project: str, answer: Answer, hits: Sequence[Hit], replaces: Sequence[UUID]
    ) -> UUID:
        cited = {source.reference for source in answer.sources}
        saved = await self._notes.keep_answer(
            project,
            answer.question,
            answer.answer,
            [_passage(hit) for hit in hits if hit.reference in cited],
            agent=answer.by,
            replaces=replaces,
        )
        return saved.note.id


def _passage(hit: Hit) -> Passage:
    return Passage(
        collection=hit.collection,
        path=hit.path,
        section_id=hit.section_id,
        chunk_hash=documents.content_hash(hit.text),
    )
