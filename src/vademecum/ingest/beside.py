"""What is new in a collection that moves to another model, for the model it is still searched by.

A move may take days, and may be refused in the end. A document that comes or changes meanwhile is
embedded by both models, so that the present vectors miss nothing.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from vademecum.errors import CostCapReached, VadeError
from vademecum.inference.embedder import Embedder
from vademecum.ingest import process
from vademecum.ingest.prepare import Prepared, header, windows_of
from vademecum.ingest.process import Beside
from vademecum.profiles.profile import Profile
from vademecum.store import embeddings
from vademecum.store.db import Database
from vademecum.types import SpaceId, Vector


async def beside(
    database: Database,
    embedder: Embedder,
    profile: Profile,
    prepared: Sequence[Prepared],
    notice: Callable[[str], None],
) -> Beside | None:
    """The present model's vectors of those documents that have chunks without them; None where
    there are none, or the model is away, which `notice` is told. Raises CostCapReached."""

    async def lacking() -> tuple[SpaceId, list[Prepared]]:
        async with database.connection() as connection:
            space = await embeddings.space_id(connection, embedder.space)
            ids = [chunk.chunk.id for one in prepared for chunk in one.chunks]
            held = await embeddings.digests(connection, space, ids)
        return space, [
            one for one in prepared if any(chunk.chunk.id not in held for chunk in one.chunks)
        ]

    space, new = await database.retry(lacking)
    if not new:
        return None
    try:
        windowed = [
            await asyncio.to_thread(partial(_windowed, one, embedder, profile)) for one in new
        ]

        async def known() -> dict[bytes, Vector]:
            async with database.connection() as connection:
                return await process.reusable(connection, space, [one.document.id for one in new])

        vectors = await database.retry(known)
        vectors |= await process.embed(windowed, vectors, embedder)
    except CostCapReached:
        raise
    except VadeError as error:
        notice(f"{error}: what is new is found by its words only until the move is done")
        return None
    return Beside(space=space, prepared=windowed, vectors=vectors)


def _windowed(prepared: Prepared, embedder: Embedder, profile: Profile) -> Prepared:
    """The same chunks in the windows of another embedder."""
    document = prepared.document
    chunks = tuple(
        replace(
            chunk,
            windows=windows_of(
                header(document, chunk.chunk, chunk.fields, profile),
                chunk.chunk.text,
                tokenizer=embedder.tokenizer,
                limit=embedder.max_tokens,
            ),
        )
        for chunk in prepared.chunks
    )
    return replace(prepared, chunks=chunks)
