"""What a reranker is, whichever model is behind it."""

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Looks at a query and a passage together, and says how well they fit."""

    @property
    def name(self) -> str: ...

    async def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """How well each passage answers the query; higher is better, comparable within one call.

        Cancelled, it stops soon. Raises ModelUnavailable, LanguageModelFailed.
        """
        ...
