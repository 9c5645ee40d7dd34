"""Embeddings by an Ollama server, over its HTTP interface."""

import httpx
import numpy as np
from numpy.typing import NDArray

from vademecum.errors import BadInput, EmbedderUnreachable, ModelUnavailable
from vademecum.inference.embedder import EmbeddingSpace
from vademecum.inference.prefixes import prefixes
from vademecum.inference.served import Facts, Passing, ServedEmbedder, TooLong, tokenizer_for

SERVED_CONTEXT = 2048
"""Tokens that Ollama reads unless told otherwise, whatever the model could."""
SPECIAL_TOKENS = 2
TOO_LONG = "context length"
"""How Ollama's message names a text that is too long."""


class OllamaEmbedder(ServedEmbedder):
    """The Embedder of an Ollama server."""

    async def ask(self, client: httpx.AsyncClient, inputs: list[str]) -> NDArray[np.float32]:
        try:
            answer = await client.post(
                "/api/embed", json={"model": self.model, "input": inputs, "truncate": False}
            )
        except httpx.HTTPError as error:
            raise Passing(self._unreachable(error)) from None
        if answer.status_code >= 400:
            raise self._refusal(answer)
        try:
            return np.asarray(answer.json()["embeddings"], np.float32)
        except (ValueError, KeyError, TypeError):
            raise EmbedderUnreachable(f"{self.url} does not answer as Ollama does") from None

    def _refusal(self, answer: httpx.Response) -> Exception:
        message = _message(answer)
        if TOO_LONG in message:
            return TooLong(message)
        if answer.status_code == 404:
            return self._no_model()
        if answer.status_code < 500 and answer.status_code not in (408, 429):
            return BadInput(f"Ollama at {self.url} refused a text: {message}")
        return Passing(
            EmbedderUnreachable(
                f"Ollama at {self.url} failed: {message}", hint="Its own log says why."
            )
        )

    def look(self) -> Facts:
        try:
            with httpx.Client(base_url=self.url, timeout=3, trust_env=False) as client:
                shown = client.post("/api/show", json={"model": self.model})
                if shown.status_code == 404:
                    raise self._no_model()
                info = shown.raise_for_status().json()["model_info"]
                models = client.get("/api/tags").raise_for_status().json()["models"]
            architecture = info["general.architecture"]
            dimensions = int(info[f"{architecture}.embedding_length"])
            context = int(info[f"{architecture}.context_length"])
            names = {self.model, self.model if ":" in self.model else f"{self.model}:latest"}
            digest = next(str(m["digest"]) for m in models if m["name"] in names)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None
        except (ValueError, KeyError, TypeError, StopIteration):
            raise EmbedderUnreachable(
                f"{self.url} does not answer as Ollama does about {self.model!r}",
                hint="Check VADE_OLLAMA_URL, and that the model is one for embeddings.",
            ) from None
        document, query = prefixes(self.model)
        tokenizer = tokenizer_for(self.model)
        longest = max(tokenizer.counts([document, query]))
        return Facts(
            space=EmbeddingSpace(
                model=f"ollama:{self.model}",
                dimensions=dimensions,
                digest=digest.removeprefix("sha256:")[:16],
                document_prefix=document,
                query_prefix=query,
            ),
            max_tokens=min(context, SERVED_CONTEXT) - SPECIAL_TOKENS - longest,
            tokenizer=tokenizer,
        )

    def _unreachable(self, error: httpx.HTTPError) -> EmbedderUnreachable:
        return EmbedderUnreachable(
            f"Ollama does not answer at {self.url}: {str(error) or type(error).__name__}"
        )

    def _no_model(self) -> ModelUnavailable:
        return ModelUnavailable(
            f"Ollama at {self.url} has no model {self.model!r}",
            hint=f"Run `ollama pull {self.model}` there.",
        )


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"
