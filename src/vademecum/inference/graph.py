"""The ONNX graph of all-MiniLM-L6-v2: built once from its weights, kept as a file.

Token ids (texts, tokens) go in, unit vectors (texts, 384) come out; every text of one call has
the same length, so there is no padding and no mask.

What int8 means here, chosen by measuring: each matrix is int8 with a scale for each output,
word embeddings are int8 with a scale for each word, activations are quantised as they come,
attention and norms are float. `benchmarks/embedder.py` compares it with full precision.
"""

import hashlib
import mmap
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vademecum.errors import ModelUnavailable
from vademecum.inference.weights import (
    MODEL,
    VOCABULARY_SHA256,
    WEIGHTS_SHA256,
    WeightFiles,
    read_weights,
)

if TYPE_CHECKING:
    import onnxruntime

DIMENSIONS = 384
POSITIONS = 256
"""Tokens the model reads, special ones included; it was trained with no more."""
LAYERS = 6
HEADS = 12
EPSILON = 1e-12
SCHEME = "int8-2"
"""Raise the number with any change that changes vectors: they are then another space."""
DIGEST = hashlib.sha256(f"{WEIGHTS_SHA256} {VOCABULARY_SHA256} {SCHEME}".encode()).hexdigest()[:12]

# Channels whose activations are several times larger than all others, whatever the text: they
# alone would decide the scale and leave the rest few of the 256 steps. They are divided before
# quantising, and their weights multiplied. Single words gain most: the lowest cosine to full
# precision rises from 0.975 to 0.99, for a few per cent of the speed.
_HIDDEN_OUTLIERS = {99: 4, 63: 2, 223: 2}
_INNER_OUTLIERS = {0: {856: 4}, 1: {607: 4}, 2: {1004: 4, 218: 4}, 3: {358: 4}}

Weights = Mapping[str, NDArray[np.float32]]


def open_session(files: WeightFiles, home: Path) -> "onnxruntime.InferenceSession":
    """A session of the graph kept under `home`, which is built where missing or damaged.

    Raises ModelUnavailable where the weights are not the official ones, or the graph cannot be
    kept.
    """
    path = home / "models" / f"{MODEL}-int8-{DIGEST}.onnx"
    if not _is_sealed(path):
        graph = build_graph(read_weights(files))
        try:
            _write_sealed(path, graph)
        except OSError as error:
            raise ModelUnavailable(
                f"the model cannot be kept as {path}: {error.strerror}",
                hint="Set VADE_HOME to a folder that can be written, with 25 MB free.",
            ) from error
    return start_session(path)


def start_session(graph: bytes | Path, *, threads: int = 1) -> "onnxruntime.InferenceSession":
    """A session of a graph that works on one text with `threads` threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # The graph is built as it shall run. Further "optimisation" would fuse additions with norms
    # into an operator that is six times slower than both on a CPU.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def build_graph(weights: Weights, *, int8: bool = True) -> bytes:
    """The graph, serialised; with `int8=False` in full precision, for comparison."""
    return _Builder(weights, int8=int8).build()


# ModelProto.doc_string of 64 bytes. It stands last, so the file is a valid ONNX model that
# ends with the checksum of all before it, and needs no second file to be trusted.
_SEAL = b"\x32\x40"
_SEAL_LENGTH = len(_SEAL) + 64
_ABANDONED = 3600
"""Seconds after which a temporary file is of a process that was killed."""


def _seal(graph: bytes | memoryview) -> bytes:
    return _SEAL + hashlib.sha256(graph).hexdigest().encode()


def _is_sealed(path: Path) -> bool:
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            memoryview(content) as graph,
            graph[:-_SEAL_LENGTH] as sealed,
        ):
            return bytes(graph[-_SEAL_LENGTH:]) == _seal(sealed)
    except (OSError, ValueError):  # ValueError: the file is empty
        return False


def _write_sealed(path: Path, graph: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for leftover in path.parent.glob(f"{path.name}*.tmp"):
        with suppress(OSError):
            if leftover.stat().st_mtime < time.time() - _ABANDONED:
                leftover.unlink()
    # Renamed when complete: a reader, or another process that builds, sees all of it or nothing.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(graph + _seal(graph))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


class _Builder:
    """Nodes and constants of one graph while it is written."""

    def __init__(self, weights: Weights, *, int8: bool) -> None:
        self.weights, self.int8 = weights, int8
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def build(self) -> bytes:
        import onnx
        from onnx import TensorProto, helper

        hidden = self.embeddings("ids")
        for layer in range(LAYERS):
            hidden = self.layer(hidden, layer)
        self.node("ReduceMean", [hidden, self.constant("axis", np.array([1]))], "mean", keepdims=0)
        self.node("LpNormalization", ["mean"], "vectors", axis=-1, p=2)
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "tokens"])
        vectors = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", DIMENSIONS])
        graph = helper.make_graph(
            self.nodes, MODEL, [ids], [vectors], list(self.constants.values())
        )
        model: onnx.ModelProto = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)],
            ir_version=9,
        )
        return bytes(model.SerializeToString())

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, name: str, value: NDArray[Any]) -> str:
        from onnx import numpy_helper

        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def embeddings(self, ids: str) -> str:
        words = self.weights["embeddings.word_embeddings.weight"]
        # All tokens are of one segment: its embedding is part of each position's.
        positions = (
            self.weights["embeddings.position_embeddings.weight"][:POSITIONS]
            + self.weights["embeddings.token_type_embeddings.weight"][0]
        )
        if self.int8:
            quantised, scale = _quantise(words, axis=1)
            self.node("Gather", [self.constant("words", quantised), ids], "word.int8")
            self.node("Cast", ["word.int8"], "word.numbers", to=1)
            self.node("Gather", [self.constant("words.scale", scale), ids], "word.scale")
            self.node("Mul", ["word.numbers", "word.scale"], "word")
        else:
            self.node("Gather", [self.constant("words", words), ids], "word")
        zero = self.constant("zero", np.array([0]))
        self.node("Shape", [ids], "length", start=1)
        self.node(
            "Slice", [self.constant("positions", positions), zero, "length", zero], "position"
        )
        self.node("Add", ["word", "position"], "embedded")
        return self.norm("embedded", "embeddings.LayerNorm")

    def layer(self, hidden: str, number: int) -> str:
        name = f"encoder.layer.{number}."
        level = self.levelled(hidden, _HIDDEN_OUTLIERS)
        heads = [
            self.linear(level, f"{name}attention.self.{part}", _HIDDEN_OUTLIERS)
            for part in ("query", "key", "value")
        ]
        attended = self.node(
            "MultiHeadAttention", heads, f"{name}attended", domain="com.microsoft", num_heads=HEADS
        )
        projected = self.linear(attended, f"{name}attention.output.dense")
        summed = self.node("Add", [projected, hidden], f"{name}attention.sum")
        hidden = self.norm(summed, f"{name}attention.output.LayerNorm")
        level = self.levelled(hidden, _HIDDEN_OUTLIERS)
        widened = self.linear(level, f"{name}intermediate.dense", _HIDDEN_OUTLIERS)
        bent = self.node("Gelu", [widened], f"{name}gelu", domain="com.microsoft")
        outliers = _INNER_OUTLIERS.get(number, {})
        level = self.levelled(bent, outliers, width=4 * DIMENSIONS)
        narrowed = self.linear(level, f"{name}output.dense", outliers)
        summed = self.node("Add", [narrowed, hidden], f"{name}sum")
        return self.norm(summed, f"{name}output.LayerNorm")

    def levelled(self, values: str, outliers: Mapping[int, int], *, width: int = DIMENSIONS) -> str:
        """`values` with their outlying channels divided, as `linear` then expects them."""
        if not self.int8 or not outliers:
            return values
        factors = np.ones(width, np.float32)
        factors[list(outliers)] = 1 / np.array(list(outliers.values()), np.float32)
        name = "level." + ".".join(map(str, outliers))
        return self.node("Mul", [values, self.constant(name, factors)], f"{values}.level")

    def linear(self, values: str, name: str, outliers: Mapping[int, int] | None = None) -> str:
        matrix = self.weights[f"{name}.weight"].T
        bias = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        if not self.int8:
            self.node(
                "MatMul", [values, self.constant(f"{name}.matrix", matrix)], f"{name}.product"
            )
            return self.node("Add", [f"{name}.product", bias], f"{name}.out")
        if outliers:
            matrix = matrix.copy()
            matrix[list(outliers)] *= np.array(list(outliers.values()), np.float32)[:, None]
        quantised, scale = _quantise(matrix, axis=0)
        inputs = [
            values,
            self.constant(f"{name}.matrix", quantised),
            self.constant(f"{name}.scale", scale[0]),
            self.constant(f"{name}.zero", np.zeros(matrix.shape[1], np.int8)),
            bias,
        ]
        return self.node("DynamicQuantizeMatMul", inputs, f"{name}.out", domain="com.microsoft")

    def norm(self, hidden: str, name: str) -> str:
        inputs = [
            hidden,
            self.constant(f"{name}.weight", self.weights[f"{name}.weight"]),
            self.constant(f"{name}.bias", self.weights[f"{name}.bias"]),
        ]
        return self.node("LayerNormalization", inputs, f"{name}.out", epsilon=EPSILON, axis=-1)


def _quantise(
    matrix: NDArray[np.float32], *, axis: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """`matrix` as int8 and the scales that undo it, one for each vector along `axis`."""
    scale = np.maximum(np.abs(matrix).max(axis=axis, keepdims=True) / 127, np.float32(1e-12))
    return np.round(matrix / scale).astype(np.int8), scale.astype(np.float32)
