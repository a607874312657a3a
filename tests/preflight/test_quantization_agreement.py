"""What the check says of Q/DQ graphs, without asking, against what TensorRT-RTX does with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tests.builders import INT32, chain, constant, in_memory, model, op, random_array, value
from tests.preflight.quantized_models import (
    E4M3,
    E5M2,
    INT4,
    INT16,
    UINT8,
    Layer,
    Pair,
    cast_between,
    dequantized_constant,
    matmul,
    pair_of,
    with_computed_scale,
    without_constant,
)
from trtdeploy.config.recipe import RECIPES
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.passes.adopt_contrib_quantization import AdoptContribQuantizationPass
from trtdeploy.graph.passes.fold_integer_bias import FoldIntegerBiasPass
from trtdeploy.graph.saving import save_model
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.finding import Finding, Severity
from trtdeploy.preflight.target import CheckTarget

RTX = CheckTarget("tensorrt_rtx", "1.7.1", RECIPES["fp32"])


@dataclass(frozen=True)
class Case:
    """A graph, and the code and node of the blocker that it must give; none if it is built."""

    make: Callable[[], ModelProto]
    code: str = ""
    node: str = ""


def layer(**fields: Any) -> Callable[[], ModelProto]:
    return Layer(**fields).make


def product(*pairs: Pair, **options: Any) -> Callable[[], ModelProto]:
    return lambda: matmul(*pairs, **options)


FP8 = Pair(E4M3)
IDENTITY = (op("Identity", "xd", "xi", "same"),)
SCALED = (op("Mul", "xd x_s", "xm", "scale"),)

CASES = {
    "per channel": Case(layer()),
    "per tensor": Case(layer(weight=Pair())),
    "one scale of one axis": Case(layer(data=Pair(scale=[0.1]), weight=Pair(scale=[0.1]))),
    "negative axis": Case(layer(weight=Pair(scale=np.full(6, 0.01), axis=-4))),
    "inputs' axis": Case(layer(weight=Pair(scale=np.full(3, 0.01), axis=1))),
    "no zero point of the weight": Case(layer(weight=Pair(scale=[0.1], zeros=None))),
    "weight only": Case(layer(data=None)),
    "data only": Case(layer(weight=None)),
    "float bias": Case(layer(bias="float")),
    "int8 bias": Case(layer(bias="int8")),
    "int32 bias": Case(layer(bias="int32")),
    "axis with one scale": Case(layer(data=Pair(axis=3))),
    "channel scales of data": Case(layer(data=Pair(scale=np.full(3, 0.1), axis=1))),
    "opset 10": Case(layer(weight=Pair(), opset=10)),
    "opset 13": Case(layer(opset=13)),
    "fp8": Case(layer(data=FP8, weight=FP8)),
    "contrib": Case(layer(domain="com.microsoft", opset=17)),
    "contrib int4": Case(
        layer(domain="com.microsoft", data=None, weight=Pair(INT4), opset=17)
    ),
    "int4 weight": Case(layer(data=None, weight=Pair(INT4))),
    "scalar constant": Case(lambda: dequantized_constant(())),
    "computed from constants": Case(
        lambda: with_computed_scale(op("Mul", "half half", "x_s", "square"))
    ),
    "blocks": Case(product(Pair(INT4, np.full((2, 6), 0.1), axis=0), block=4)),
    "columns": Case(product(Pair(scale=np.full(6, 0.1), axis=1))),
    "asymmetric data": Case(layer(data=Pair(zeros=3)), "nonzero-zero-point", "x_q"),
    "asymmetric weight": Case(
        layer(weight=Pair(scale=np.full(6, 0.1), zeros=3, axis=0)), "nonzero-zero-point", "w_dq"
    ),
    "asymmetric uint8": Case(layer(data=Pair(UINT8, zeros=128)), "nonzero-zero-point", "x_q"),
    "asymmetric scalar": Case(
        lambda: dequantized_constant((), zero_point=3), "scalar-dequantize", "c_dq"
    ),
    "int16": Case(layer(data=Pair(INT16)), "quantized-type", "x_q"),
    "fp8 of 5 exponent bits": Case(lambda: pair_of(E5M2), "quantized-type", "x_q"),
    "integers": Case(lambda: pair_of(source=INT32), "integer-quantize", "x_q"),
    "zero scale": Case(layer(data=Pair(scale=0.0)), "bad-scale", "x_q"),
    "negative scale": Case(layer(data=Pair(scale=-0.1)), "bad-scale", "x_q"),
    "nan scale": Case(layer(data=Pair(scale=np.nan)), "bad-scale", "x_q"),
    "one zero among channels": Case(
        layer(weight=Pair(scale=[0.1, 0.0, 0.1, 0.1, 0.1, 0.1], axis=0)), "bad-scale", "w_dq"
    ),
    "too few scales": Case(
        layer(weight=Pair(scale=np.full(5, 0.1), axis=0)), "scale-shape", "w_dq"
    ),
    "one zero point for all": Case(
        layer(weight=Pair(scale=np.full(6, 0.1), zeros=[0], axis=0)), "scale-shape", "w_dq"
    ),
    "axis beyond": Case(layer(weight=Pair(scale=np.full(6, 0.1), axis=7)), "scale-shape", "w_dq"),
    "scales of two axes": Case(
        layer(weight=Pair(scale=np.full((6, 1), 0.1), axis=0)), "scale-shape", "w_dq"
    ),
    "no scales": Case(layer(weight=Pair(scale=np.zeros(0), axis=0)), "scale-shape", "w_dq"),
    "scales along the batch": Case(
        layer(data=Pair(scale=np.full(2, 0.1), axis=0)), "scale-shape", "x_q"
    ),
    "uneven blocks": Case(
        product(Pair(INT4, np.full((3, 6), 0.1), axis=0), block=3), "scale-shape", "w_dq"
    ),
    "zero point is an input": Case(lambda: without_constant("x_z"), "runtime-scale", "x_q"),
    "int8 and int4": Case(layer(weight=Pair(INT4)), "mixed-quantization", "layer"),
    "int8 and fp8": Case(layer(weight=FP8), "mixed-quantization", "layer"),
    "fp8 and int8": Case(product(Pair(), FP8), "mixed-quantization", "layer"),
    "mixed behind Identity": Case(
        layer(weight=Pair(INT4), between=IDENTITY), "mixed-quantization", "layer"
    ),
    "mixed behind Mul": Case(
        layer(weight=Pair(INT4), between=SCALED), "mixed-quantization", "layer"
    ),
    "int4 twice": Case(
        layer(data=Pair(INT4), weight=Pair(INT4)), "mixed-quantization", "layer"
    ),
    "turned int8 and int4": Case(layer(weight=Pair(INT4), op_type="ConvTranspose")),
    "turned fp8 and int4": Case(
        layer(data=FP8, weight=Pair(INT4), op_type="ConvTranspose"), "mixed-quantization", "layer"
    ),
}  # fmt: skip


def find_blockers(found: OnnxModel, target: CheckTarget = RTX) -> list[Finding]:
    report = check_model(found, target=target)
    return [finding for finding in report.findings if finding.blocks_engine]


@pytest.fixture(scope="module")
def build() -> Callable[[OnnxModel, Path], str]:
    """Return a function that builds for SM89: ``parser``, ``builder`` (who refused), or empty."""
    trt = pytest.importorskip("tensorrt_rtx", reason="TensorRT-RTX is not installed")
    logger = trt.Logger(trt.Logger.Severity.INTERNAL_ERROR)
    builder = trt.Builder(logger)

    def build_engine(found: OnnxModel, folder: Path) -> str:
        prepared = found.copy()
        AdoptContribQuantizationPass()(prepared)
        FoldIntegerBiasPass()(prepared)
        save_model(prepared, folder / "prepared.onnx")
        network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
        parser = trt.OnnxParser(network, logger)
        if not parser.parse_from_file(str(folder / "prepared.onnx")):
            return "parser"
        config = builder.create_builder_config()
        config.num_compute_capabilities = 1
        config.set_compute_capability(trt.ComputeCapability.SM89, 0)
        shapes = builder.create_optimization_profile()
        for position in range(network.num_inputs):
            entry = network.get_input(position)
            if -1 in tuple(entry.shape):
                shape = [2 if size == -1 else size for size in entry.shape]
                shapes.set_shape(entry.name, shape, shape, shape)
                config.add_optimization_profile(shapes)
        return "" if builder.build_serialized_network(network, config) else "builder"

    return build_engine


@pytest.mark.parametrize("name", CASES)
def test_check_names_the_node_and_agrees_with_the_compiler(
    name: str, build: Callable[[OnnxModel, Path], str], tmp_path: Path
) -> None:
    case = CASES[name]
    made = in_memory(case.make())
    blockers = find_blockers(made)
    refused_by = build(made, tmp_path)
    assert (bool(blockers), bool(case.code)) == (bool(refused_by), bool(refused_by))
    if case.code:
        assert (case.code, case.node) in {(found.code, found.node) for found in blockers}
        assert all(found.remedy for found in blockers)


@pytest.mark.parametrize(
    "sources",
    [
        (op("ReduceMax", "x", "x_s", "range", keepdims=0),),
        (op("Shape", "x", "sizes"), op("ReduceMax", "sizes", "m", keepdims=0),
         op("Cast", "m", "x_s", to=1)),
    ],
)  # fmt: skip
def test_scale_computed_at_run_time(sources: tuple[onnx.NodeProto, ...]) -> None:
    # the parser of TensorRT-RTX 1.7.1 crashes on both, so it is not asked
    codes = {(found.code, found.node) for found in find_blockers(
        in_memory(with_computed_scale(*sources))
    )}  # fmt: skip
    assert ("runtime-scale", "x_q") in codes


@pytest.mark.parametrize("zeros", [0, None])
def test_uint8_is_refused_although_the_parser_reads_it(zeros: int | None) -> None:
    trt = pytest.importorskip("tensorrt_rtx", reason="TensorRT-RTX is not installed")
    made = layer(data=Pair(UINT8, zeros=zeros))()
    logger = trt.Logger(trt.Logger.Severity.INTERNAL_ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    assert trt.OnnxParser(network, logger).parse(made.SerializeToString())
    layers = [network.get_layer(position) for position in range(network.num_layers)]
    (quantize,) = (found for found in layers if found.type == trt.LayerType.QUANTIZE)
    assert quantize.get_output_type(0) == trt.DataType.INT8
    assert [(f.code, f.node) for f in find_blockers(in_memory(made))] == [
        ("uint8-quantization", "x_q")
    ]


def test_infinite_scale_is_a_hazard() -> None:
    report = check_model(in_memory(layer(data=Pair(scale=np.inf))()), target=RTX)
    (finding,) = [f for f in report.findings if f.code == "bad-scale" and f.node == "x_q"]
    assert finding.severity is Severity.HAZARD


def test_axis_before_opset_13_stops_the_baseline_only() -> None:
    report = check_model(in_memory(layer(opset=11)()), target=RTX)
    (finding,) = report.blockers
    assert (finding.code, finding.node) == ("axis-before-opset-13", "w_dq")
    assert not finding.blocks_engine
    assert "opset 13" in finding.remedy


def test_many_foldable_constants_are_one_note() -> None:
    report = check_model(in_memory(layer(bias="int32")()), target=RTX)
    (note,) = [f for f in report.findings if f.code == "int32-dequantize"]
    assert (note.node, note.severity) == ("b_dq", Severity.NOTE)
    assert "bit for bit" in note.message


@pytest.mark.parametrize("recipe", ["fp16", "int8", "fp8"])
def test_quantized_fp16_models_suit_recipes_that_keep_fp16(recipe: str) -> None:
    proto = cast_between()
    assert (
        find_blockers(in_memory(proto), CheckTarget("tensorrt_rtx", "1.7.1", RECIPES[recipe])) == []
    )
    codes = {f.code for f in find_blockers(in_memory(proto), CheckTarget("tensorrt_rtx"))}
    assert codes == {"narrow-source"}


def test_audit_is_a_note_or_a_hazard() -> None:
    good = check_model(in_memory(layer()()), target=RTX)
    (note,) = [f for f in good.findings if f.code == "quantization-audit"]
    assert (note.severity, note.message) == (
        Severity.NOTE, "Most of the work (100 % of the layers) runs in INT8."
    )  # fmt: skip
    bad = check_model(in_memory(layer(data=None)()), target=RTX)
    (hazard,) = [f for f in bad.findings if f.code == "quantization-audit"]
    assert hazard.severity is Severity.HAZARD
    assert "will probably not be faster than FP16" in hazard.message
    assert "'w_dq' (DequantizeLinear)" in hazard.message
    assert "'layer'" in hazard.message


# --- files of ONNX Runtime's quantizer -----------------------------------------------------------


def source_model(opset: int) -> ModelProto:
    nodes = [
        op("Conv", "x w1 b1", "c1", "conv1", pads=[1] * 4),
        op("Relu", "c1", "r1", "relu1"),
        op("Conv", "r1 w2 b2", "c2", "conv2", pads=[1] * 4),
        op("Add", "c2 r1", "a", "add"),
        op("GlobalAveragePool", "a", "g", "pool"),
        op("Flatten", "g", "f", "flat"),
        op("Gemm", "f w3 b3", "y", "fc", transB=1),
    ]
    weights = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 8, 3, 3), "b2": (8,), "w3": (5, 8),
               "b3": (5,)}  # fmt: skip
    constants = [constant(name, random_array(*shape)) for name, shape in weights.items()]
    return model(
        nodes, [value("x", ("N", 3, 8, 8))], [value("y", ("N", 5))], constants, opset=opset
    )


SYMMETRIC = {"ActivationSymmetric": True, "WeightSymmetric": True}
FLOAT_BIAS = {**SYMMETRIC, "QuantizeBias": False}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "per channel": {"per_channel": True},
    "reduced range": {"reduce_range": True},
    "symmetric": {"extra_options": SYMMETRIC},
    "symmetric per channel": {"per_channel": True, "extra_options": SYMMETRIC},
    "float bias": {"extra_options": FLOAT_BIAS},
    "dedicated pairs": {"extra_options": {**FLOAT_BIAS, "DedicatedQDQPair": True}},
    "weights in pairs": {"extra_options": {**FLOAT_BIAS, "AddQDQPairToWeight": True}},
    "contrib": {"extra_options": {**FLOAT_BIAS, "UseQDQContribOps": True}},
    "uint8": {"activation_type": "QUInt8"},
    "int16": {"activation_type": "QInt16", "extra_options": FLOAT_BIAS},
    "qoperator": {"quant_format": "QOperator"},
}


def quantize(folder: Path, setting: dict[str, Any], opset: int) -> Path:
    quantization = pytest.importorskip("onnxruntime.quantization")

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.samples = iter([{"x": random_array(2, 3, 8, 8, seed=5)}])

        def get_next(self) -> dict[str, Any] | None:
            return next(self.samples, None)

    named = dict(setting)
    if "activation_type" in named:
        named["activation_type"] = quantization.QuantType[named["activation_type"]]
    if "quant_format" in named:
        named["quant_format"] = quantization.QuantFormat[named["quant_format"]]
    source, target = folder / "source.onnx", folder / "quantized.onnx"
    onnx.save(source_model(opset), source)
    quantization.quantize_static(source, target, Reader(), **named)
    return target


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "opset"), [*((name, 17) for name in SETTINGS), ("symmetric per channel", 11),
                        ("symmetric", 13), ("symmetric per channel", 21)],
)  # fmt: skip
def test_files_of_onnxruntime(
    name: str, opset: int, build: Callable[[OnnxModel, Path], str], tmp_path: Path
) -> None:
    made = load_model(quantize(tmp_path, SETTINGS[name], opset))
    blockers = find_blockers(made)
    assert bool(blockers) == bool(build(made, tmp_path))
    assert all(found.node and found.remedy for found in blockers if "type" not in found.code)
    accepted = {"symmetric", "symmetric per channel", "float bias", "dedicated pairs",
                "weights in pairs", "contrib"}  # fmt: skip
    assert (not blockers) == (name in accepted)


def test_a_plain_model_gets_no_audit() -> None:
    report = check_model(in_memory(chain(["Relu"])), target=RTX)
    assert not [f for f in report.findings if f.code == "quantization-audit"]


def test_cycles_of_data_movement_end() -> None:
    nodes = [
        op("Identity", "b", "a", "one"),
        op("Identity", "a", "b", "two"),
        op("QuantizeLinear", "a s", "q", "x_q"),
        op("DequantizeLinear", "q s", "d", "x_dq"),
        op("Concat", "d a", "e", "join", axis=0),
        op("MatMul", "e b", "y", "layer"),
    ]
    proto = model(nodes, [value("x")], [value("y", None)], [constant("s", 0.1)])
    report = check_model(in_memory(proto), target=RTX)
    assert "invalid-graph" in {finding.code for finding in report.blockers}
    assert "quantization-audit" in {finding.code for finding in report.findings}
