"""Ollama's chat interface."""

from vademecum.inference.language.model import Completion, Prompt
from vademecum.inference.language.wire import Wire

SMALLEST_CONTEXT = 4096
CHARACTERS_PER_TOKEN = 2
"""Few: the context is made to hold what is sent, since Ollama drops the beginning of what does
not fit, and says nothing."""


class OllamaModel:
    """The LanguageModel `ollama:MODEL`."""

    def __init__(self, model: str, *, url: str, seconds: float) -> None:
        self._model = model
        self.wire = Wire(self.name, url=url, seconds=seconds)

    @property
    def name(self) -> str:
        return f"ollama:{self._model}"

    async def complete(self, prompt: Prompt) -> Completion:
        """Raises LanguageModelUnreachable, LanguageModelRefused."""
        messages = [
            {"role": "system", "content": prompt.system},
            *({"role": one.role, "content": one.text} for one in prompt.messages),
        ]
        sent = sum(len(one["content"]) for one in messages)
        body: dict[str, object] = {
            "model": self._model,
            "messages": messages,
            "stream": False,
            "options": {
                "num_predict": prompt.max_tokens,
                "num_ctx": _context(sent // CHARACTERS_PER_TOKEN + prompt.max_tokens),
                "temperature": 0,
            },
        }
        if prompt.schema is not None:
            body["format"] = prompt.schema
        answer = await self.wire.post("/api/chat", body)
        try:
            said = answer["message"]
            if not isinstance(said, dict):
                raise TypeError
            return Completion(
                text=str(said["content"]),
                stop="cut off" if answer.get("done_reason") == "length" else "end",
                tokens_in=_count(answer, "prompt_eval_count"),
                tokens_out=_count(answer, "eval_count"),
            )
        except (KeyError, TypeError, ValueError):
            raise self.wire.strange() from None


def _context(tokens: int) -> int:
    """A power of two: each other size makes the server load its model again."""
    size = SMALLEST_CONTEXT
    while size < tokens:
        size *= 2
    return size


def _count(answer: dict[str, object], name: str) -> int:
    count = answer.get(name, 0)  # left out where nothing had to be read again
    if not isinstance(count, int):
        raise TypeError
    return count
