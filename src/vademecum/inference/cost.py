"""What embedding costs: prices, an estimate before a run, and a cap on one."""

import time
from dataclasses import dataclass

from vademecum.errors import CostCapReached

PRICES = {
    "text-embedding-3-small": 0.02,
    "text-embedding-3-large": 0.13,
    "text-embedding-ada-002": 0.10,
}
"""US dollars for a million tokens, by OpenAI's price list."""

BYTES_PER_TOKEN = 4
"""Of English, as OpenAI's own documentation puts it; other languages have fewer."""
DAY_SECONDS = 24 * 3600
OVERHEAD = 1.2
"""Overlaps and headers are embedded beside the text itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What embedding so much text costs, about."""

    tokens: int
    dollars: float


def estimate(model: str, text_bytes: int) -> Estimate | None:
    """About the cost of so much text; None for a model without a price."""
    if model not in PRICES:
        return None
    tokens = round(text_bytes / BYTES_PER_TOKEN * OVERHEAD)
    return Estimate(tokens=tokens, dollars=price(model, tokens))


def price(model: str, tokens: int) -> float:
    """US dollars; 0 for a model without a price."""
    return PRICES.get(model, 0.0) * tokens / 1_000_000


class Budget:
    """What one run may still cost, or a server in one day: the server's own counts, added up."""

    def __init__(self, model: str, cap: float) -> None:
        self.model, self.cap = model, cap
        self.begin()

    @property
    def dollars(self) -> float:
        return price(self.model, self.tokens)

    def begin(self) -> None:
        """A new run, with nothing spent."""
        self.tokens = 0
        self._began = time.monotonic()

    def check(self) -> None:
        """Before more is spent. Raises CostCapReached."""
        if time.monotonic() - self._began > DAY_SECONDS:
            self.begin()
        if self.dollars > self.cap:
            raise CostCapReached(self.model, spent=self.dollars, cap=self.cap)

    def spend(self, tokens: int) -> None:
        self.tokens += tokens
