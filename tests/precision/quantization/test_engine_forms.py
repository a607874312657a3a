"""Every quantized form of every layer builds on the real compiler, and E5M2 does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, TensorProto

from tests.builders import FLOAT, FLOAT16, constant, model, op, random_array, value
from tests.precision.quantized_models import compile_for_rtx, name_quantized, quantize
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.number_formats import FP8_E5M2
from trtdeploy.precision.quantization.planning import ENGINE_LIMITS

Shape = tuple[int, ...]
FORMS: list[tuple[str, str, Shape, Shape, dict[str, Any]]] = [
    ("Conv", "x w", (1, 16, 9), (16, 16, 3), {}),
    ("Conv", "x w", (1, 6, 9, 9), (5, 6, 3, 3), {}),
    ("Conv", "x w", (1, 16, 9, 9), (16, 4, 3, 3), {"group": 4}),
    ("Conv", "x w", (1, 16, 9, 9), (16, 1, 3, 3), {"group": 16}),
    ("Conv", "x w", (1, 16, 5, 5, 5), (16, 16, 3, 3, 3), {}),
    ("ConvTranspose", "x w", (1, 16, 9, 9), (16, 8, 2, 2), {"strides": [2, 2]}),
    ("ConvTranspose", "x w", (1, 16, 9, 9), (16, 4, 2, 2), {"group": 2}),
    ("ConvTranspose", "x w", (1, 16, 9, 9), (16, 1, 2, 2), {"group": 16}),
    ("ConvTranspose", "x w", (1, 16, 9), (16, 8, 2), {}),
    ("Gemm", "x w c", (8, 16), (32, 16), {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    ("Gemm", "w x", (8, 16), (8, 32), {"transA": 1}),
    ("MatMul", "x w", (2, 3, 16), (16, 32), {}),
    ("MatMul", "x w", (2, 3, 16), (2, 16, 32), {}),
    ("MatMul", "w x", (2, 16, 3), (32, 16), {}),
]


def all_forms() -> tuple[ModelProto, dict[str, Any]]:
    """Make one model with a branch per form: compiling it takes as long as one of them alone."""
    nodes, constants, feeds = [], [constant("c", random_array(32))], {}
    inputs, outputs = [], []
    for number, (op_type, operands, data, weight, attributes) in enumerate(FORMS):
        names = " ".join(n if n == "c" else f"{n}{number}" for n in operands.split())
        nodes.append(op(op_type, names, f"h{number}", f"layer{number}", **attributes))
        nodes.append(op("Relu", f"h{number}", f"y{number}"))
        constants.append(constant(f"w{number}", random_array(*weight, seed=number)))
        inputs.append(value(f"x{number}", data))
        rank = max(len(data), len(weight)) if op_type == "MatMul" else len(data)
        outputs.append(value(f"y{number}", tuple(f"s{number}_{axis}" for axis in range(rank))))
        feeds[f"x{number}"] = random_array(*data, seed=number)
    return model(nodes, inputs, outputs, constants), feeds


@pytest.mark.parametrize("recipe", ["int8", "int8-fp32", "fp8"])
def test_every_form_builds(recipe: str, tmp_path: Path) -> None:
    proto, feeds = all_forms()
    pins = [f"{RECIPES[recipe].quantized.name}:layer*"]  # type: ignore[union-attr]
    found = quantize(proto, tmp_path, feeds, recipe, pins=pins)
    assert len(name_quantized(found.plan)) == len(FORMS)
    assert compile_for_rtx(found.proto, feeds) == ""


def test_the_real_parser_has_no_e5m2() -> None:
    assert FP8_E5M2 in ENGINE_LIMITS
    zero = TensorProto(name="z", data_type=TensorProto.FLOAT8E5M2, raw_data=b"\0")
    nodes = [
        op("Cast", "x", "h", to=FLOAT16),
        op("QuantizeLinear", "h s z", "q"),
        op("DequantizeLinear", "q s z", "d"),
        op("Cast", "d", "y", to=FLOAT),
    ]
    constants = [constant("s", 0.5, "float16"), zero]
    proto = model(nodes, [value("x", (1, 4))], [value("y", (1, 4))], constants, opset=19)
    assert "Assertion failed" in compile_for_rtx(proto, {"x": random_array(1, 4)})
    zero.data_type = proto.graph.initializer[1].data_type = TensorProto.FLOAT8E4M3FN
    assert compile_for_rtx(proto, {"x": random_array(1, 4)}) == ""
