"""Two tiny models for whole builds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save_convnet(path: Path, *, seed: int = 0) -> Path:
    """Write images [batch,3,64,64] -> Conv, Relu, pool, Gemm -> scores [batch,5]."""
    rng = np.random.default_rng(seed)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(rng.normal(0, 0.3, shape).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["images", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "wf"], ["scores"], name="fc"),
    ]
    graph = helper.make_graph(
        nodes,
        "convnet",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, 64, 64])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 5])],
        [weight("w", 8, 3, 3, 3), weight("wf", 8, 5)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def save_unsupported(path: Path) -> Path:
    """Write a model with an operator that nobody knows."""
    graph = helper.make_graph(
        [helper.make_node("FancyWarp", ["x"], ["y"], name="fancy", domain="acme.ops")],
        "unsupported",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme.ops", 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    return path
