"""From a mirror's row to the store that it is in."""

from typing import Any

from vademecum.errors import BadSetting, VectorStoreUnavailable
from vademecum.settings import Settings
from vademecum.store.mirrors import MirrorId, MirrorRow
from vademecum.vectors.index import Mirror

STORES = ("qdrant", "pinecone")
"""Beside PostgreSQL itself."""


class Stores:
    """The clients of the stores that the settings name, opened when they are first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clients: dict[str, Any] = {}
        self._mirrors: dict[MirrorId, Mirror] = {}

    def check(self, store: str) -> None:
        """Raises BadSetting where the store cannot be used, and MissingExtra."""
        self._client(store)

    def mirror(self, row: MirrorRow) -> Mirror:
        """Raises BadSetting, MissingExtra, VectorStoreUnavailable."""
        if row.id not in self._mirrors:
            self._mirrors[row.id] = self._mirror(row)
        return self._mirrors[row.id]

    def _mirror(self, row: MirrorRow) -> Mirror:
        client = self._client(row.store)
        if row.store == "pinecone":
            from vademecum.vectors.pinecone import PineconeIndex

            cloud, _, region = self._settings.pinecone_region.partition(":")
            return PineconeIndex(
                client,
                place=row.place,
                tenant=row.tenant,
                dimensions=row.dimensions,
                cloud=cloud,
                region=region,
            )
        from vademecum.vectors.qdrant import QdrantIndex

        return QdrantIndex(
            client,
            place=row.place,
            tenant=row.tenant,
            dimensions=row.dimensions,
            shown=str(self._settings.qdrant_url),
        )

    def _client(self, store: str) -> Any:
        if store not in self._clients:
            if store == "qdrant":
                self._clients[store] = self._open_qdrant()
            elif store == "pinecone":
                self._clients[store] = self._open_pinecone()
            else:
                raise BadSetting(
                    f"there is no vector store {store!r}",
                    hint=f"Stores: pgvector, {', '.join(STORES)}.",
                )
        return self._clients[store]

    def _open_qdrant(self) -> Any:
        if not self._settings.qdrant_url:
            raise BadSetting(
                "it is not known where Qdrant is", hint="Set VADE_QDRANT_URL, as http://host:6333."
            )
        from vademecum.vectors.qdrant import open_client

        try:
            return open_client(self._settings.qdrant_url, self._settings.qdrant_key)
        except (RuntimeError, OSError) as error:  # a folder that another process has open
            raise VectorStoreUnavailable(
                f"Qdrant at {self._settings.qdrant_url}: {error}"
            ) from None

    def _open_pinecone(self) -> Any:
        if not self._settings.pinecone_key:
            raise BadSetting("Pinecone needs a key", hint="Set PINECONE_API_KEY.")
        if self._settings.pinecone_region.count(":") != 1:
            raise BadSetting(
                f"{self._settings.pinecone_region!r} is no cloud and region",
                hint="Write VADE_PINECONE_REGION=aws:us-east-1.",
            )
        from vademecum.vectors.pinecone import open_client

        return open_client(self._settings.pinecone_url, self._settings.pinecone_key)

    async def close(self) -> None:
        """Of Qdrant the mirrors share the client, of Pinecone each has one beside."""
        for mirror in self._mirrors.values():
            await mirror.close()
        for client in self._clients.values():
            await client.close()
