"""Anthropic's Messages API."""

from vademecum.inference.language.model import Completion, Prompt, Stop
from vademecum.inference.language.wire import Wire

URL = "https://api.anthropic.com"
VERSION = "2026-10-21"
KEY, BASE = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
STOPS: dict[str, Stop] = {
    "max_tokens": "cut off",
    "model_context_window_exceeded": "cut off",
    "refusal": "declined",
}


class AnthropicModel:
    """The LanguageModel `anthropic:MODEL`."""

    def __init__(self, model: str, *, key: str | None, url: str, seconds: float) -> None:
        self._model = model
        headers = {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})
        self.wire = Wire(
            self.name, url=url, seconds=seconds, headers=headers, key=key, key_variable=KEY
        )

    @property
    def name(self) -> str:
        return f"anthropic:{self._model}"

    async def complete(self, prompt: Prompt) -> Completion:
        """Raises LanguageModelUnreachable, LanguageModelRefused."""
        body: dict[str, object] = {
            "model": self._model,
            "max_tokens": prompt.max_tokens,
            "system": prompt.system,
            "messages": [{"role": one.role, "content": one.text} for one in prompt.messages],
        }
        if prompt.schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": prompt.schema}}
        answer = await self.wire.post("/v1/messages", body)
        try:
            return self._completion(answer)
        except (KeyError, TypeError, ValueError):
            raise self.wire.strange() from None

    def _completion(self, answer: dict[str, object]) -> Completion:
        blocks, usage = answer["content"], answer["usage"]
        if not isinstance(blocks, list) or not isinstance(usage, dict):
            raise TypeError
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        return Completion(
            text=text,
            stop=STOPS.get(str(answer["stop_reason"]), "end"),
            # What the cache held is listed apart.
            tokens_in=sum(
                int(usage.get(name) or 0)
                for name in (
                    "input_tokens",
                    "cache_creation_input_tokens",
                    "cache_read_input_tokens",
                )
            ),
            tokens_out=int(usage["output_tokens"]),
        )
