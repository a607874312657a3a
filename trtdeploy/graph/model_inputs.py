"""A model's inputs as shapes must be given for them."""

from __future__ import annotations

from dataclasses import replace

from trtdeploy.core.tensors import TensorSpec
from trtdeploy.graph.export_facts import read_size_rules
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.shape_values import find_shape_tensor_inputs


def describe_inputs(model: OnnxModel) -> tuple[TensorSpec, ...]:
    """Return the inputs a caller feeds: shape tensors marked, with what the file says of sizes."""
    rules = read_size_rules(model)
    shape_tensors = find_shape_tensor_inputs(build_index(normalize_model(model)))
    return tuple(
        replace(
            spec,
            is_shape_tensor=spec.name in shape_tensors,
            size_rules=tuple(rule for rule in rules if rule.symbol in (spec.shape or ())),
        )
        for spec in model.input_specs()
    )
