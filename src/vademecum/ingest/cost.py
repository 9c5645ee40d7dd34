"""Before a run: what embedding the documents that wait will cost, and whether it may."""

from collections.abc import Callable

from vademecum.errors import BadSetting, CostCapReached, ModelUnavailable
from vademecum.inference.cost import Budget, estimate
from vademecum.inference.embedder import Embedder
from vademecum.store import jobs
from vademecum.store.db import Database
from vademecum.types import CollectionId

WORTH_A_WORD = 0.01
"""US dollars."""


def budget_of(embedder: Callable[[str], Embedder | None], setting: str) -> Budget | None:
    """What an embedder may cost; None where it costs nothing."""
    try:
        budget = getattr(embedder(setting), "budget", None)
    except (BadSetting, ModelUnavailable):  # its documents fail by name
        return None
    return budget if isinstance(budget, Budget) else None


async def check_cost(
    database: Database,
    embedder: Callable[[str], Embedder | None],
    collection: CollectionId | None,
    notice: Callable[[str], None],
) -> None:
    """Begin the budget of a run over one collection, or all; say what it will cost.

    Raises CostCapReached where that is more than the cap.
    """

    async def look() -> dict[str, int]:
        async with database.connection() as connection:
            return await jobs.waiting_bytes(connection, collection)

    waiting = await database.retry(look)
    for setting, text_bytes in waiting.items():
        budget = budget_of(embedder, setting)
        if budget is None:
            continue
        budget.begin()
        about = estimate(budget.model, text_bytes)
        if about is None:
            continue
        if about.dollars > budget.cap:
            raise CostCapReached(budget.model, spent=0.0, cap=budget.cap, about=about.dollars)
        if about.dollars >= WORTH_A_WORD:
            notice(
                f"embedding by {budget.model}: about {about.tokens:,} tokens, ${about.dollars:.2f}"
            )
