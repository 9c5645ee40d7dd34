"""What an embedder is, whichever model or server is behind it."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vademecum.types import EmbeddingSpace, Vector

__all__ = ["Embedder", "EmbeddingSpace", "Tokenizer"]


class Tokenizer(Protocol):
    """The embedding model's own way to count."""

    def starts(self, text: str) -> list[int]:
        """Where in `text` each of its tokens begins, in characters; no special tokens."""
        ...

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text; no special tokens."""
        ...


class Embedder(Protocol):
    """Text to vectors."""

    @property
    def space(self) -> EmbeddingSpace: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def max_tokens(self) -> int:
        """Tokens of text that one vector covers; special tokens and prefix are already off."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of document texts, shape (len(texts), dimensions).

        Raises BadInput for a text longer than `max_tokens`: nothing is cut silently.
        """
        ...

    async def embed_query(self, text: str) -> Vector:
        """Unit vector of a query, shape (dimensions,); a longer query keeps its first tokens."""
        ...
