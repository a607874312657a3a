"""Models quantized by the ranges of an FP32 run, and what has to hold for every one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from tests.builders import Feeds, constant, in_memory, loaded, model, op, random_array, value
from tests.precision.typed_models import Array, assert_tidy, describe_io
from trtdeploy.config.recipe import RECIPES
from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.emulation import emulate_model
from trtdeploy.precision.quantization.plan import QuantizationPlan
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import prepare_for_quantization
from trtdeploy.precision.typed_model import TypedModel, apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

Q, DQ = "QuantizeLinear", "DequantizeLinear"


class Quantized(NamedTuple):
    """A model after a recipe: as planned and as ONNX reads it from the file."""

    typed: TypedModel
    proto: ModelProto

    @property
    def plan(self) -> QuantizationPlan:
        assert self.typed.quantization is not None
        return self.typed.quantization


def run_plainly(proto: ModelProto, feeds: Feeds) -> list[Array]:
    """Run with ONNX Runtime's optimisations off: they are wrong for Q/DQ models."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(feeds))


def measure_amax(prepared: OnnxModel, names: Iterable[str], feeds: Feeds) -> dict[str, float]:
    """Return the largest magnitude of each value in one run."""
    probe = prepared.copy()
    wanted = [name for name in names if name not in feeds]
    del probe.graph.output[:]
    probe.graph.output.extend(value(name, None) for name in wanted)
    found = dict(zip(wanted, run_plainly(probe.proto, feeds), strict=True)) if wanted else {}
    return {name: float(np.abs(found.get(name, feeds.get(name))).max()) for name in names}


def make_plan(
    proto: ModelProto, recipe: str = "int8", pins: Sequence[str] = ()
) -> tuple[QuantizationPlan, ModelIndex]:
    index = build_index(prepare_for_quantization(in_memory(proto), RECIPES[recipe]))
    return plan_quantization(index, RECIPES[recipe], pins=pins), index


def quantize(
    proto: ModelProto,
    folder: Path,
    feeds: Feeds,
    recipe: str = "int8",
    *,
    amax: Mapping[str, float] | None = None,
    **options: Any,
) -> Quantized:
    """Quantize from file to file with the ranges of ``feeds``, and check the result."""
    source = loaded(proto, folder)
    prepared = prepare_for_quantization(source, RECIPES[recipe])
    plan = plan_quantization(build_index(prepared), RECIPES[recipe], pins=options.get("pins", ()))
    if amax is None:
        amax = measure_amax(_with_weights(prepared), plan.measured, feeds)
    typed = apply_recipe(source, TypingOptions(RECIPES[recipe], amax=amax, **options))
    path = folder / f"quantized_{recipe}.onnx"
    save_model(typed.model, path)
    onnx.checker.check_model(path, full_check=True)
    result = onnx.load(path)
    assert_tidy(result)
    assert describe_io(result) == describe_io(proto)
    assert_sound_pairs(result, typed)
    run_plainly(result, feeds)
    return Quantized(typed, result)


def _with_weights(model: OnnxModel) -> OnnxModel:
    """Return a copy with the weights from the disk in it, so that it runs from memory."""
    whole = OnnxModel(model.copy().proto, model.path)
    for tensor in whole.graph.initializer:
        if tensor.name in model.weights:
            tensor.raw_data = b"".join(bytes(c) for c in model.weights[tensor.name].iterate_bytes())
    return whole


def assert_sound_pairs(proto: ModelProto, typed: TypedModel) -> None:
    """Scales are positive, zero points typed and 0, nothing lies between a pair and its layer."""
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    producers = {name: node for node in proto.graph.node for name in node.output}
    for node in proto.graph.node:
        if node.op_type not in (Q, DQ):
            continue
        scale, zero = (constants[name] for name in node.input[1:3])
        values = numpy_helper.to_array(scale)
        assert (values > 0).all(), f"{node.name} has a scale of 0"
        assert np.isfinite(values.astype(np.float32)).all()
        assert list(zero.dims) == list(scale.dims)
        assert not any(zero.raw_data)
    quantized = name_quantized(typed.quantization) if typed.quantization else {}
    for node in proto.graph.node:
        if node.name in quantized:
            assert {producers[name].op_type for name in node.input[:2]} == {DQ}


def name_quantized(plan: QuantizationPlan) -> dict[str, str]:
    """Return the 8-bit type of each layer that the plan quantizes."""
    return {n: d.quantized for n, d in plan.layers.items() if d.quantized is not None}


def dequantized_slots(proto: ModelProto, name: str) -> list[int]:
    """Return which operands of a node come from DequantizeLinear."""
    producers = {result: node for node in proto.graph.node for result in node.output}
    node = next(node for node in proto.graph.node if node.name == name)
    return [
        slot
        for slot, operand in enumerate(node.input)
        if operand in producers and producers[operand].op_type == DQ
    ]


def pair_of(proto: ModelProto, name: str, slot: int = 0) -> NodeProto:
    """Return the DequantizeLinear that a node reads."""
    node = next(node for node in proto.graph.node if node.name == name)
    found = next(n for n in proto.graph.node if node.input[slot] in n.output)
    assert found.op_type == DQ
    return found


def scale_of(proto: ModelProto, name: str, slot: int = 0) -> Array:
    """Return the scale with which a node reads an operand."""
    dequantize = pair_of(proto, name, slot)
    tensor = next(t for t in proto.graph.initializer if t.name == dequantize.input[1])
    return numpy_helper.to_array(tensor).astype(np.float32)


def axis_of(dequantize: NodeProto) -> int | None:
    return next((a.i for a in dequantize.attribute if a.name == "axis"), None)


def measure_snr_db(proto: ModelProto, quantized: Quantized, feeds: Feeds) -> float:
    """Return signal to noise of the first output, emulated, against FP32 (dB)."""
    expected = run_plainly(proto, feeds)[0].astype(np.float64)
    emulated = emulate_model(in_memory(quantized.proto)).proto
    noise = run_plainly(emulated, feeds)[0].astype(np.float64) - expected
    return float(10 * np.log10((expected**2).sum() / (noise**2).sum()))


def conv(operands: str, result: str, name: str | None = None, **attributes: Any) -> NodeProto:
    """Make a 3x3 Conv that keeps the size of its image."""
    attributes = {"pads": [1, 1, 1, 1], **attributes}
    return op("Conv", operands, result, name, **attributes)


def conv_weight(name: str, out: int, inside: int, size: int = 3, seed: int = 0) -> TensorProto:
    spread = (2 / (inside * size * size)) ** 0.5
    return constant(name, random_array(out, inside, size, size, seed=seed, scale=spread))


def image_model(
    nodes: Sequence[NodeProto],
    constants: Sequence[TensorProto],
    result: str = "y",
    channels: int = 16,
) -> ModelProto:
    """Make a model of one image ``x`` with ``channels`` channels, 8 pixels wide and high."""
    inputs = [value("x", ("N", channels, 8, 8))]
    return model(nodes, inputs, [value(result, ("N", "c", "h", "w"))], constants)


def image_feeds(channels: int = 16, seed: int = 0) -> dict[str, Array]:
    return {"x": random_array(2, channels, 8, 8, seed=seed)}


def compile_for_rtx(proto: ModelProto, feeds: Feeds) -> str:
    """Return what the real parser and compiler for SM89 say; empty when there is an engine."""
    trt = pytest.importorskip("tensorrt_rtx")
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(proto.SerializeToString()):
        return str(parser.get_error(0).desc())
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    shapes = builder.create_optimization_profile()
    for name, array in feeds.items():
        shapes.set_shape(name, array.shape, array.shape, array.shape)
    config.add_optimization_profile(shapes)
    plan = builder.build_serialized_network(network, config)
    return "" if plan is not None else "no engine"
