from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.judging import compare, judge


def write_product(path: Path, weight: list[float], dtype: int = TensorProto.FLOAT) -> Path:
    """Write y = x * w over a dynamic x; ``dtype`` is that of w alone."""
    values = np.array(weight, helper.tensor_dtype_to_np_dtype(dtype))
    shape: list[str | int] = ["batch", "length", 2]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(values, "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save_model(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("weight", "right"), [([1.0, 2.0], True), ([1.0, 2.01], True), ([1.0, 3.0], False)]
)
def test_one_percent_of_the_largest_output_is_right(
    tmp_path: Path, weight: list[float], right: bool
) -> None:
    source = write_product(tmp_path / "source.onnx", [1.0, 2.0])
    verdict = judge(source, write_product(tmp_path / "candidate.onnx", weight), {})
    assert (verdict["loads"], verdict["right"]) == (True, right)


def test_model_with_mixed_types_does_not_load(tmp_path: Path) -> None:
    source = write_product(tmp_path / "source.onnx", [1.0, 2.0])
    candidate = write_product(tmp_path / "candidate.onnx", [1.0, 2.0], TensorProto.FLOAT16)
    verdict = judge(source, candidate, {"x": [1, 4, 2]})
    assert (verdict["loads"], verdict["right"], verdict["error"]) == (False, False, None)
    assert verdict["reason"]


def test_nan_and_another_shape_are_wrong() -> None:
    one = np.ones(3, np.float32)
    assert compare([one], [one * 1.5]) == pytest.approx(0.5)
    assert compare([one], [one * np.nan]) == float("inf")
    assert compare([one], [one[:2]]) == float("inf")
    assert compare([one * 0], [one * 0]) == 0.0
