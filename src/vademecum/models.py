"""The models that are an option: opened by their setting, within limits, accounted for."""

import asyncio
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from vademecum.access import CURRENT, EVERYTHING, acting, may_spend, require
from vademecum.errors import BadInput, BadSetting
from vademecum.inference.cross_encoder import (
    DEFAULT,
    CrossEncoder,
    in_hub,
    in_package,
    model_file,
)
from vademecum.inference.language.limits import Limited, Purse, Use
from vademecum.inference.language.model import LanguageModel
from vademecum.inference.language.open import open_language_model
from vademecum.inference.language.prices import FREE, price_of
from vademecum.inference.language.reranker import LanguageReranker
from vademecum.inference.reranker import Reranker
from vademecum.settings import Settings
from vademecum.store import usage
from vademecum.store.db import Database
from vademecum.store.usage import Spend

PURPOSES = ("answer", "summary", "memory")
"""What the setting VADE_MODEL_FOR may name."""


class Models:
    """Opens each model once; all of them share the purse and the number of calls at once."""

    def __init__(
        self, database: Database, settings: Settings, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._database, self._settings, self._environment = database, settings, environment
        self._purse = Purse(settings.spend_limit)
        self._gate = asyncio.Semaphore(max(1, settings.model_concurrency))
        self._opened: dict[str, LanguageModel] = {}
        self._reranker: Reranker | None = None

    def named(self, name: str) -> LanguageModel:
        """The model `provider:model`. Cheap: nothing is asked yet. Raises BadSetting, and
        NotAllowed where the caller may not have models asked."""
        require("spend")
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def meant_for(self, purpose: str) -> LanguageModel | None:
        """The model of the settings, if it is to serve this purpose, and the caller may have it
        asked. Raises BadSetting."""
        wanted = {word.strip() for word in self._settings.model_for.split(",") if word.strip()}
        if unknown := wanted - set(PURPOSES):
            raise BadSetting(
                f"VADE_MODEL_FOR: there is no purpose {', '.join(sorted(unknown))}",
                hint=f"Purposes are {', '.join(PURPOSES)}.",
            )
        if self._settings.model is None or purpose not in wanted or not may_spend():
            return None
        return self.named(self._settings.model)

    def withheld(self, purpose: str) -> str | None:
        """Why the model of the settings is not asked; None where it is, or there is none."""
        with acting(EVERYTHING):
            wanted = self.meant_for(purpose)
        if wanted is None or may_spend():
            return None
        return f"no language model was asked: {CURRENT.get().name} lacks the scope spend"

    def check(self) -> None:
        """Raises BadSetting where the settings name a model that cannot be opened."""
        for purpose in PURPOSES:
            self.meant_for(purpose)
        self.reranker()

    def reranker(self) -> Reranker | None:
        """That of the settings, or else a cross-encoder in the hub's cache; None where neither is,
        or where it is a language model that the caller may not have asked.

        Raises BadSetting.
        """
        setting = self._settings.reranker
        if setting == "none":
            return None
        if self._reranker is None:
            with acting(EVERYTHING):
                self._reranker = self._find_reranker(setting)
        if isinstance(self._reranker, LanguageReranker) and not may_spend():
            return None
        return self._reranker

    def _find_reranker(self, setting: str | None) -> Reranker | None:
        kind, _, name = (setting or f"hub:{DEFAULT}").partition(":")
        if name and kind in ("anthropic", "openai", "ollama"):
            return LanguageReranker(self.named(f"{kind}:{name}"))
        if not name or kind not in ("local", "package", "hub"):
            raise BadSetting(
                f"VADE_RERANKER: there is no reranker {setting!r}",
                hint="It is local:/folder, package:NAME, hub:ORG/MODEL, provider:model or none.",
            )
        if kind == "local":
            folder: Path | None = Path(name).expanduser()
        else:
            folder = in_package(name) if kind == "package" else in_hub(name)
        if folder is None or model_file(folder) is None:
            if setting is None:
                return None
            raise BadSetting(
                f"VADE_RERANKER: {setting} has no model.onnx with a tokenizer.json",
                hint="Nothing is downloaded: it has to be on this machine.",
            )
        return CrossEncoder(folder, name=f"{kind}:{name}", threads=self._settings.threads)

    async def spend(self, last: timedelta) -> list[Spend]:
        """What was spent in the period that ends now, the dearest first. Raises BadInput."""
        if last <= timedelta(0):
            raise BadInput("the period must be longer than nothing")
        async with self._database.connection() as connection:
            return await usage.spend(connection, last)

    def _open(self, name: str) -> Limited:
        adapter = open_language_model(
            name,
            environment=self._environment,
            url=self._settings.model_url,
            key=self._settings.model_key,
            openai_url=self._settings.openai_url,
            openai_key=self._settings.openai_key,
            ollama_url=self._settings.ollama_url,
            seconds=self._settings.model_seconds,
        )
        price = price_of(name, self._settings.prices)
        if price is None and (adapter.wire.here or name.startswith("ollama:")):
            price = FREE
        if price is None and not math.isinf(self._purse.limit):
            raise BadSetting(
                f"no price of {name} is known, so that the spend limit could not be kept",
                hint=f'Declare it in a file named by VADE_PRICES: ["{name}"] with input = … and '
                "output = …, or set VADE_SPEND_LIMIT=inf.",
            )
        return Limited(
            adapter, price=price, purse=self._purse, gate=self._gate, record=self._record
        )

    async def _record(self, use: Use) -> None:
        async def add() -> None:
            async with self._database.connection() as connection:
                await usage.add(connection, asdict(use))

        await self._database.retry(add, tries=3)
