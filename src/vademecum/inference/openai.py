"""Embeddings by OpenAI, or by any server that speaks its HTTP interface.

The model of a setting may carry what a server does not tell: `bge-m3?tokens=8192`,
`text-embedding-3-large?dimensions=1024`.
"""

import base64
import binascii
import math
from collections.abc import Sequence
from urllib.parse import parse_qsl

import httpx
import numpy as np
from numpy.typing import NDArray

from vademecum.errors import BadInput, BadSetting, EmbedderUnreachable, ModelUnavailable
from vademecum.inference.bound import ByteTokenizer
from vademecum.inference.cost import Budget
from vademecum.inference.embedder import EmbeddingSpace
from vademecum.inference.prefixes import prefixes
from vademecum.inference.served import Facts, Passing, ServedEmbedder, TooLong, tokenizer_for

MODELS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
"""Numbers of a vector of OpenAI's own models."""
SHORTENED = "text-embedding-3"
"""Models of this name may be asked for fewer numbers."""
CONTEXT = 8191
"""Tokens that OpenAI's models read."""
UNKNOWN_CONTEXT = 512
"""Tokens that another server is taken to read, where neither it nor the setting says."""
SPECIAL_TOKENS = 2
MAX_DIMENSIONS = 4000
"""What a halfvec of pgvector may hold with an index."""


class OpenAIEmbedder(ServedEmbedder):
    """The Embedder of OpenAI or of a server like it."""

    # Limits of OpenAI's embeddings endpoint; both are for one request.
    batch_texts = 2048
    batch_tokens = 300_000
    requests = 4

    def __init__(
        self, model: str, *, url: str, key: str | None = None, cap: float = math.inf
    ) -> None:
        """`cap` is what one run may cost, in US dollars. Raises BadSetting."""
        name, _, options = model.partition("?")
        super().__init__(name, url=url)
        self._dimensions, self._tokens = _options(model, options)
        if self._dimensions and name in MODELS and not name.startswith(SHORTENED):
            raise BadSetting(f"{name} has {MODELS[name]} dimensions and no others")
        if self._dimensions and self._dimensions > MODELS.get(name, MAX_DIMENSIONS):
            most = MODELS.get(name, MAX_DIMENSIONS)
            raise BadSetting(f"{name} cannot have {self._dimensions} dimensions: {most} at most")
        self._key = key
        self.budget = Budget(name, cap)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As ServedEmbedder; raises CostCapReached too, before anything is asked. Queries may
        always be asked."""
        self.budget.check()
        return await super().embed(texts)

    async def ask(self, client: httpx.AsyncClient, inputs: list[str]) -> NDArray[np.float32]:
        try:
            answer = await client.post("embeddings", json=self._request(inputs))
        except httpx.HTTPError as error:
            raise Passing(self._unreachable(error)) from None
        if answer.status_code >= 400:
            raise self._refusal(answer)
        vectors, tokens = self._read(answer)
        self.budget.spend(tokens)
        return vectors

    def client(self) -> httpx.AsyncClient:
        timeout = httpx.Timeout(300, connect=5)
        return httpx.AsyncClient(
            base_url=self.url, timeout=timeout, headers=self._headers(), trust_env=False
        )

    def look(self) -> Facts:
        if self.model in MODELS and self._dimensions is None:
            dimensions, context = MODELS[self.model], CONTEXT
        elif self.model in MODELS:
            dimensions, context = int(self._dimensions or 0), CONTEXT
        else:
            dimensions, context = self._look_at_server()
        document, query = prefixes(self.model)
        tokenizer = tokenizer_for(self.model)
        bound = isinstance(tokenizer, ByteTokenizer)
        special = 0 if self.model in MODELS and bound else SPECIAL_TOKENS
        return Facts(
            space=EmbeddingSpace(
                model=f"openai:{self.model}",
                dimensions=dimensions,
                # Nobody tells of the weights behind such a name; OpenAI's own never change.
                digest="openai" if self.model in MODELS else "served",
                document_prefix=document,
                query_prefix=query,
            ),
            max_tokens=(self._tokens or context)
            - special
            - max(tokenizer.counts([document, query])),
            tokenizer=tokenizer,
        )

    def _request(self, inputs: list[str]) -> dict[str, object]:
        asked: dict[str, object] = {
            "model": self.model,
            "input": inputs,
            "encoding_format": "base64",  # a quarter of the bytes that decimals take
        }
        if self._dimensions is not None:
            asked["dimensions"] = self._dimensions
        return asked

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def _read(self, answer: httpx.Response) -> tuple[NDArray[np.float32], int]:
        """The vectors in the order of the texts, and what they are charged for, in tokens."""
        try:
            content = answer.json()
            rows = sorted(content["data"], key=lambda row: int(row["index"]))
            vectors = np.stack([_vector(row["embedding"]) for row in rows])
            return vectors, int((content.get("usage") or {}).get("total_tokens", 0))
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
            raise EmbedderUnreachable(
                f"{self.url} does not answer as OpenAI does", hint="Check VADE_OPENAI_URL."
            ) from None

    def _refusal(self, answer: httpx.Response) -> Exception:
        message, code = _message(answer)
        status = answer.status_code
        if status in (401, 403):
            return ModelUnavailable(
                f"{self.url} does not let us in: {message}",
                hint="Set OPENAI_API_KEY, or VADE_OPENAI_KEY, to a key that is valid there.",
            )
        if code == "insufficient_quota":
            return EmbedderUnreachable(
                f"{self.url}: {message}", hint="The account has no credit left: see its billing."
            )
        if status == 404:
            return ModelUnavailable(
                f"{self.url} has no model {self.model!r}: {message}",
                hint="Check VADE_OPENAI_URL and the name of the model.",
            )
        if status in (408, 409, 429) or status >= 500:
            return Passing(
                EmbedderUnreachable(f"{self.url} failed: {message}", hint="Try again later."),
                wait=_seconds(answer.headers.get("retry-after")),
            )
        if status == 413 or any(words in message.lower() for words in _TOO_LONG):
            return TooLong(message)
        return BadInput(f"{self.url} refused a text: {message}")

    def _unreachable(self, error: httpx.HTTPError) -> EmbedderUnreachable:
        return EmbedderUnreachable(
            f"{self.url} does not answer: {str(error) or type(error).__name__}",
            hint="Check VADE_OPENAI_URL and the connection.",
        )

    # --- servers other than OpenAI ----------------------------------------------------------

    def _look_at_server(self) -> tuple[int, int]:
        """Dimensions and context of a model of which nothing is known here."""
        try:
            with httpx.Client(
                base_url=self.url, timeout=30, headers=self._headers(), trust_env=False
            ) as client:
                answer = client.post("embeddings", json=self._request(["a"]))
                if answer.status_code >= 400:
                    refusal = self._refusal(answer)
                    if isinstance(refusal, Passing):
                        raise refusal.failure
                    raise (
                        refusal
                        if isinstance(refusal, ModelUnavailable)
                        else ModelUnavailable(
                            str(refusal), hint="Check that the model is one for embeddings."
                        )
                    )
                vectors, _ = self._read(answer)
                listed = client.get("models")
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None
        if vectors.shape[1] > MAX_DIMENSIONS:
            raise ModelUnavailable(
                f"{self.model} has {vectors.shape[1]} dimensions, more than {MAX_DIMENSIONS}",
                hint="Ask for fewer: `?dimensions=1024`.",
            )
        return vectors.shape[1], _context(listed, self.model)


_TOO_LONG = ("context length", "maximum context", "too long", "too large", "must have less than")


def _options(model: str, options: str) -> tuple[int | None, int | None]:
    """Dimensions and tokens that a setting asks for. Raises BadSetting."""
    found: dict[str, int] = {}
    for name, value in parse_qsl(options, keep_blank_values=True):
        if name not in ("dimensions", "tokens") or not value.isdecimal() or int(value) < 1:
            raise BadSetting(
                f"openai:{model}: {name}={value} cannot be understood",
                hint="Write openai:MODEL?dimensions=1024&tokens=8192, or leave either out.",
            )
        found[name] = int(value)
    return found.get("dimensions"), found.get("tokens")


def _vector(embedding: object) -> NDArray[np.float32]:
    """One embedding, as base64 of little-endian floats or as a list."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return np.asarray(embedding, np.float32)


def _context(listed: httpx.Response, model: str) -> int:
    """Tokens that a model reads: vLLM and llama.cpp say it in their lists of models."""
    try:
        for entry in listed.json()["data"]:
            if entry["id"] == model:
                told = entry.get("max_model_len") or (entry.get("meta") or {}).get("n_ctx_train")
                return int(told or UNKNOWN_CONTEXT)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return UNKNOWN_CONTEXT


def _message(answer: httpx.Response) -> tuple[str, str]:
    """What the server says of a failure, and its code."""
    try:
        error = answer.json()["error"]
        if isinstance(error, dict):
            return str(error.get("message")), str(error.get("code"))
        return str(error), ""
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}", ""


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:  # a date: our own waits do
        return None
