"""What a language model is, whichever provider is behind it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from vademecum.errors import LanguageModelRefused

Schema = Mapping[str, object]
Stop = Literal["end", "cut off", "declined"]
_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request. `purpose` (answer, summary, ...) is what it is for in the spend report.

    With a `schema` (JSON Schema of an object, every property required, no limits on lengths: what
    all providers support) the completion is JSON of that form, as far as the provider keeps to it.
    """

    purpose: str
    system: str
    messages: Sequence[Message]
    max_tokens: int
    """Of the completion, thinking included."""
    schema: Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What the model said, and why it stopped there."""

    text: str
    stop: Stop
    tokens_in: int
    tokens_out: int

    def object(self) -> dict[str, object]:
        """The JSON object that the text is, with or without a code fence around it.

        Raises LanguageModelRefused.
        """
        fenced = _FENCE.match(self.text)
        try:
            value = json.loads(fenced[1] if fenced else self.text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise LanguageModelRefused("the model did not answer in the form it was asked for")
        return value


class LanguageModel(Protocol):
    """Prompt to completion."""

    @property
    def name(self) -> str:
        """`provider:model`."""
        ...

    async def complete(self, prompt: Prompt) -> Completion:
        """Raises LanguageModelUnreachable, LanguageModelRefused."""
        ...
