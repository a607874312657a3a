"""Runs of one quantization rule on one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto, NodeProto, TensorProto

from tests.builders import normalized
from tests.precision.quantized_models import conv, conv_weight
from trtdeploy.config.recipe import RECIPES
from trtdeploy.graph.index import build_index
from trtdeploy.precision.pins import find_pinned
from trtdeploy.precision.planning import plan_precision
from trtdeploy.precision.quantization.layers import find_layers
from trtdeploy.precision.quantization.rules.rule import LayerContext, LayerRule


def make_layer_context(
    proto: ModelProto,
    recipe: str = "int8",
    pins: Sequence[str] = (),
    ranges: Mapping[str, float] | None = None,
) -> LayerContext:
    found = RECIPES[recipe]
    assert found.quantized is not None
    index = build_index(normalized(proto))
    precision = plan_precision(index, found, pins=pins, ranges=ranges)
    return LayerContext(
        index, find_layers(index), found.quantized, precision, find_pinned(pins, index)
    )


def find_kept_layers(rule: LayerRule, proto: ModelProto, *context: object) -> dict[str, str]:
    """Return what the rule keeps: layer name to first reason."""
    kept: dict[str, str] = {}
    for name, reason in rule.find(make_layer_context(proto, *context)):  # type: ignore[arg-type]
        assert reason
        kept.setdefault(name, reason)
    return kept


def tower(source: str, result: str, count: int = 10) -> tuple[list[NodeProto], list[TensorProto]]:
    """Make convolutions ``t0``, ``t1``... of 16 channels in a row from source to result."""
    nodes, current = [], source
    for position in range(count):
        made = result if position == count - 1 else f"{result}_{position}"
        nodes.append(conv(f"{current} tower_w", made, f"t{position}"))
        current = made
    return nodes, [conv_weight("tower_w", 16, 16)]
