"""The embedders that collections name: opened by their setting, once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from vademecum.errors import ModelUnavailable, VadeError
from vademecum.inference.embedder import Embedder
from vademecum.inference.open import open_embedder
from vademecum.settings import Settings
from vademecum.store.collections import Collection

if TYPE_CHECKING:
    from vademecum.inference.ray import RayCluster


class Embedders:
    """`app.embedders`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cluster: RayCluster | None = None
        self.opened: dict[str, Embedder | None] = {}
        """By setting. What stands here is taken: a program may bring an embedder of its own."""

    def named(self, setting: str) -> Embedder | None:
        """The embedder `provider:model`, None for `none`. Cheap: no model is loaded yet.

        Raises BadSetting.
        """
        if setting not in self.opened:
            self.opened[setting] = open_embedder(
                setting,
                home=self._settings.home,
                threads=self._settings.threads,
                ollama_url=self._settings.ollama_url,
                openai_url=self._settings.openai_url,
                openai_key=self._settings.openai_key,
                max_cost=self._settings.max_cost,
            )
        return self.opened[setting]

    def for_documents(self, setting: str) -> Embedder | None:
        """Where documents are embedded; queries are on this machine."""
        embedder = self.named(setting)
        if embedder is None or self._cluster is None:
            return embedder
        return self._cluster.embedder(setting, embedder)

    def searching(self, target: Collection) -> Embedder | None:
        """The embedder of the collection's vectors, loaded. Raises ModelUnavailable."""
        if target.space_id is None:
            return None
        embedder = self.named(target.embedder)
        if embedder is not None:
            embedder.tokenizer.counts([""])
            if embedder.space.key != target.space_key:
                raise ModelUnavailable(
                    f"the vectors of {target.name!r} were made by another model",
                    hint=f"Run `vade rebuild -c {target.name}` to make them anew.",
                )
        return embedder

    @asynccontextmanager
    async def on_ray(self, address: str | None = None) -> AsyncIterator[None]:
        """Meanwhile documents are embedded on a Ray cluster, with the same vectors.

        Raises MissingExtra, BadSetting.
        """
        from vademecum.inference.ray import RayCluster

        async with RayCluster.opened(address, home=self._settings.home) as cluster:
            self._cluster = cluster
            try:
                yield
            finally:
                self._cluster = None

    def state(self) -> dict[str, object]:
        """Whether the embedder of new collections can be used, and why not."""
        setting = self._settings.embedder
        try:
            embedder = self.named(setting)
            if embedder is None:
                return {"ok": True, "model": None}
            embedder.tokenizer.counts([""])
        except VadeError as error:
            return {"ok": False, "model": setting, "error": str(error)}
        return {"ok": True, "model": embedder.space.model}

    async def warm(self) -> None:
        """Load the embedder of new collections, where there is one."""
        with suppress(VadeError):
            if embedder := self.named(self._settings.embedder):
                await embedder.embed_query("warm")
