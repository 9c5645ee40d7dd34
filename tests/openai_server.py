"""OpenAI's embeddings interface over a real socket, without a model behind it.

It holds to the limits of the real one: inputs and tokens of a request, tokens of a text, no empty
text, a key. A token is three bytes here.
"""

import base64
import json
import threading
import time
from collections import deque
from collections.abc import Mapping

import numpy as np

from listening import Answer, Listening, in_json

KEY = "sk-test-0123456789"
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072}


class OpenAIServer(Listening):
    """`asked` holds the inputs of every request; `failures` are statuses to answer first.

    `served` is one more model, as a server of another kind would have it.
    """

    def __init__(self, *, served: str | None = None, dimensions: int = 8) -> None:
        self.served, self.served_dimensions = served, dimensions
        self.context: int | None = None
        """What a server like vLLM says of its model."""
        self.most_tokens = 8192
        self.asked: list[list[str]] = []
        self.failures: deque[tuple[int, str, dict[str, str]]] = deque()
        self.poison: str | None = None
        self.charge = 1
        """How many times its tokens a text is charged for."""
        self.busiest = 0
        """The most requests that were under way at one time."""
        self.seconds = 0.0
        self._busy = 0
        self._lock = threading.Lock()
        super().__init__()

    @property
    def base(self) -> str:
        return f"{self.url}/v1"

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if self.served is None and headers.get("authorization") != f"Bearer {KEY}":
            return _error(401, "Incorrect API key provided.", "invalid_api_key")
        if (method, path) == ("GET", "/v1/models"):
            told = {} if self.context is None else {"max_model_len": self.context}
            return in_json(200, {"object": "list", "data": [{"id": self.served, **told}]})
        if (method, path) != ("POST", "/v1/embeddings"):
            return _error(404, f"Invalid URL ({method} {path})", None)
        with self._lock:
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
        try:
            time.sleep(self.seconds)
            return self._embed(json.loads(body))
        finally:
            with self._lock:
                self._busy -= 1

    def _embed(self, request: dict[str, object]) -> Answer:
        given = request["input"]
        inputs = given if isinstance(given, list) else [given]
        self.asked.append(inputs)
        if self.failures:
            status, code, headers = self.failures.popleft()
            sent = _error(status, "The server had an error.", code)
            return sent[0], {**sent[1], **headers}, sent[2]
        model = str(request["model"])
        known = {**DIMENSIONS, **({self.served: self.served_dimensions} if self.served else {})}
        if model not in known:
            return _error(404, f"The model `{model}` does not exist.", "model_not_found")
        if len(inputs) > 2048:
            return _error(400, "Invalid 'input': array too long. 2048 at most.", None)
        if not all(inputs):
            return _error(400, "'$.input' is invalid: it must not be empty.", None)
        if self.poison is not None and any(self.poison in text for text in inputs):
            return _error(400, "invalid input", None)
        tokens = [tokens_of(text) for text in inputs]
        if max(tokens) > self.most_tokens:
            return _error(
                400,
                f"This model's maximum context length is {self.most_tokens} tokens, however you"
                f" requested {max(tokens)} tokens.",
                None,
            )
        if sum(tokens) > 300_000:
            return _error(400, "Requested too many tokens: 300000 at most.", "max_tokens")
        size = request.get("dimensions", known[model])
        assert isinstance(size, int)
        vectors = [self.vector(text, known[model])[:size] for text in inputs]
        return in_json(
            200,
            {
                "object": "list",
                "model": model,
                # In another order: it is the index that counts.
                "data": [
                    {"object": "embedding", "index": index, "embedding": _sent(vector, request)}
                    for index, vector in reversed(list(enumerate(vectors)))
                ],
                "usage": {
                    "prompt_tokens": sum(tokens),
                    "total_tokens": sum(tokens) * self.charge,
                },
            },
        )

    def vector(self, text: str, dimensions: int) -> np.ndarray:
        """Each word points somewhere; of length 1, before it is shortened."""
        total = np.full(dimensions, 1e-3)
        for word in text.lower().split():
            seed = int.from_bytes(word.encode()[:8].ljust(8), "little")
            total += np.random.default_rng(seed).standard_normal(dimensions)
        return (total / np.linalg.norm(total)).astype(np.float32)


def tokens_of(text: str) -> int:
    return -(-len(text.encode()) // 3)


def _sent(vector: np.ndarray, request: dict[str, object]) -> object:
    if request.get("encoding_format") == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return vector.tolist()


def _error(status: int, message: str, code: str | None) -> Answer:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return in_json(status, {"error": error})
