"""The audit: what layers run in, what is named as an obstacle, and the sentence."""

from __future__ import annotations

import json

import pytest
from onnx import ModelProto

from tests.builders import chain, in_memory
from tests.precision.audit import audited_graphs as graphs
from trtdeploy.precision.audit.auditing import audit_quantization
from trtdeploy.precision.audit.expected_speed import format_share
from trtdeploy.precision.audit.report import ObstacleKind, QuantizationAudit
from trtdeploy.report.json_document import dump_document


def audit(proto: ModelProto) -> QuantizationAudit:
    return audit_quantization(in_memory(proto), {})


def runs_in(found: QuantizationAudit) -> dict[str, str]:
    return {layer.node: layer.runs_in for layer in found.layers}


@pytest.mark.parametrize(("dtype", "name"), [(graphs.INT8, "int8"), (graphs.E4M3, "fp8")])
def test_sound_graph(dtype: int, name: str) -> None:
    found = audit(graphs.two_convolutions(dtype))
    assert runs_in(found) == {"c1": name, "c2": name}
    assert (found.flops_share, found.weight_bytes_share, found.unknown_costs) == (1.0, 1.0, 0)
    assert found.obstacles == ()
    assert found.conversions == 1  # of the model's input
    assert found.verdict == f"Most of the work (100 % of FLOPs) runs in {name.upper()}."
    assert found.is_probably_faster is True


@pytest.mark.parametrize(
    ("proto", "kind", "node", "words"),
    [
        (graphs.cast_between(), ObstacleKind.CAST_BETWEEN, "c", "'x16' stands between 'x_d'"),
        (graphs.arithmetic_between(), ObstacleKind.ARITHMETIC_BETWEEN, "y", "'scaled' (Mul)"),
        (graphs.weight_only(), ObstacleKind.ONE_OPERAND, "y", "'x' stays in floating point"),
        (graphs.wrong_axis("Conv", 1), ObstacleKind.WRONG_AXIS, "y", "output channels are axis 0"),
        (graphs.wrong_axis("ConvTranspose", 0), ObstacleKind.WRONG_AXIS, "y", "are axis 1"),
        (graphs.wrong_axis("MatMul", 0), ObstacleKind.WRONG_AXIS, "y", "are axis 1"),
        (graphs.wrong_axis("Gemm", 0), ObstacleKind.WRONG_AXIS, "y", "are axis 1"),
        (graphs.turned_weight(1), ObstacleKind.WRONG_AXIS, "y", "along axis 0"),
        (graphs.with_zero_point(3), ObstacleKind.ZERO_POINT, "c1", "'x_d' has a zero point"),
        (graphs.with_zero_point(0, 0.0), ObstacleKind.BAD_SCALE, "c1", "'x_d' has a scale"),
    ],
)  # fmt: skip
def test_what_keeps_a_layer_out_of_8_bits(
    proto: ModelProto, kind: ObstacleKind, node: str, words: str
) -> None:
    found = audit(proto)
    (layer,) = [layer for layer in found.layers if layer.node == node]
    assert layer.runs_in in ("fp32", "fp16")
    assert kind.value in layer.obstacles
    assert any(words in o.detail for o in found.obstacles if (o.kind, o.node) == (kind.value, node))
    assert found.is_probably_faster is False
    assert kind.title in found.verdict
    assert found.verdict.startswith("This will probably not be faster than FP16, because no layer")


@pytest.mark.parametrize(
    "proto",
    [
        graphs.wrong_axis("Conv", 0),
        graphs.wrong_axis("ConvTranspose", 1),
        graphs.wrong_axis("ConvTranspose", -3),
        graphs.wrong_axis("MatMul", 1),
        graphs.turned_weight(0),
        graphs.attention(),
        graphs.integer_bias(),
    ],
)
def test_right_axes_and_movers_keep_8_bits(proto: ModelProto) -> None:
    assert set(runs_in(audit(proto)).values()) <= {"int8", "fp8"}


@pytest.mark.parametrize(
    ("proto", "kind", "node", "words"),
    [
        (graphs.before_activation(), ObstacleKind.BEFORE_ACTIVATION, "c", "before 'y' (Relu)"),
        (graphs.residual(both=True), ObstacleKind.BOTH_BRANCHES, "a", "kernel of 'c2' (Conv)"),
        (graphs.concatenation(0.2), ObstacleKind.CONCAT_SCALES, "joined", "'r1_d' and 'r2_d'"),
        (graphs.round_trip(), ObstacleKind.ROUND_TRIP, "soft_q", "'y' (ReduceL2)"),
        (graphs.integer_bias(), ObstacleKind.INTEGER_BIAS, "b", "int32 constant 'bq'"),
    ],
)
def test_where_pairs_are_in_the_way(
    proto: ModelProto, kind: ObstacleKind, node: str, words: str
) -> None:
    found = audit(proto)
    (obstacle,) = found.obstacles
    assert (obstacle.kind, obstacle.node) == (kind.value, node)
    assert obstacle.remedy == kind.remedy
    assert words in obstacle.detail
    assert set(runs_in(found).values()) == {"int8"}


@pytest.mark.parametrize("proto", [graphs.residual(both=False), graphs.concatenation(0.1)])
def test_pairs_where_tensorrt_wants_them(proto: ModelProto) -> None:
    # case o11: the skip branch alone has a pair
    found = audit(proto)
    assert found.obstacles == ()
    assert found.is_probably_faster is True


def test_share_decides() -> None:
    found = audit(graphs.mostly_floating_point())
    assert runs_in(found) == {"c1": "int8", "y": "fp32"}
    # 3x3 on 8 channels at 8x8 against 5x5 on 64 channels at 4x4
    assert found.flops_share == pytest.approx(8 * 64 * 72 / (8 * 64 * 72 + 64 * 16 * 200))
    assert found.weight_bytes_share == pytest.approx(576 / (576 + 12800))
    assert found.verdict == (
        "This will probably not be faster than FP16, because only 15 % of FLOPs run in 8 bits."
    )


def test_broken_fusions_decide() -> None:
    found = audit(graphs.before_activation())
    assert found.verdict == (
        "This will probably not be faster than FP16, because fusions are broken in 1 place: a "
        "Q/DQ pair separates the layer from its activation."
    )


def test_plain_model() -> None:
    found = audit(chain(["Relu"]))
    assert (found.verdict, found.is_probably_faster) == ("No layer is quantized.", None)
    assert not found.is_quantized


def test_document_is_json_with_stable_keys() -> None:
    document = json.loads(json.dumps(dump_document(audit(graphs.weight_only()))))
    assert list(document) == [
        "verdict", "is_probably_faster", "flops_share", "weight_bytes_share", "conversions",
        "unknown_costs", "layers_by_type", "layers", "obstacles",
    ]  # fmt: skip
    (layer,) = document["layers"]
    assert layer["obstacles"] == ["one-operand"]
    assert set(layer) == {
        "node", "op_type", "runs_in", "touched", "flops", "weight_bytes", "obstacles",
    }  # fmt: skip
    (obstacle,) = document["obstacles"]
    assert set(obstacle) == {"kind", "node", "detail", "remedy"}


def test_every_kind_has_words() -> None:
    assert all(kind.title and kind.remedy for kind in ObstacleKind)


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.999, "over 99 %"), (0.93, "93 %"), (0.001, "under 1 %"), (0.0, "0 %")],
)
def test_shares_in_words(share: float, text: str) -> None:
    assert format_share(share) == text
