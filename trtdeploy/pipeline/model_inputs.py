"""A model's inputs as shapes must be given for them."""

from __future__ import annotations

from dataclasses import replace

from trtdeploy.core.tensors import TensorSpec
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.shape_values import find_shape_tensor_inputs


def describe_inputs(model: OnnxModel) -> tuple[TensorSpec, ...]:
    """Return the inputs a caller feeds, shape tensors marked."""
    shape_tensors = find_shape_tensor_inputs(build_index(normalize_model(model)))
    return tuple(
        replace(spec, is_shape_tensor=spec.name in shape_tensors) for spec in model.input_specs()
    )
