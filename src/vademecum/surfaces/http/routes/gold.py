"""Questions with known answers in a request, as the lines of a gold file."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from vademecum.evaluate.gold import MAX_REL, Expectation, Question
from vademecum.surfaces.http.routes.shared import Text

Part = Annotated[Text, Field(min_length=1, max_length=8000)]


class Expected(BaseModel):
    """What a result has to be; at least one of path and section."""

    path_contains: Part | None = None
    section_contains: Part | None = None
    rel: Annotated[float, Field(gt=0, le=MAX_REL)] = 1.0

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.path_contains is None and self.section_contains is None:
            raise ValueError("needs path_contains, section_contains or both")
        return self


class Gold(BaseModel):
    """A question, and what a good search finds for it."""

    query: Annotated[Text, Field(min_length=1, max_length=10_000, pattern=r"\S")]
    expect: Annotated[list[Expected], Field(min_length=1, max_length=1000)]


Questions = Annotated[list[Gold], Field(min_length=1, max_length=10_000)]


def questions_of(asked: Sequence[Gold] | None) -> list[Question] | None:
    if asked is None:
        return None
    return [
        Question(
            id=str(number),
            query=one.query,
            expect=tuple(Expectation(**expected.model_dump()) for expected in one.expect),
        )
        for number, one in enumerate(asked, 1)
    ]
