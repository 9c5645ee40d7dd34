"""Neo4j as a store that follows the graph: constraints, writes in batches, reads by id."""

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from vademecum.errors import BadSetting, MissingExtra, ProjectionUnavailable
from vademecum.projections.cypher import CYPHER
from vademecum.projections.shape import LABELS, TYPES, node, relationship
from vademecum.store.graph import EntityRow, RelationRow

if TYPE_CHECKING:
    from neo4j import AsyncDriver

TARGET = "neo4j"
WAIT_SECONDS = 5.0
"""For a connection, and for a transaction to be tried again."""


_SCHEMA = {
    "vade_entity": "CREATE CONSTRAINT vade_entity IF NOT EXISTS"
    " FOR (n:Entity) REQUIRE n.id IS UNIQUE",
    **{
        f"vade_{each.lower()}": f"CREATE CONSTRAINT vade_{each.lower()} IF NOT EXISTS"
        f" FOR ()-[r:{each}]-() REQUIRE r.id IS UNIQUE"
        for each in TYPES
    },
    **{
        name: f"CREATE INDEX {name} IF NOT EXISTS FOR {what}"
        for name, what in (
            ("vade_path", "(n:Entity) ON (n.path)"),
            ("vade_api_name", "(n:APIReference) ON (n.name)"),
            ("vade_api_package", "(n:APIReference) ON (n.package)"),
            (
                "external_doc_category",
                "(n:ExternalDoc) ON (n.category, n.language, n.relevance_score)",
            ),
        )
    },
}
"""Constraints and indexes by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A node or relationship as Neo4j holds it; the labels or type beside its properties."""

    id: UUID
    kind: str
    properties: Mapping[str, Any]


class Neo4j:
    """One database of a server. Raises ProjectionUnavailable wherever it does not do its part."""

    def __init__(
        self, url: str, *, user: str, password: str | None, database: str | None = None
    ) -> None:
        self.url = url
        self._auth = (user, password) if password else None
        self._name = database
        self._driver: AsyncDriver | None = None

    async def close(self) -> None:
        if self._driver is not None:
            await self._driver.close()
            self._driver = None

    async def prepare(self) -> None:
        """Constraints and indexes, before anything is written: MERGE looks up by them."""
        shown = await self._run("SHOW INDEXES YIELD name RETURN name")
        present = {each["name"] for each in shown}  # that of each constraint has its name
        for name, statement in _SCHEMA.items():
            if name not in present:
                await self._run(statement)
        await self._run("CALL db.awaitIndexes(60)")

    async def write_nodes(self, rows: Sequence[EntityRow]) -> None:
        by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            by_kind[row.kind].append(node(row))
        for kind, properties in by_kind.items():
            label = _known(kind, LABELS)
            await self._run(
                f"UNWIND $rows AS row MERGE (n:Entity {{id: row.id}}) SET n = row, n:{label}",
                rows=properties,
            )

    async def write_relationships(self, rows: Sequence[RelationRow]) -> set[UUID]:
        """Ids of those written; the others have an end that is not there yet."""
        by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            ends = {"start": str(row.start_id), "end": str(row.end_id)}
            by_kind[row.kind].append(ends | {"properties": relationship(row)})
        written: set[UUID] = set()
        for kind, values in by_kind.items():
            found = await self._run(
                "UNWIND $rows AS row"
                " MATCH (a:Entity {id: row.start}) MATCH (b:Entity {id: row.end})"
                f" MERGE (a)-[r:{_known(kind, TYPES)} {{id: row.properties.id}}]->(b)"
                " SET r = row.properties RETURN r.id AS id",
                rows=values,
            )
            written |= {UUID(each["id"]) for each in found}
        return written

    async def delete_nodes(self, ids: Sequence[UUID]) -> None:
        await self._run(
            "UNWIND $ids AS id MATCH (n:Entity {id: id}) DETACH DELETE n",
            ids=[str(each) for each in ids],
        )

    async def delete_relationships(self, ids: Sequence[UUID]) -> None:
        if not ids:
            return
        for each in TYPES:  # an id is looked up by type
            await self._run(
                f"UNWIND $ids AS id MATCH ()-[r:{each} {{id: id}}]->() DELETE r",
                ids=[str(number) for number in ids],
            )

    async def nodes_after(self, last: UUID, limit: int) -> list[Stored]:
        """The next nodes by id."""
        found = await self._run(
            "MATCH (n:Entity) WHERE n.id > $last WITH n ORDER BY n.id LIMIT $limit"
            " RETURN n.id AS id, [l IN labels(n) WHERE l <> 'Entity'] AS kinds,"
            " properties(n) AS properties ORDER BY id",
            last=str(last),
            limit=limit,
        )
        return [_stored(each, ",".join(sorted(each["kinds"]))) for each in found]

    async def relationships(self, type_: str, last: UUID, limit: int) -> list[Stored]:
        """The next relationships of a type by id."""
        found = await self._run(
            f"MATCH ()-[r:{_known(type_, TYPES)}]->() WHERE r.id > $last"
            " WITH r ORDER BY r.id LIMIT $limit RETURN r.id AS id, properties(r) AS properties"
            " ORDER BY id",
            last=str(last),
            limit=limit,
        )
        return [_stored(each, type_) for each in found]

    async def ask(self, name: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of a named query, in its order."""
        return await self._run(CYPHER[name], **parameters)

    async def about(self) -> str:
        """Name, version and edition of the server."""
        [found] = await self._run(
            "CALL dbms.components() YIELD name, versions, edition"
            " RETURN name + ' ' + versions[0] + ' ' + edition AS about LIMIT 1"
        )
        return str(found["about"])

    async def _run(self, query: str, /, **parameters: Any) -> list[dict[str, Any]]:
        async with self._errors():
            result = await self._open().execute_query(
                query,  # composed of our own labels only
                parameters_=parameters,
                database_=self._name,
            )
            return [record.data() for record in result.records]

    def _open(self) -> "AsyncDriver":
        if self._driver is None:
            try:
                from neo4j import AsyncGraphDatabase, NotificationMinimumSeverity
            except ImportError:
                raise MissingExtra("neo4j") from None
            # Each try is told by the error that it ends in, not by the driver on the side.
            logging.getLogger("neo4j").addHandler(logging.NullHandler())
            self._driver = AsyncGraphDatabase.driver(
                self.url,
                auth=self._auth,
                connection_timeout=WAIT_SECONDS,
                connection_acquisition_timeout=WAIT_SECONDS,
                max_transaction_retry_time=WAIT_SECONDS,
                notifications_min_severity=NotificationMinimumSeverity.OFF,
                user_agent="vademecum",
            )
        return self._driver

    @asynccontextmanager
    async def _errors(self) -> AsyncIterator[None]:
        try:
            self._open()
        except MissingExtra:
            raise
        except _bad_address() as error:
            raise BadSetting(
                f"VADE_NEO4J_URL: {error}", hint="It looks like bolt://127.0.0.1:7687."
            ) from None
        from neo4j.exceptions import AuthError, DriverError, Neo4jError

        try:
            yield
        except AuthError as error:
            raise ProjectionUnavailable(
                f"Neo4j at {self.url} does not let us in: {error.message}",
                hint="Check VADE_NEO4J_USER and VADE_NEO4J_PASSWORD.",
            ) from None
        except (DriverError, Neo4jError, OSError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise ProjectionUnavailable(f"Neo4j at {self.url}: {text}") from None


def _bad_address() -> tuple[type[Exception], ...]:
    """What the driver raises for an address that it cannot use."""
    from neo4j.exceptions import ConfigurationError

    return ValueError, ConfigurationError


def _known(name: str, names: Sequence[str]) -> str:
    """The name, which becomes part of a query: only one of ours."""
    if name not in names:
        raise ValueError(f"{name} is not of the graph")
    return name


def _stored(found: Mapping[str, Any], kind: str) -> Stored:
    properties = {
        key: value.to_native() if hasattr(value, "to_native") else value
        for key, value in found["properties"].items()
    }
    return Stored(id=UUID(found["id"]), kind=kind, properties=properties)
