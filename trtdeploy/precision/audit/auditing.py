"""The one entrance: what Q/DQ nodes of any graph will come to in an engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.layer_costs import LayerCost, measure_layer_costs
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.adopt_contrib_quantization import AdoptContribQuantizationPass
from trtdeploy.precision.audit.expected_speed import judge_audit, measure_shares
from trtdeploy.precision.audit.layers import audit_layers
from trtdeploy.precision.audit.placement import audit_placement
from trtdeploy.precision.audit.report import QuantizationAudit


def audit_quantization(
    model: OnnxModel, shapes: Mapping[str, tuple[int, ...]]
) -> QuantizationAudit:
    """Say of every layer what it will run in, and why not in 8 bits.

    Works on any graph with QuantizeLinear and DequantizeLinear: trtdeploy's own, ONNX Runtime's,
    Model-Optimizer's, that of a quantization-aware training. Nothing is run, and no weight is
    read, only scales and zero points. What an engine really chose only its inspector knows.

    Args:
        model: The typed model; it is not changed.
        shapes: Sizes of the inputs for the shares of work; those left out keep what the file
            says, and layers of unknown size are in no share.

    Raises:
        ModelFileError: The graph is not one that any runtime could execute.
    """
    normalized = normalize_model(model)
    AdoptContribQuantizationPass()(normalized)
    index = build_index(normalized)
    return audit_graph(index, measure_layer_costs(index, shapes))


def audit_graph(index: ModelIndex, costs: Mapping[str, LayerCost | None]) -> QuantizationAudit:
    """Audit a model that is indexed already; see ``audit_quantization``.

    Args:
        index: The index of a model whose constants are initializers.
        costs: Cost by node name, from ``measure_layer_costs``.
    """
    layers, own = audit_layers(index, costs)
    placed, conversions = audit_placement(index)
    obstacles = tuple(dict.fromkeys((*own, *placed)))
    shares = measure_shares(layers)
    verdict, is_probably_faster = judge_audit(layers, obstacles, conversions, shares)
    return QuantizationAudit(
        verdict=verdict,
        is_probably_faster=is_probably_faster,
        flops_share=shares.flops,
        weight_bytes_share=shares.weight_bytes,
        conversions=conversions,
        unknown_costs=sum(layer.flops is None for layer in layers),
        layers_by_type=dict(Counter(layer.runs_in for layer in layers).most_common()),
        layers=tuple(layers),
        obstacles=obstacles,
    )
