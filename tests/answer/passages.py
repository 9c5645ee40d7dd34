"""Hits and questions made inside the tests: both are plain values."""

from uuid import NAMESPACE_URL, uuid5

from vademecum.answer.question import Question
from vademecum.search.terms import query_terms
from vademecum.types import ChunkId, DocumentId, Hit


def hit(
    text: str,
    *,
    path: str = "guide.md",
    section: str = "top",
    heading: str = "Guide",
    ordinal: int = 0,
) -> Hit:
    name = f"{path}#{section}/{ordinal}"
    return Hit(
        chunk_id=ChunkId(uuid5(NAMESPACE_URL, name)),
        document_id=DocumentId(sum(path.encode())),
        score=1.0,
        title="Guide",
        collection="docs",
        path=path,
        url=None,
        heading_path=(heading,),
        section_id=section,
        ordinal=ordinal,
        text=text,
        snippet="",
        contributions=(),
    )


def question(text: str, *, unknown: tuple[str, ...] = ()) -> Question:
    """A question whose every term the collection holds now and then, but for the unknown."""
    shares = {term: 0.01 for term in query_terms(text) if term not in unknown}
    return Question(text, shares, chunks=1000)
