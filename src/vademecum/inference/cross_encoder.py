"""Reranking by a cross-encoder on this machine: a folder with model.onnx and tokenizer.json.

Any sequence classifier of one score (or of two, where the second is for relevant) that takes
input_ids, and attention_mask and token_type_ids if it wants them. Nothing is downloaded.
"""

import asyncio
import importlib.util
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vademecum.errors import ModelUnavailable
from vademecum.inference.local import physical_cores

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

DEFAULT = "cross-encoder/ms-marco-MiniLM-L6-v2"
"""Looked for in the hub's cache where no other is named."""
MAX_TOKENS = 512
"""Of query and passage together, where the model's config.json does not say."""
QUERY_TOKENS = 128
"""Of a query; its beginning."""
OVERLAP = 32
"""Tokens that the windows of a longer passage share; its best window counts."""


class _Parts(NamedTuple):
    session: "onnxruntime.InferenceSession"
    single: "tokenizers.Tokenizer"
    """Of queries alone, which are cut by us."""
    pairs: "tokenizers.Tokenizer"
    """Of query and passage, in windows of what the model reads."""


class CrossEncoder:
    """The Reranker of a folder. Nothing is read before it is asked for."""

    def __init__(self, folder: Path, *, name: str, threads: int = 0) -> None:
        self._folder, self._name = folder, name
        self._threads = threads or physical_cores()
        self._lock = threading.Lock()
        self._loaded: _Parts | None = None

    @property
    def name(self) -> str:
        return self._name

    async def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """Raises ModelUnavailable where the files cannot be used."""
        stop = threading.Event()
        try:
            return await asyncio.to_thread(self._scores, query, passages, stop)
        finally:
            stop.set()

    def _scores(self, query: str, passages: Sequence[str], stop: threading.Event) -> list[float]:
        session, single, pairs = self._load()
        wanted = {one.name for one in session.get_inputs()}
        offsets = single.encode(query, add_special_tokens=False).offsets
        if len(offsets) > QUERY_TOKENS:
            query = query[: offsets[QUERY_TOKENS][0]]
        found = []
        for passage in passages:
            first = pairs.encode(query, passage)
            best = -np.inf
            for window in (first, *first.overflowing):
                if stop.is_set():
                    return []
                inputs = {
                    "input_ids": window.ids,
                    "attention_mask": window.attention_mask,
                    "token_type_ids": window.type_ids,
                }
                arrays = {k: np.array([v], np.int64) for k, v in inputs.items() if k in wanted}
                try:
                    logits = session.run(None, arrays)[0]
                # The runtime's errors share no class, and its messages tell what is wrong.
                except Exception as error:  # noqa: BLE001
                    raise self._unusable(str(error)) from None
                best = max(best, float(np.asarray(logits).reshape(-1)[-1]))
            found.append(best)
        return found

    def _load(self) -> "_Parts":
        with self._lock:
            if self._loaded is None:
                self._loaded = self._open()
            return self._loaded

    def _open(self) -> "_Parts":
        import onnxruntime
        from tokenizers import Tokenizer

        model = model_file(self._folder)
        if model is None:
            raise self._unusable("it has no model.onnx with a tokenizer.json")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 4
        try:
            single, pairs = (
                Tokenizer.from_file(str(self._folder / "tokenizer.json")) for _ in range(2)
            )
            single.no_truncation()
            pairs.no_padding()
            pairs.enable_truncation(
                _max_tokens(self._folder), stride=OVERLAP, strategy="only_second"
            )
            session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # noqa: BLE001 - whatever is wrong with foreign files
            raise self._unusable(str(error)) from None
        if "input_ids" not in {one.name for one in session.get_inputs()}:
            raise self._unusable("the model takes no input_ids")
        return _Parts(session, single, pairs)

    def _unusable(self, reason: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"the reranker {self._folder} cannot be used: {' '.join(reason.split())[:200]}",
            hint="It has to be a cross-encoder exported to ONNX; see docs/models.md.",
        )


def model_file(folder: Path) -> Path | None:
    """The model of a folder that holds a tokenizer too: beside it, or as the hub lays it out."""
    if not (folder / "tokenizer.json").is_file():
        return None
    places = (folder / "model.onnx", folder / "onnx" / "model.onnx")
    return next((place for place in places if place.is_file()), None)


def in_package(name: str) -> Path | None:
    """The folder of an installed Python package that holds a model; it is never imported."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    for place in (spec and spec.submodule_search_locations) or []:
        for file in sorted(Path(place).rglob("tokenizer.json")):
            if model_file(file.parent):
                return file.parent
    return None


def in_hub(name: str) -> Path | None:
    """The folder of `organisation/model` in the cache of the hub, where it has been fetched."""
    home = os.environ.get("HF_HOME")
    hub = Path(home) if home else Path.home() / ".cache" / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or hub / "hub")
    snapshots = sorted((cache / f"models--{name.replace('/', '--')}" / "snapshots").glob("*"))
    return next((folder for folder in reversed(snapshots) if model_file(folder)), None)


def _max_tokens(folder: Path) -> int:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return min(MAX_TOKENS, int(config["max_position_embeddings"]))
    except (OSError, ValueError, KeyError, TypeError):
        return MAX_TOKENS
