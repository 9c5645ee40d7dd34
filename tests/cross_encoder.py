"""A cross-encoder of our own: it counts the word pairs that query and passage have in common.

A real ONNX graph with a real tokenizer, as an exported one is; its score depends on both texts.
"""

from pathlib import Path

import onnx
from onnx import TensorProto, helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]",
    "gate", "opens", "dawn", "guards", "sleep", "stone", "tower", "rain", "night", "key", "bread",
]  # fmt: skip


def write_cross_encoder(
    folder: Path, *, segments: bool = True, outputs: int = 1, slow: int = 0
) -> Path:
    """A folder with model.onnx and tokenizer.json; `slow` adds so many products of a matrix."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(_graph(segments=segments, outputs=outputs, slow=slow), str(folder / "model.onnx"))
    tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def _graph(*, segments: bool, outputs: int, slow: int) -> onnx.ModelProto:
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if segments else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "n"]) for name in names]
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    special = helper.make_tensor("special", TensorProto.INT64, [1], [3])
    column = helper.make_tensor("column", TensorProto.INT64, [2], [-1, 1])
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [1, 1])
    nodes = [
        helper.make_node("Greater", ["input_ids", "special"], ["word"]),
        helper.make_node("Cast", ["word"], ["words"], to=TensorProto.INT64),
        helper.make_node("Mul", ["words", "token_type_ids" if segments else "words"], ["second"]),
        helper.make_node("Sub", ["words", "second"], ["first"]),
        helper.make_node("Reshape", ["first" if segments else "words", "column"], ["rows"]),
        helper.make_node("Reshape", ["input_ids", "column"], ["ids"]),
        helper.make_node("Equal", ["ids", "input_ids"], ["same"]),
        helper.make_node("Cast", ["same"], ["matches"], to=TensorProto.INT64),
        helper.make_node("Mul", ["matches", "rows"], ["of_query"]),
        helper.make_node("Mul", ["of_query", "second"], ["of_both"]),
        helper.make_node("Cast", ["of_both"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["floats"], ["total"], keepdims=0),
    ]
    score = "total"
    if slow:
        size = helper.make_tensor("size", TensorProto.INT64, [2], [600, 600])
        nodes.append(
            helper.make_node(
                "ConstantOfShape",
                ["size"],
                ["product0"],
                value=helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0]),
            )
        )
        nodes.append(helper.make_node("Add", ["product0", "total"], ["matrix0"]))
        for n in range(slow):
            nodes.append(helper.make_node("MatMul", [f"matrix{n}", "matrix0"], [f"made{n}"]))
            nodes.append(helper.make_node("Sigmoid", [f"made{n}"], [f"matrix{n + 1}"]))
        nodes.append(helper.make_node("ReduceSum", [f"matrix{slow}"], ["sum"], keepdims=0))
        score = "sum"
    nodes.append(helper.make_node("Reshape", [score, "shape"], ["logit"]))
    last = "logit"
    if outputs == 2:
        nodes.append(helper.make_node("Neg", ["logit"], ["against"]))
        nodes.append(helper.make_node("Concat", ["against", "logit"], ["logits"], axis=1))
        last = "logits"
    constants = [one, special, column, shape] + ([size] if slow else [])
    graph = helper.make_graph(
        nodes,
        "overlap",
        inputs,
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, outputs])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
