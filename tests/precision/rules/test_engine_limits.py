from __future__ import annotations

import pytest
from onnx import ModelProto

from tests.builders import BFLOAT16, chain, constant, model, op, random_array, value
from tests.precision.rule_runs import find_kept
from trtdeploy.core.dtypes import DType
from trtdeploy.precision.rules.engine_limits import ENGINE_LIMITS, KeepEngineLimitRule

BF16_OPERATORS = sorted(ENGINE_LIMITS[DType.BFLOAT16])


def alone(op_type: str, dtype: int = 1) -> ModelProto:
    """Make a model of one operator that computes in ``dtype``, inputs and outputs FP32."""
    shape = ("N", 4, 8, 8)
    operands = "h w" if op_type == "ConvTranspose" else "h"
    nodes = [
        op("Cast", "x", "h", "in", to=dtype),
        op("Cast", "w32", "w", "weight", to=dtype),
        op(op_type, operands, "o", "tested"),
        op("Cast", "o", "y", "out", to=1),
    ]
    weight = constant("w32", random_array(4, 4, 3, 3))
    return model(nodes, [value("x", shape)], [value("y", None)], [weight], opset=22)


@pytest.mark.parametrize("op_type", BF16_OPERATORS)
def test_kept_in_bfloat16_only(op_type: str) -> None:
    assert find_kept(KeepEngineLimitRule(), alone(op_type), "bf16").keys() == {"tested"}
    assert not find_kept(KeepEngineLimitRule(), alone(op_type), "fp16")


def test_other_operators_are_free() -> None:
    assert not find_kept(KeepEngineLimitRule(), chain(["Relu", "Exp"]), "bf16")


@pytest.mark.parametrize("op_type", [*BF16_OPERATORS, "Relu"])
def test_the_real_compiler_refuses_what_is_listed(op_type: str) -> None:
    trt = pytest.importorskip("tensorrt_rtx")
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    flag = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(flag)
    built = trt.OnnxParser(network, logger).parse(alone(op_type, BFLOAT16).SerializeToString())
    if built:
        config = builder.create_builder_config()
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.SM89, 0)
        shapes = builder.create_optimization_profile()
        shapes.set_shape("x", (1, 4, 8, 8), (1, 4, 8, 8), (2, 4, 8, 8))
        config.add_optimization_profile(shapes)
        built = builder.build_serialized_network(network, config) is not None
    assert built is (op_type not in BF16_OPERATORS)
