"""What tests use in place of a model: honest about its protocol, and quick."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vademecum.errors import BadInput, ModelUnavailable
from vademecum.inference.embedder import Tokenizer
from vademecum.inference.words import WordTokenizer
from vademecum.types import EmbeddingSpace, Vector

DIMENSIONS = 16


class FakeEmbedder:
    """Each word points somewhere; a text points where its words do, taken together.

    `embedded` holds every document text it was given. While it is not `available` it behaves as
    an embedder whose weights are missing; a text that holds `poison` makes it fail.
    """

    def __init__(self, *, model: str = "fake", max_tokens: int = 60) -> None:
        self.space = EmbeddingSpace(model=model, dimensions=DIMENSIONS, digest="words")
        self.max_tokens = max_tokens
        self.available = True
        self.poison: str | None = None
        self.embedded: list[str] = []

    @property
    def tokenizer(self) -> Tokenizer:
        if not self.available:
            raise ModelUnavailable("the fake model is not installed")
        return WordTokenizer()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        for text, tokens in zip(texts, self.tokenizer.counts(texts), strict=True):
            if tokens > self.max_tokens:
                raise BadInput(f"{tokens} tokens, more than {self.max_tokens}")
            if self.poison is not None and self.poison in text:
                raise RuntimeError("the model choked")
        self.embedded += texts
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        return np.stack([_direction(text) for text in texts])

    async def embed_query(self, text: str) -> Vector:
        return _direction(text)


def _direction(text: str) -> Vector:
    total = np.full(DIMENSIONS, 1e-3)
    for word in text.lower().split():
        digest = hashlib.shake_256(word.encode()).digest(DIMENSIONS)
        total += np.frombuffer(digest, dtype=np.uint8) / 127.5 - 1
    return (total / np.linalg.norm(total)).astype(np.float32)
