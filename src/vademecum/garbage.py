"""How often Python looks for cycles of garbage, in processes that are ours."""

import gc

YOUNG_OBJECTS = 50_000
"""New objects before the next look; Python's own number is 700. What is made of documents lives
until it is written and leaves hardly a cycle: by looking for one an ingest takes 1 % longer, the
reading of reStructuredText 14 %."""


def look_rarely() -> None:
    """Set it for this process; whoever uses this package in a process of theirs need not."""
    gc.set_threshold(YOUNG_OBJECTS)
