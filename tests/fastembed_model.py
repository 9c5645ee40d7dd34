"""all-MiniLM-L6-v2 as a model hub has it: ONNX over padded batches, with tokenizer and pooling.

Made of the weights that are on this machine, since no hub can be reached. The graph is that of the
local embedder in full precision, with an attention mask, and ends with a vector for each token.
"""

import shutil
from pathlib import Path
from typing import Any

from vademecum.inference.graph import DIMENSIONS, LAYERS, _Builder
from vademecum.inference.weights import find_weights, read_weights

FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
)


class _Masked(_Builder):
    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        if operator == "MultiHeadAttention":
            inputs = [*inputs, "", "mask"]  # no bias; the padding that keys must not have
        return super().node(operator, inputs, output, **attributes)

    def build(self) -> bytes:
        import onnx
        from onnx import TensorProto, helper

        self.node("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
        hidden = self.embeddings("input_ids")
        for layer in range(LAYERS):
            hidden = self.layer(hidden, layer)
        self.node("Identity", [hidden], "last_hidden_state")
        shape: list[str | int] = ["texts", "tokens"]
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape)
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, [*shape, DIMENSIONS]
        )
        graph = helper.make_graph(
            self.nodes, "hub", inputs, [output], list(self.constants.values())
        )
        model: onnx.ModelProto = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)],
            ir_version=9,
        )
        return bytes(model.SerializeToString())


def make_model(folder: Path) -> Path:
    """The folder, with the model in it."""
    source = find_weights()
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(source.weights.parent / name, folder / name)
    (folder / "model.onnx").write_bytes(_Masked(read_weights(source), int8=False).build())
    return folder
