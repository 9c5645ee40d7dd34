"""Storing and working side by side: what is stored first is searchable before all is read."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Stored = TypeVar("Stored")
Worked = TypeVar("Worked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """Documents that are being stored while others are worked on already."""

    documents: int
    """At least so many, those that are stored by now among them."""
    over: Callable[[], bool]


NONE_COMING = Coming(documents=0, over=lambda: True)


async def overlapped(
    store: Callable[[Callable[[int], None]], Awaitable[Stored]],
    work: Callable[[Coming], Awaitable[Worked]],
) -> tuple[Stored, Worked]:
    """What both return. `store` tells its argument how many documents there are to store; from
    then on there is work. Where it tells nothing, or none, work begins when all is stored.

    Storing is seen through also where the work fails, whose error is raised then; where storing
    fails the work is cancelled.
    """
    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    storing = asyncio.ensure_future(store(told.set_result))
    either: tuple[asyncio.Future[Any], ...] = (storing, told)

    async def then_work() -> Worked:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        documents = told.result() if told.done() else 0
        if not documents:
            await asyncio.wait({storing})
        return await work(Coming(documents=documents, over=storing.done))

    working = asyncio.create_task(then_work())
    try:
        stored = await storing
    except BaseException:
        working.cancel()
        await asyncio.wait({working})
        if not working.cancelled():
            working.exception()  # taken note of: the one of storing is raised
        raise
    return stored, await working
