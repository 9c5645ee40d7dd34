"""Models that fastembed runs on this machine: those it knows by name, and folders with one's own.

A name is looked up in fastembed's list, and its files in the home: nothing is downloaded, neither
unasked nor while a server waits. A folder holds what a model hub has of a sentence-transformers
model: `model.onnx` (or `onnx/model.onnx`), `tokenizer.json`, `tokenizer_config.json`, and
`1_Pooling/config.json`, which says how the vectors of tokens become one of the text.
"""

import asyncio
import hashlib
import json
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vademecum.errors import BadInput, BadSetting, MissingExtra, ModelUnavailable
from vademecum.inference.embedder import EmbeddingSpace
from vademecum.inference.prefixes import prefixes
from vademecum.inference.words import encodable
from vademecum.types import Vector

if TYPE_CHECKING:
    import tokenizers
    from fastembed import TextEmbedding

BATCH = 16
"""Texts of like length padded together: larger ones are no faster on a CPU and need more memory."""


class FastembedTokenizer:
    """The model's own, that cuts nothing."""

    def __init__(self, tokenizer: "tokenizers.Tokenizer") -> None:
        self._tokenizer = tokenizer

    def starts(self, text: str) -> list[int]:
        encoded = self._tokenizer.encode(encodable(text), add_special_tokens=False)
        return [start for start, _ in encoded.offsets]

    def counts(self, texts: Sequence[str]) -> list[int]:
        encodings = self._tokenizer.encode_batch_fast(
            [encodable(text) for text in texts], add_special_tokens=False
        )
        return [len(encoding.ids) for encoding in encodings]


class _Loaded(NamedTuple):
    model: "TextEmbedding"
    space: EmbeddingSpace
    tokenizer: FastembedTokenizer
    max_tokens: int


class FastembedEmbedder:
    """The Embedder of one model. Nothing is read or fetched before it is asked for.

    Everything raises MissingExtra, ModelUnavailable, or BadSetting for a model that fastembed does
    not know.
    """

    def __init__(self, model: str, *, home: Path, threads: int = 0) -> None:
        self.model = model
        self._cache, self._threads = home / "models" / "fastembed", threads or None
        self._lock = threading.Lock()

    @property
    def space(self) -> EmbeddingSpace:
        return self._loaded.space

    @property
    def max_tokens(self) -> int:
        return self._loaded.max_tokens

    @property
    def tokenizer(self) -> FastembedTokenizer:
        return self._loaded.tokenizer

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (len(texts), dimensions). Raises BadInput for a text too long."""
        return await asyncio.to_thread(self._embed, texts)

    async def embed_query(self, text: str) -> Vector:
        """Unit vector, shape (dimensions,); a longer query keeps its first tokens."""
        return await asyncio.to_thread(self._embed_query, text)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        loaded = self._loaded
        vectors = np.empty((len(texts), loaded.space.dimensions), np.float32)
        counts = loaded.tokenizer.counts(texts)
        for index, tokens in enumerate(counts):
            if tokens > loaded.max_tokens:
                raise BadInput(
                    f"text {index + 1} of {len(texts)} has {tokens} tokens; "
                    f"one vector of {self.model} covers {loaded.max_tokens}"
                )
        order = sorted(range(len(texts)), key=lambda index: counts[index])
        prefixed = [loaded.space.document_prefix + encodable(texts[index]) for index in order]
        made = loaded.model.passage_embed(prefixed, batch_size=BATCH)
        for index, vector in zip(order, made, strict=True):
            vectors[index] = _unit(vector, self.model)
        return vectors

    def _embed_query(self, text: str) -> Vector:
        loaded = self._loaded
        starts = loaded.tokenizer.starts(text)
        if len(starts) > loaded.max_tokens:
            text = text[: starts[loaded.max_tokens]]
        query = loaded.space.query_prefix + encodable(text)
        return _unit(next(iter(loaded.model.query_embed(query))), self.model)

    @cached_property
    def _loaded(self) -> _Loaded:
        with self._lock:
            return self._load()

    def _load(self) -> _Loaded:
        try:
            from fastembed import TextEmbedding
            from loguru import logger
        except ImportError:
            raise MissingExtra("fastembed") from None
        logger.disable("fastembed")  # what it logs, it also raises
        folder = Path(self.model) if Path(self.model).is_absolute() else None
        place: dict[str, Any] = {}
        name = self.model
        if folder is not None:
            name = _register(folder)
            place = {"specific_model_path": str(folder)}
        elif not any(
            name.lower() == str(one["model"]).lower()
            for one in TextEmbedding.list_supported_models()
        ):
            raise BadSetting(
                f"fastembed knows no model {name!r}",
                hint="Its documentation lists them; a folder with a model of your own is named by"
                " its whole path, fastembed:/path/to/folder.",
            )
        try:
            model = TextEmbedding(
                name,
                cache_dir=str(self._cache),
                threads=self._threads,
                local_files_only=True,
                **place,
            )
        except Exception as error:  # whatever hub and runtime raise
            raise ModelUnavailable(
                f"fastembed cannot load {self.model}: {_first_line(error)}",
                hint=_fetch(self.model, self._cache) if folder is None else None,
            ) from error
        return self._described(model)

    def _described(self, model: "TextEmbedding") -> _Loaded:
        from tokenizers import Tokenizer

        inner: Any = model.model
        description = inner.model_description
        files = [
            Path(inner._model_dir) / description.model_file,
            *(Path(inner._model_dir) / extra for extra in description.additional_files),
        ]
        whole = inner.tokenizer
        limit = int(whole.truncation["max_length"])
        tokenizer = Tokenizer.from_str(whole.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        name = Path(self.model).name if Path(self.model).is_absolute() else self.model
        document, query = prefixes(name)
        counter = FastembedTokenizer(tokenizer)
        around = tokenizer.num_special_tokens_to_add(is_pair=False)
        return _Loaded(
            model=model,
            space=EmbeddingSpace(
                # Of a folder its name: the same files elsewhere make the same vectors.
                model=f"fastembed:{name}",
                dimensions=int(description.dim),
                digest=_digest(files),
                document_prefix=document,
                query_prefix=query,
            ),
            tokenizer=counter,
            max_tokens=min(limit, _trained_with(Path(inner._model_dir)))
            - around
            - max(counter.counts([document, query])),
        )


def _register(folder: Path) -> str:
    """The name under which fastembed knows the model of a folder from now on."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    file = next(
        (one for one in ("model.onnx", "onnx/model.onnx") if (folder / one).is_file()), None
    )
    if file is None:
        raise ModelUnavailable(
            f"{folder} holds no model.onnx",
            hint="`optimum-cli export onnx --model NAME FOLDER` makes one of a model.",
        )
    config, pooling = _json(folder / "config.json"), _json(folder / "1_Pooling" / "config.json")
    if pooling.get("pooling_mode_mean_tokens"):
        way = PoolingType.MEAN
    elif pooling.get("pooling_mode_cls_token"):
        way = PoolingType.CLS
    else:
        raise ModelUnavailable(
            f"{folder / '1_Pooling' / 'config.json'} names neither the mean of the tokens nor the"
            " first one",
            hint="It comes with sentence-transformers models, and says how their vectors are made.",
        )
    name = f"vademecum{folder}"
    if all(
        name.lower() != str(one["model"]).lower() for one in TextEmbedding.list_supported_models()
    ):
        TextEmbedding.add_custom_model(
            model=name,
            pooling=way,
            normalization=True,
            sources=ModelSource(url="file://nowhere"),
            dim=int(config["hidden_size"]),
            model_file=file,
        )
    return name


def _fetch(model: str, cache: Path) -> str:
    call = (
        f"from fastembed import TextEmbedding; TextEmbedding({model!r}, cache_dir={str(cache)!r})"
    )
    return f'Fetch it once, `python -c "{call}"`, or name a folder: fastembed:/path/to/folder.'


def _trained_with(folder: Path) -> int:
    """Tokens that the model is said to read; a large number where that is not said."""
    return int(_json(folder / "sentence_bert_config.json").get("max_seq_length") or 1 << 30)


def _json(path: Path) -> dict[str, Any]:
    """What a file says; nothing where there is none. Raises ModelUnavailable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{path} cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


def _digest(files: Sequence[Path]) -> str:
    whole = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:16]


def _unit(vector: NDArray[Any], model: str) -> Vector:
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or not length:
        raise BadInput(f"{model} made a vector that cannot be used")
    unit: Vector = (vector / length).astype(np.float32)
    return unit


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
