from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from tests.builders import constant, count_ops, in_memory, op, random_array
from tests.precision.quantized_models import (
    axis_of,
    conv,
    conv_weight,
    image_feeds,
    image_model,
    name_quantized,
    pair_of,
    quantize,
    run_plainly,
)
from trtdeploy.config.recipe import RECIPES
from trtdeploy.precision.quantization.preparation import prepare_for_quantization


def exported() -> ModelProto:
    """What exporters leave: a BatchNormalization, a reshaped bias as an Add, a moved weight."""
    nodes = [
        conv("x w", "c"),
        op("BatchNormalization", "c gain shift mean var", "n"),
        op("Relu", "n", "r"),
        conv("r w", "d"),
        op("Reshape", "offset image", "bias"),
        op("Add", "d bias", "e"),
        op("Transpose", "square", "moved", perm=[1, 0]),
        op("MatMul", "e moved", "y", "product"),
    ]
    constants = [
        conv_weight("w", 16, 16),
        *(constant(name, random_array(16, seed=i)) for i, name in enumerate(("gain", "shift"))),
        constant("mean", random_array(16, seed=3)),
        constant("var", np.abs(random_array(16, seed=4)) + 0.1),
        constant("offset", random_array(16, seed=5)),
        constant("image", [1, -1, 1, 1], np.int64),
        constant("square", random_array(8, 8, seed=6)),
    ]
    return image_model(nodes, constants)


def test_what_belongs_to_a_layer_is_in_the_layer() -> None:
    prepared = prepare_for_quantization(in_memory(exported()), RECIPES["int8"])
    operators = [node.op_type for node in prepared.graph.node]
    assert operators == ["Conv", "Relu", "Conv", "MatMul"]
    assert (prepared.opset, prepared.proto.ir_version) == (19, 9)
    exact, found = (run_plainly(p, image_feeds())[0] for p in (exported(), prepared.proto))
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("recipe", ["int8", "int8-fp32", "fp8"])
def test_the_same_file_always_gives_the_same_names(recipe: str) -> None:
    made = [
        prepare_for_quantization(in_memory(exported()), RECIPES[recipe]).proto for _ in range(2)
    ]
    first, second = (proto.SerializeToString(deterministic=True) for proto in made)
    assert first == second


def test_scales_fit_the_fused_weights(tmp_path: Path) -> None:
    found = quantize(exported(), tmp_path, image_feeds())
    assert [axis_of(pair_of(found.proto, name, 1)) for name in ("c", "d", "product")] == [0, 0, 1]
    assert count_ops(found.proto, "Add") == 0
    assert len(found.plan.weights) == len(name_quantized(found.plan)) == 3
