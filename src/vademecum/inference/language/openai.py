"""OpenAI's Chat Completions API, and the many servers that speak it."""

from vademecum.errors import LanguageModelRefused
from vademecum.inference.language.model import Completion, Prompt, Stop
from vademecum.inference.language.wire import Wire
from vademecum.settings import OPENAI_URL

URL = OPENAI_URL
KEY, BASE = "OPENAI_API_KEY", "OPENAI_BASE_URL"
STOPS: dict[str, Stop] = {"length": "cut off", "content_filter": "declined"}
LIMITS = ("max_completion_tokens", "max_tokens")
"""OpenAI's own name, and the older one that other servers know."""


class OpenAIModel:
    """The LanguageModel `openai:MODEL`. `url` ends where `/chat/completions` is to follow."""

    def __init__(self, model: str, *, key: str | None, url: str, seconds: float) -> None:
        self._model = model
        self.wire = Wire(
            self.name,
            url=url,
            seconds=seconds,
            headers={"authorization": f"Bearer {key}"} if key else {},
            key=key,
            key_variable=KEY,
        )
        self._limit = LIMITS[0] if self.wire.url == URL else LIMITS[1]

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    async def complete(self, prompt: Prompt) -> Completion:
        """Raises LanguageModelUnreachable, LanguageModelRefused."""
        body: dict[str, object] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": prompt.system},
                *({"role": one.role, "content": one.text} for one in prompt.messages),
            ],
        }
        if prompt.schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": prompt.purpose, "schema": prompt.schema, "strict": True},
            }
        answer = await self._post(body, prompt.max_tokens)
        try:
            return _completion(answer)
        except (KeyError, IndexError, TypeError, ValueError):
            raise self.wire.strange() from None

    async def _post(self, body: dict[str, object], max_tokens: int) -> dict[str, object]:
        path = "/chat/completions"
        try:
            return await self.wire.post(path, body | {self._limit: max_tokens})
        except LanguageModelRefused as refused:
            # Which of the two names a server knows is told by its refusal alone.
            if self._limit not in str(refused):
                raise
            self._limit = LIMITS[1 - LIMITS.index(self._limit)]
            return await self.wire.post(path, body | {self._limit: max_tokens})


def _completion(answer: dict[str, object]) -> Completion:
    choices, usage = answer["choices"], answer["usage"]
    if not isinstance(choices, list) or not isinstance(usage, dict):
        raise TypeError
    said = choices[0]["message"]
    stop = STOPS.get(str(choices[0]["finish_reason"]), "end")
    return Completion(
        text=said.get("content") or "",
        stop="declined" if said.get("refusal") else stop,
        tokens_in=int(usage["prompt_tokens"]),
        tokens_out=int(usage["completion_tokens"]),
    )
