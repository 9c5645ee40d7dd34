"""Facets: which documents of a collection a filter lets through."""

from collections.abc import Sequence

from psycopg import sql

from vademecum.store.db import Connection
from vademecum.types import CollectionId, Condition, DocumentId

HOLDING = """
SELECT document_id FROM document_facets
 WHERE collection_id = %s AND facet = %s AND {column} IS NOT NULL AND ({accepted})
"""
ALL = "SELECT id FROM crawled_documents WHERE collection_id = %s"


async def matching(
    connection: Connection, collection: CollectionId, conditions: Sequence[Condition]
) -> list[DocumentId]:
    """The documents of the collection that meet every condition, in no order."""
    query, values = matching_query(collection, conditions)
    # Planned with the values at hand: what suits one filter does not suit another.
    cursor = await connection.execute(query, values, prepare=False)
    return [document for (document,) in await cursor.fetchall()]


def matching_query(
    collection: CollectionId, conditions: Sequence[Condition]
) -> tuple[sql.Composed, list[object]]:
    """Set algebra: a part for each condition, each a look into an index; and the values."""
    wanted = [_holding(collection, c) for c in conditions if not c.negated]
    unwanted = [_holding(collection, c) for c in conditions if c.negated]
    wanted = wanted or [(sql.Composed([sql.SQL(ALL)]), [collection])]
    query = sql.SQL(" EXCEPT ").join(
        [
            sql.SQL("({})").format(sql.SQL(" INTERSECT ").join(part for part, _ in wanted)),
            *(part for part, _ in unwanted),
        ]
    )
    return query, [value for _, values in wanted + unwanted for value in values]


def _holding(collection: CollectionId, condition: Condition) -> tuple[sql.Composed, list[object]]:
    column = sql.Identifier("number" if condition.numeric else "keyword")
    type_ = sql.SQL("bigint" if condition.numeric else "text")
    values: list[object] = [collection, condition.facet]
    accepted: list[sql.Composable] = []
    if condition.values:
        accepted.append(sql.SQL("{} = ANY (%s::{}[])").format(column, type_))
        values.append(list(condition.values))
    for low, high in condition.ranges:
        bounds = []
        for sign, bound in ((">=", low), ("<=", high)):
            if bound is not None:
                bounds.append(sql.SQL("{} {} %s::{}").format(column, sql.SQL(sign), type_))
                values.append(bound)
        accepted.append(sql.SQL("({})").format(sql.SQL(" AND ").join(bounds)))
    part = sql.SQL(HOLDING).format(
        column=column, accepted=sql.SQL(" OR ").join(accepted) if accepted else sql.SQL("true")
    )
    return part, values
