"""How often and how many at once: buckets that fill with time."""

import time
from collections import OrderedDict

MAX_BUCKETS = 10_000


class Rates:
    """A bucket for each name: it holds two seconds' worth, so that short bursts pass."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, name: str, rate: float) -> float:
        """Count one request; the seconds after which to come again, 0 where it may pass."""
        now = time.monotonic()
        size = max(2 * rate, 1.0)
        left, at = self._buckets.pop(name, (size, now))
        left = min(size, left + (now - at) * rate)
        passes = left >= 1
        self._buckets[name] = (left - passes, now)
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return 0.0 if passes else (1 - left) / rate


class Places:
    """So many at once, and no more."""

    def __init__(self, count: int) -> None:
        self._free = count

    def take(self) -> bool:
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    def give_back(self) -> None:
        self._free += 1
