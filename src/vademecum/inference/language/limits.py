"""A language model within limits: so many calls at once, and so much money in all.

Time is the wire's to mind. Every call is told to `record`, failed ones too.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from vademecum.errors import LanguageModelRefused, SpendLimitReached
from vademecum.inference.bound import ByteTokenizer
from vademecum.inference.language.model import Completion, LanguageModel, Prompt
from vademecum.inference.language.prices import Price
from vademecum.telemetry.spans import span

OVERHEAD = 1000
"""Tokens that providers add to a prompt, for roles and for the form of the answer; an upper
bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One call of a model. `cost` is in US dollars, None where no price is declared."""

    provider: str
    model: str
    purpose: str
    tokens_in: int
    tokens_out: int
    cost: float | None
    milliseconds: int
    failed: bool


Record = Callable[[Use], Awaitable[None]]


class Purse:
    """What one process may spend, in US dollars: nothing is begun that might exceed it."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.spent = 0.0
        self._held = 0.0

    @contextmanager
    def hold(self, most: float) -> Iterator[None]:
        """Set aside what a call may cost at most. Raises SpendLimitReached."""
        if self.spent + self._held + most > self.limit:
            raise SpendLimitReached(spent=self.spent, most=most, limit=self.limit)
        self._held += most
        try:
            yield
        finally:
            self._held -= most


class Limited:
    """A LanguageModel that keeps to a purse and to a number of calls at once."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        price: Price | None,
        purse: Purse,
        gate: asyncio.Semaphore,
        record: Record,
    ) -> None:
        """Without a `price` the limit of the purse has to be infinite."""
        self._model, self._price, self._purse = model, price, purse
        self._gate, self._record = gate, record

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, prompt: Prompt) -> Completion:
        """A completion that came to its end and says something.

        Raises LanguageModelUnreachable, LanguageModelRefused, SpendLimitReached.
        """
        async with self._gate:
            with self._purse.hold(self._cost(most_tokens(prompt), prompt.max_tokens) or 0.0):
                completion = await self._call(prompt)
        if completion.stop == "declined":
            raise LanguageModelRefused(f"{self.name} declined to answer")
        if completion.stop == "cut off":
            raise LanguageModelRefused(f"{self.name} was cut off before it was done")
        if not completion.text.strip():
            raise LanguageModelRefused(f"{self.name} said nothing")
        return completion

    async def _call(self, prompt: Prompt) -> Completion:
        provider, _, model = self.name.partition(":")
        use = Use(
            provider=provider,
            model=model,
            purpose=prompt.purpose,
            tokens_in=0,
            tokens_out=0,
            cost=0.0,
            milliseconds=0,
            failed=True,
        )
        started = time.perf_counter()
        with span("complete", provider, model=model, purpose=prompt.purpose) as traced:
            try:
                completion = await self._model.complete(prompt)
                use = replace(
                    use,
                    tokens_in=completion.tokens_in,
                    tokens_out=completion.tokens_out,
                    cost=self._cost(completion.tokens_in, completion.tokens_out),
                    failed=completion.stop != "end",
                )
            finally:
                self._purse.spent += use.cost or 0.0
                took = round((time.perf_counter() - started) * 1000)
                # Also a caller that has gone has made its call.
                await asyncio.shield(self._record(replace(use, milliseconds=took)))
            traced.set(tokens_in=use.tokens_in, tokens_out=use.tokens_out)
        return completion

    def _cost(self, tokens_in: int, tokens_out: int) -> float | None:
        return None if self._price is None else self._price.cost(tokens_in, tokens_out)


def most_tokens(prompt: Prompt) -> int:
    """Tokens that a prompt has at most, whatever the tokenizer: one for each byte."""
    texts = [prompt.system, *(one.text for one in prompt.messages)]
    if prompt.schema is not None:
        texts.append(json.dumps(prompt.schema))
    return sum(ByteTokenizer().counts(texts)) + OVERHEAD
