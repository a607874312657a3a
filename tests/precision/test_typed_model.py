"""What a typed model says about quantization, and what weak typing makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.builders import in_memory, op
from tests.precision.emulated_runs import emulate_and_run
from tests.precision.layer_rule_runs import tower
from tests.precision.quantized_models import (
    conv,
    conv_weight,
    image_feeds,
    image_model,
    quantize,
    run_plainly,
    scale_of,
)
from tests.precision.typed_models import types_of
from trtdeploy.config.recipe import RECIPES, make_weak_recipe
from trtdeploy.core.dtypes import DType
from trtdeploy.core.number_formats import INT8
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.plan import NodeDecision
from trtdeploy.precision.quantization.plan import QuantizedWeight
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

NODES = [
    conv("x w", "c"),
    op("Relu", "c", "r"),
    op("ReduceSum", "r", "s", axes=[2, 3]),
    op("Mul", "r s", "m"),
    conv("m w", "y"),
]
MODEL = image_model(NODES, [conv_weight("w", 16, 16)])
MODEL.opset_import[0].version = 11
MODEL.ir_version = 6
AMAX = {"x": 4.0, "m": 60.0}


def test_quantized_layers_are_counted_as_such() -> None:
    typed = apply_recipe(in_memory(MODEL), TypingOptions(RECIPES["int8"], amax=AMAX))
    plan = typed.plan.summarize()
    assert plan.counts == {"int8": 2, "float16": 2, "float32": 1}
    assert plan.nodes.keys() == {"c", "r", "s", "m", "y"}  # Q/DQ nodes belong to their layers
    assert plan.nodes["c"] == NodeDecision(DType.INT8, "recipe", "recipe int8")
    assert typed.plan.dtype_of("c") is DType.FLOAT16
    assert typed.quantization is not None
    assert typed.quantization.measured == ("x", "m")
    assert typed.quantization.weights[0] == QuantizedWeight("c", 1, "w", INT8, axis=0)


def test_recipes_without_quantization_have_no_such_plan() -> None:
    typed = apply_recipe(in_memory(MODEL), TypingOptions(RECIPES["fp16"]))
    assert typed.quantization is None
    assert not typed.plan.quantized


def test_weak_typing_plans_fp16_and_writes_fp32() -> None:
    weak = make_weak_recipe(RECIPES["int8"])
    typed = apply_recipe(in_memory(MODEL), TypingOptions(weak, amax=AMAX))
    assert typed.model.opset == 13
    assert DType.FLOAT16 not in types_of(typed.model.proto).values()
    pinned = [n for n, d in typed.plan.summarize().nodes.items() if d.dtype is DType.FLOAT32]
    assert pinned == ["s"]  # what a rule keeps, neither the rest nor Q/DQ nodes
    strong = apply_recipe(in_memory(MODEL), TypingOptions(RECIPES["int8-fp32"], amax=AMAX))
    exact, found = (run_plainly(t.model.proto, image_feeds())[0] for t in (strong, typed))
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("recipe", ["int8", "int8-fp32", "fp8"])
def test_emulation_keeps_the_pairs_and_runs(recipe: str, tmp_path: Path) -> None:
    proto = image_model(*tower("x", "y", 3))
    found = quantize(proto, tmp_path, image_feeds(), recipe)
    before = [n.op_type for n in found.proto.graph.node if n.op_type.endswith("Linear")]
    emulated = emulate_model(in_memory(found.proto)).proto
    after = [n.op_type for n in emulated.graph.node if n.op_type.endswith("Linear")]
    assert after == before
    expected = run_plainly(proto, image_feeds())[0]
    result = run_plainly(emulated, image_feeds())[0]
    assert np.abs(result - expected).max() < 0.15 * np.abs(expected).max()


def test_what_dequantize_computes_is_not_rounded(tmp_path: Path) -> None:
    """A device multiplies the 8-bit numbers; 127 times this scale is no FP16 number."""
    nodes = [op("Exp", "x", "e"), conv("e w", "y")]
    proto = image_model(nodes, [conv_weight("w", 16, 16)])
    found = quantize(proto, tmp_path, image_feeds(), amax={"e": 12.345})
    probe = emulate_model(in_memory(found.proto)).proto
    del probe.graph.output[:]
    probe.graph.output.add(name="e_dequantized")
    values = run_plainly(probe, image_feeds())[0]
    scale = scale_of(found.proto, "y")
    np.testing.assert_array_equal(values, np.rint(values / scale) * scale)
    assert (values.astype(np.float16).astype(np.float32) != values).any()


def test_emulation_of_a_prequantized_pair_gives_the_same_with_optimisations(tmp_path: Path) -> None:
    found = quantize(MODEL, tmp_path, image_feeds(), amax=AMAX)
    assert len(emulate_and_run(found.proto, image_feeds(), tmp_path)) == 1
