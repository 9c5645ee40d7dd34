"""all-MiniLM-L6-v2 in plain numpy and full precision: what the embedder is held against.

Written from the description of BERT, not from the graph. Only the reading of the tensors is
shared with the embedder, and the tokenizer is the one that is published with the model.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from vademecum.inference.weights import find_weights, read_weights

Array = NDArray[np.float32]


class Reference:
    def __init__(self) -> None:
        files = find_weights()
        self.weights = read_weights(files)
        self.tokenizer = Tokenizer.from_file(str(files.weights.parent / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def embed(self, texts: Sequence[str]) -> Array:
        return np.stack([self.vector(self.tokenizer.encode(text).ids) for text in texts])

    def vector(self, ids: Sequence[int]) -> Array:
        hidden = (
            self.weights["embeddings.word_embeddings.weight"][list(ids)]
            + self.weights["embeddings.position_embeddings.weight"][: len(ids)]
            + self.weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self.norm(hidden, "embeddings.LayerNorm")
        for number in range(6):
            layer = f"encoder.layer.{number}"
            attended = self.attention(hidden, f"{layer}.attention.self")
            hidden = self.norm(
                hidden + self.dense(attended, f"{layer}.attention.output.dense"),
                f"{layer}.attention.output.LayerNorm",
            )
            inner = gelu(self.dense(hidden, f"{layer}.intermediate.dense"))
            hidden = self.norm(
                hidden + self.dense(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        mean = hidden.mean(axis=0)
        vector: Array = mean / np.linalg.norm(mean)
        return vector

    def attention(self, hidden: Array, name: str) -> Array:
        query, key, value = (
            self.dense(hidden, f"{name}.{part}").reshape(len(hidden), 12, 32).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / np.sqrt(np.float32(32))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return (shares @ value).swapaxes(0, 1).reshape(len(hidden), 384)

    def dense(self, hidden: Array, name: str) -> Array:
        return hidden @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, hidden: Array, name: str) -> Array:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred / deviation * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def gelu(values: Array) -> Array:
    """x times the normal distribution's integral up to x.

    numpy has no error function; Abramowitz and Stegun 7.1.26 is exact to 1.5e-7.
    """
    z = np.abs(values) / np.sqrt(np.float32(2))
    t = 1 / (1 + 0.3275911 * z)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    error = np.sign(values) * (1 - series * np.exp(-z * z))
    result: Array = (0.5 * values * (1 + error)).astype(np.float32)
    return result
