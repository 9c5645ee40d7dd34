"""APIs marked by what a document says of them, with its sentence, in the caller's transaction."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from vademecum.graph import writing
from vademecum.graph.nodes import APIReference, ExternalDoc
from vademecum.graph.page_notices import PageNotice
from vademecum.graph.relations import Relation
from vademecum.graph.writing import Statement
from vademecum.store import graph as rows
from vademecum.store import knowledge
from vademecum.store.db import Connection

SOURCE = "refresh"
"""Who states what replaces an API; the key is the API's id."""


async def mark(
    connection: Connection,
    doc: ExternalDoc,
    found: Sequence[PageNotice],
    *,
    now: Callable[[], datetime],
) -> int:
    """Mark APIs that the document calls deprecated; how many were not known to be."""
    fresh = [each for each in found if _tells_more(each)]
    for notice in fresh:
        marked = replace(
            notice.api,
            deprecated_in=notice.api.deprecated_in or notice.since,
            removed_in=notice.api.removed_in or notice.until,
            deprecation=notice.sentence,
        )
        await rows.update_entities(connection, [writing.row(marked)])
        await _replacement(connection, doc, marked, notice, now)
        await knowledge.note_change(
            connection, marked.id, marked.name, "deprecated", notice.sentence
        )
    return len(fresh)


def _tells_more(notice: PageNotice) -> bool:
    """Whether it says what was not known: a version, or for the first time anything."""
    api = notice.api
    return bool(
        (notice.since and not api.deprecated_in)
        or (notice.until and not api.removed_in)
        or not (api.deprecation or api.deprecated_in or api.removed_in)
    )


async def _replacement(
    connection: Connection,
    doc: ExternalDoc,
    api: APIReference,
    notice: PageNotice,
    now: Callable[[], datetime],
) -> None:
    name = (notice.replacement or "").removesuffix("()")
    if not name:
        return
    names = [name, f"{api.namespace}.{name}", f"{api.name.partition('.')[0]}.{name}"]
    known = await rows.by_name(connection, "APIReference", names, [""])
    others = [APIReference.of(row.properties) for row in known]
    for other in [one for one in others if one.package == api.package][:1]:
        await writing.write(
            connection,
            Statement(
                source=SOURCE,
                key=str(api.id),
                relations=[
                    Relation(
                        kind="REPLACED_BY",
                        start=api,
                        end=other,
                        properties={"in_version": notice.since, "evidence": notice.sentence},
                        rests_on=doc,
                    )
                ],
            ),
            external=None,
            now=now,
        )
