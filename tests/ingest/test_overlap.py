"""Storing and working side by side, whatever becomes of either."""

import asyncio
from collections.abc import Callable

import pytest

from vademecum.ingest.overlap import Coming, overlapped

Begun = Callable[[int], None]


async def test_work_begins_once_it_is_known_that_there_is_some() -> None:
    worked = asyncio.Event()

    async def store(begun: Begun) -> str:
        begun(3)
        await worked.wait()
        return "stored"

    async def work(coming: Coming) -> tuple[int, bool]:
        before = coming.over()
        worked.set()
        while not coming.over():
            await asyncio.sleep(0)
        return coming.documents, before

    assert await overlapped(store, work) == ("stored", (3, False))


@pytest.mark.parametrize("told", [None, 0])
async def test_without_a_word_it_begins_when_all_is_stored(told: int | None) -> None:
    async def store(begun: Begun) -> str:
        if told is not None:
            begun(told)
        await asyncio.sleep(0.01)
        return "stored"

    async def work(coming: Coming) -> tuple[int, bool]:
        return coming.documents, coming.over()

    assert await overlapped(store, work) == ("stored", (0, True))


async def test_storing_is_seen_through_where_the_work_fails() -> None:
    stored = []

    async def store(begun: Begun) -> None:
        begun(1)
        await asyncio.sleep(0.01)
        stored.append("all")

    async def work(coming: Coming) -> None:
        raise ValueError("away")

    with pytest.raises(ValueError, match="away"):
        await overlapped(store, work)
    assert stored == ["all"]


@pytest.mark.parametrize("stopped", [True, False])
async def test_work_is_cancelled_where_storing_ends_early(stopped: bool) -> None:
    ends = []

    async def store(begun: Begun) -> None:
        begun(1)
        await asyncio.sleep(0.01)
        if not stopped:
            raise ValueError("no such folder")
        await asyncio.sleep(60)

    async def work(coming: Coming) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ends.append("work")

    both = asyncio.ensure_future(overlapped(store, work))
    await asyncio.sleep(0.05)
    both.cancel()
    with pytest.raises(asyncio.CancelledError if stopped else ValueError):
        await both
    assert ends == ["work"]
