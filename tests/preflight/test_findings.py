"""One flawed model per kind of finding: who is affected, which node is named, what is said."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

import numpy as np
import pytest

from tests.builders import in_memory
from tests.preflight import models
from tests.preflight.models import MakeModel
from trtdeploy.config.recipe import RECIPES
from trtdeploy.preflight import checks
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.report import CheckReport
from trtdeploy.preflight.target import CheckTarget

RTX = CheckTarget("tensorrt_rtx", "1.7.1")
ORIN = CheckTarget("tensorrt", "8.6.2")
JETSON6 = CheckTarget("tensorrt", "10.3.0")
CPU = CheckTarget("onnxruntime")
BLOCKER, HAZARD, NOTE = Severity.BLOCKER, Severity.HAZARD, Severity.NOTE
BASELINE, ENGINE, BOTH = Affects.BASELINE, Affects.ENGINE, Affects.BOTH


@dataclass(frozen=True)
class Case:
    """What one model must be told."""

    code: str
    make: MakeModel
    severity: Severity
    affects: Affects
    node: str
    words: str
    target: CheckTarget = RTX


CASES = (
    Case("unknown-operator", models.unknown_operators, BLOCKER, BOTH, "fancy1", "acme.ops"),
    Case("unknown-operator", models.unknown_operators, BLOCKER, BOTH, "unnamed #1", "FancyWarp"),
    Case("unknown-operator", models.operator_newer_than_opset, BLOCKER, BASELINE, "gelu",
         "exists from opset 20 on, but the file names opset 17"),
    Case("unknown-operator", models.removed_operator, BLOCKER, BASELINE, "up", "removed from ONNX"),
    Case("contrib-operator", models.unknown_operators, BLOCKER, ENGINE, "fg",
         "com.microsoft.FastGelu is an operator of ONNX Runtime"),
    Case("plugin-operator", models.plugin_operator, BLOCKER, BASELINE, "nms", "TensorRT plugin",
         JETSON6),
    Case("unknown-operator", models.plugin_operator, BLOCKER, BOTH, "nms", "nobody knows"),
    Case("unsupported-operator", models.determinant, BLOCKER, ENGINE, "det", "has no Det"),
    Case("unsupported-operator", models.decode_image, BLOCKER, BASELINE, "decode",
         "no ImageDecoder for the CPU"),
    Case("quantized-operator", models.quantized_operator, BLOCKER, ENGINE, "conv", "QOperator"),
    Case("missing-plugin", models.missing_plugin, BLOCKER, ENGINE, "nz", "does not ship"),
    Case("unlisted-operator", models.swish, HAZARD, ENGINE, "swish", "lists Swish", JETSON6),
    Case("invalid-node", models.conv_without_weights, BLOCKER, BOTH, "conv", "input size 1"),
    Case("damaged-constant", models.damaged_constant, BLOCKER, BOTH, "", "'c'"),
    Case("invalid-graph", models.recursive_function, BLOCKER, BOTH, "", "Loopy"),
    Case("invalid-graph", models.cycle, BLOCKER, BOTH, "", "'add' (Add) depends on its own"),
    Case("undefined-value", models.undefined_value, BLOCKER, BOTH, "add", "'ghost'"),
    Case("duplicate-value", models.duplicate_value, BLOCKER, BOTH, "", "'y' is defined 2 times"),
    Case("not-sorted", models.unsorted_nodes, NOTE, BASELINE, "second", "'t'"),
    Case("duplicate-node-name", models.duplicate_names, HAZARD, BASELINE, "same", "renamed"),
    Case("opset-not-named", models.no_opset, HAZARD, BOTH, "", "no operator set"),
    Case("opset-too-new", lambda: models.with_versions(models.convolution(), opset=90), BLOCKER,
         BASELINE, "", "cannot load it"),
    Case("ir-too-new", lambda: models.with_versions(models.convolution(), ir=60), BLOCKER,
         BASELINE, "", "IR version 60"),
    Case("opset-above-target", models.operator_newer_than_opset, HAZARD, ENGINE, "", "up to 13",
         CheckTarget("tensorrt", "10.3", max_opset=13)),
    Case("opset-above-target", models.swish, HAZARD, ENGINE, "", "documents up to 17", ORIN),
    Case("opset-too-old", lambda: models.with_versions(models.convolution(), opset=6), HAZARD,
         BASELINE, "", "from opset 7 on"),
    Case("opset-too-old", lambda: models.with_versions(models.convolution(), opset=8), HAZARD,
         ENGINE, "", "from opset 9 on", JETSON6),
    Case("string-tensor", models.string_branch, BLOCKER, ENGINE, "", "constant 'labels'"),
    Case("string-tensor", models.string_branch, BLOCKER, ENGINE, "to_text", "output 'text'"),
    Case("uint8-inside", models.uint8_inside, BLOCKER, ENGINE, "mid_uint8", "'u8'"),
    Case("uint8-inside", models.uint8_read_too_late, BLOCKER, ENGINE, "turn", "input 'x'"),
    Case("unsupported-type", models.uint16_constant, BLOCKER, ENGINE, "", "'wide' is uint16"),
    Case("double-tensor", models.doubles, HAZARD, ENGINE, "", "input 'x' is float64"),
    Case("invalid-type", models.bool_arithmetic, BLOCKER, BOTH, "add_flags", "'gt' is bool"),
    Case("non-tensor-value", models.sequence_input, BLOCKER, ENGINE, "", "'many' is a sequence"),
    Case("untyped-input", models.untyped_input, BLOCKER, BOTH, "", "'x' has no element type"),
    Case("int32-dequantize", lambda: models.quantized(bias=True), NOTE, ENGINE, "b_dq",
         "'bq' (a bias); TensorRT-RTX 1.7.1 dequantizes 8-bit and narrower types only; the build "
         "folds it"),
    Case("nonzero-zero-point", lambda: models.quantized(np.uint8(117)), BLOCKER, ENGINE, "x_q",
         "'z' is 117"),
    Case("uint8-quantization", lambda: models.quantized(np.uint8(0)), BLOCKER, ENGINE, "x_q",
         "above 127 saturates"),
    Case("bad-scale", lambda: models.quantized(scale=0.0), BLOCKER, ENGINE, "x_q", "scale 's'"),
    Case("unpaired-quantize", models.unpaired_quantize, HAZARD, ENGINE, "x_q", "read by Cast"),
    Case("already-quantized", models.quantized, HAZARD, ENGINE, "", "they are kept as they are",
         CheckTarget("tensorrt_rtx", "1.7.1", recipe=RECIPES["int8"])),
    Case("training-mode", lambda: models.normalization(training_mode=1), BLOCKER, BOTH, "bn",
         "training_mode is 1"),
    Case("training-mode", lambda: models.dropout(training=True), BLOCKER, BOTH, "drop", "random"),
    Case("training-mode", lambda: models.dropout(training=None), BLOCKER, ENGINE, "drop",
         "decided at run time by 'train'"),
    Case("random-node", models.random_noise, HAZARD, BOTH, "noise", "non-deterministic"),
    Case("shape-conflict", models.impossible_add, BLOCKER, BOTH, "v0", "'x' [N, 4] and 'c' [5]"),
    Case("fixed-inside", lambda: models.reshape_to(1, 192), BLOCKER, BOTH, "fold",
         "declared dynamic but fixed inside"),
    Case("fixed-inside", models.class_token, BLOCKER, BOTH, "prepend", "'token' [1, 1, 6]"),
    Case("mixed-samples", lambda: models.reshape_to(1, 3, -1), HAZARD, BOTH, "fold", "mixed"),
    Case("declared-shape-differs", lambda: models.wrong_declaration(("N", 4, 1)), HAZARD, BASELINE,
         "relu", "inferred shape and existing shape differ in rank (2 and 3)"),
    Case("declared-shape-differs", lambda: models.wrong_declaration(("N", 5)), HAZARD, BASELINE,
         "relu", "differ in axis 1"),
    Case("declared-type-differs", lambda: models.wrong_declaration(("N", 4), models.INT64),
         BLOCKER, BASELINE, "relu", "declared int64 and computed as float32"),
    Case("data-dependent-shape", models.missing_plugin, HAZARD, ENGINE, "nz", "allocator", JETSON6),
    Case("unused-input", models.unused_input, NOTE, ENGINE, "", "'meta' is read by no node"),
    Case("shape-tensor-input", models.shape_tensor_input, NOTE, ENGINE, "", "input 'n_pos'"),
    Case("shape-tensor-input", models.shape_tensor_input, NOTE, ENGINE, "", "input 'size'"),
    Case("float-shape-input", models.float_shape_input, BLOCKER, ENGINE, "", "'scales'"),
)  # fmt: skip

OTHER_TESTS = {
    "attribute-value", "extra-output", "input-rank", "input-type", "operand-too-large",
    "parser-crashed", "parser-error", "profile-mismatch", "runtime-operand", "shapes-cannot-run",
    "narrow-source", "scale-shape", "runtime-scale", "mixed-quantization", "quantization-audit",
    "scalar-dequantize", "integer-quantize", "axis-before-opset-13", "quantized-type",
}  # fmt: skip
"""Codes tested in files of their own."""


def check(make: MakeModel, target: CheckTarget = RTX) -> CheckReport:
    return check_model(in_memory(make()), target=target)


def find(report: CheckReport, code: str, node: str, words: str) -> Finding:
    found = [f for f in report.findings if f.code == code and f.node == node and words in f.message]
    assert len(found) == 1, report.findings
    return found[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.node}".strip())
def test_flaw_is_found(case: Case) -> None:
    finding = find(check(case.make, case.target), case.code, case.node, case.words)
    assert (finding.severity, finding.affects) == (case.severity, case.affects)
    assert finding.remedy


def all_kinds() -> dict[str, FindingKind]:
    kinds: dict[str, FindingKind] = {}
    for module in pkgutil.iter_modules(checks.__path__, f"{checks.__name__}."):
        for found in vars(importlib.import_module(module.name)).values():
            group = found.values() if isinstance(found, dict) else [found]
            kinds |= {kind.code: kind for kind in group if isinstance(kind, FindingKind)}
    return kinds


def test_every_code_has_a_test() -> None:
    assert {case.code for case in CASES} | OTHER_TESTS == all_kinds().keys()


def test_every_blocker_of_a_model_comes_at_once() -> None:
    report = check(models.unknown_operators)
    assert [(f.code, f.node) for f in report.blockers] == [
        ("unknown-operator", "fancy1"),
        ("unknown-operator", "unnamed #1"),
        ("contrib-operator", "fg"),
        ("string-tensor", ""),
        ("string-tensor", ""),
    ]
    assert report.blockers


def test_zero_point_is_reported_once_and_names_its_other_readers() -> None:
    report = check(lambda: models.quantized(np.uint8(117)))
    assert [f.node for f in report.blockers] == ["x_q"]
    assert "'x_dq'" in report.blockers[0].message


def test_onnxruntime_as_the_engine_has_no_tensorrt_problems() -> None:
    for make in (models.string_branch, models.uint8_inside, models.doubles, models.determinant):
        assert not check(make, CPU).blockers


def test_onnxruntime_as_the_engine_shares_the_problems_of_the_baseline() -> None:
    finding = find(check(models.decode_image, CPU), "unsupported-operator", "decode", "CPU")
    assert finding.affects is BOTH


def test_fixed_batch_is_a_hazard_while_the_profile_asks_for_nothing_else() -> None:
    from trtdeploy.core.ranges import OptimizationProfile, ShapeRange

    def severity(*batches: int) -> Severity:
        shapes = {"x": ShapeRange(*((n, 3, 8, 8) for n in batches))}
        model = in_memory(models.reshape_to(1, 192))
        profile = OptimizationProfile("p", shapes)
        report = check_model(model, target=RTX, optimization_profiles=[profile])
        return find(report, "fixed-inside", "fold", "is 1").severity

    assert severity(1, 1, 1) is HAZARD
    assert severity(1, 2, 4) is BLOCKER
