"""What the routes share: the open app, and how they fail."""

from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import AfterValidator, BaseModel, Field

from vademecum.app import App


async def _opened(request: Request) -> App:
    app: App = request.app.state.app
    return app


OpenApp = Annotated[App, Depends(_opened)]


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be Unicode without lone surrogates") from None
    return text


Text = Annotated[str, AfterValidator(_storable)]
"""Text that PostgreSQL can keep."""
Short = Annotated[Text, Field(max_length=1000)]
Traceback = Annotated[Text, Field(max_length=200_000)]

Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_storable)]


class Problem(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    hint: str | None = None


FAILURES: dict[int | str, dict[str, Any]] = {
    status: {
        "content": {"application/problem+json": {"schema": Problem.model_json_schema()}},
        "description": text,
    }
    for status, text in {
        400: "It cannot be understood",
        401: "No valid token",
        403: "The address is not fetched, or the key does not open this",
        404: "There is no such collection, document, chunk or run",
        409: "It is gone, held by another, or in a state in which that cannot be done",
        413: "The body is too large",
        422: "A value is missing or wrong",
        429: "Too many requests for this key",
        503: "The database or the model is away",
    }.items()
}
