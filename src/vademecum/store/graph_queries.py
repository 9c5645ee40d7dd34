"""The named queries of the graph, on PostgreSQL."""

from collections.abc import Mapping
from typing import Any

from psycopg.rows import dict_row

from vademecum.store.db import Connection
from vademecum.store.sql import SQL

QUERIES = {
    "usable_apis": SQL["usable_apis"],
    "language_apis": SQL["language_apis"],
    "framework_practices": SQL["framework_practices"],
    "deprecated_apis": SQL["deprecated_apis"],
    "replacements": SQL["replacements"],
    "effective_documents": SQL["effective_documents"],
    "effective_sources": SQL["effective_sources"],
    "top_documents": SQL["top_documents"],
    "neighbourhood": SQL["neighbourhood"],
    "api_uses": SQL["api_uses"],
}


async def ask(
    connection: Connection, name: str, parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The rows of a named query, in its order."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES[name], dict(parameters))
        return await cursor.fetchall()
