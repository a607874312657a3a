"""Which opset is chosen, and the way from 18 down to 17."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.builders import constant, in_memory, model, op, random_array, save, value
from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.core.errors import DeployProfileError, InputError
from trtdeploy.export.opset_choice import choose_opset
from trtdeploy.graph.passes.lower_opset import LowerOpsetPass


@pytest.mark.parametrize(
    ("asked", "profile", "opset", "reason"),
    [
        (None, "", 20, "TensorRT 10"),
        (None, "rtx4090-fp16", 20, "rtx4090-fp16"),
        (None, "h100-fp16", 20, "h100-fp16"),
        (None, "orin-fp16", 17, "TensorRT 8.6"),
        (18, "orin-fp16", 18, "asked for"),
    ],
)
def test_the_target_decides(asked: int | None, profile: str, opset: int, reason: str) -> None:
    chosen, why = choose_opset(asked, profile)
    assert chosen == opset
    assert reason in why


def test_an_unknown_profile_is_an_error_even_where_the_opset_is_given() -> None:
    with pytest.raises(DeployProfileError, match="nonsense"):
        choose_opset(17, "nonsense")


def lower(proto: onnx.ModelProto) -> onnx.ModelProto:
    lowered = in_memory(proto)
    LowerOpsetPass()(lowered)
    assert lowered.opset == 17
    onnx.checker.check_model(lowered.proto)
    return lowered.proto


def run(proto: onnx.ModelProto, folder: Path, x: Any) -> dict[str, Any]:
    with OnnxRuntimeSession(save(proto, folder / "m.onnx"), optimize=False) as session:
        return session.run({"x": x})


def test_lowered_operators_compute_the_same(tmp_path: Path) -> None:
    nodes = [
        op("ReduceMean", "x axes", "mean", keepdims=1),
        op("ReduceMax", "x", "largest", keepdims=0),
        op("Split", "x", "left right", axis=1, num_outputs=2),
        op("Pad", "left pads", "padded"),
        op("Resize", "padded - scales", "resized", mode="nearest", antialias=0),
        op("ReduceL2", "right constant_axes", "norm", keepdims=0),
        onnx.helper.make_node("Constant", [], ["constant_axes"], name="c", value_ints=[2, 3]),
    ]
    nodes.insert(0, nodes.pop())
    constants = [
        constant("axes", [1, 2], np.int64),
        constant("pads", [0, 0, 1, 1, 0, 0, 1, 1], np.int64),
        constant("scales", [1, 1, 2, 2]),
    ]
    shapes = {
        "mean": ("N", 1, 1, 6), "largest": (), "resized": ("N", 2, 14, 16), "norm": ("N", 2)
    }  # fmt: skip
    outputs = [value(name, shape) for name, shape in shapes.items()]
    proto = model(nodes, [value("x", ("N", 4, 5, 6))], outputs, constants, opset=18)
    x = random_array(2, 4, 5, 6, seed=3)
    expected = run(proto, tmp_path, x)
    found = run(lower(proto), tmp_path, x)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def reduction_branch(axis: int, name: str) -> onnx.GraphProto:
    axes = [constant("axes", [axis], np.int64)]
    outputs = [value(name, ("N", "rows", "columns"))]
    return onnx.helper.make_graph([op("ReduceMean", "x axes", name)], name, [], outputs, axes)


def test_branches_have_constants_of_their_own(tmp_path: Path) -> None:
    """Both branches call their axes ``axes``, and mean different ones."""
    branches = {
        f"{name}_branch": reduction_branch(axis, name) for axis, name in ((1, "then"), (2, "else"))
    }
    inputs = [value("x", ("N", 4, 6)), value("c", (), onnx.TensorProto.BOOL)]
    outputs = [value("y", ("N", "rows", "columns"))]
    proto = model([op("If", "c", "y", **branches)], inputs, outputs, opset=18)
    path = save(lower(proto), tmp_path / "m.onnx")
    x = random_array(2, 4, 6)
    with OnnxRuntimeSession(path, optimize=False) as session:
        for condition, axis in ((True, 1), (False, 2)):
            found = session.run({"x": x, "c": np.array(condition)})["y"]
            np.testing.assert_allclose(found, x.mean(axis, keepdims=True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (op("Mish", "x", "y"), "new in opset 18"),
        (op("ReduceMean", "x computed", "y"), "computes its axes"),
        (op("ReduceMean", "x", "y", noop_with_empty_axes=1), "reduces nothing"),
        (op("Pad", "x pads - axes", "y"), "pads some axes only"),
        (op("Resize", "x - scales", "y", antialias=1, mode="linear"), "uses antialias"),
        (op("ScatterND", "x i x", "y", reduction="max"), "reduces by max"),
    ],
)
def test_what_opset_17_lacks_is_refused(node: onnx.NodeProto, reason: str) -> None:
    constants = [constant("pads", [0, 1], np.int64), constant("axes", [0], np.int64)]
    proto = model([node], [value("x")], [value("y")], constants, opset=18)
    with pytest.raises(InputError, match=reason) as caught:
        LowerOpsetPass()(in_memory(proto))
    assert "'y'" in caught.value.message
